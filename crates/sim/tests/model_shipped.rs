//! Tests of the shipped models: each loads, runs, and gives the source of every figure.

use plumb_block::{Bytes, Nanos, Op};
use plumb_sim::model::{Kind, Model, ModelError, TypedModel};
use plumb_sim::timing::Event;
use plumb_sim::{Command, CommandId, Sectors};

#[test]
fn every_model_loads_and_every_figure_has_a_source() {
    let models = Model::all().unwrap();
    for wanted in
        ["all-flash-cluster", "hdd-space", "enterprise-sata-ssd", "consumer-nvme-ssd", "usb-stick", "liar"]
    {
        assert!(models.iter().any(|model| model.name == wanted), "{wanted} is missing");
    }
    for model in &models {
        assert!(!model.description.is_empty() && !model.cache_summary.is_empty(), "{}", model.name);
        assert!(
            model.sources.iter().all(|source| !source.is_empty()) && !model.sources.is_empty(),
            "{}",
            model.name
        );
        assert!(!model.figures.is_empty());
        for figure in model.figures.iter() {
            let source = figure.source.as_deref().unwrap_or_default();
            assert!(source.len() > 2, "{}.toml:{}: {} has no source", model.name, figure.line, figure.path);
        }
    }
}

#[test]
fn every_model_runs_and_does_the_same_with_the_same_seed() {
    for model in Model::all().unwrap() {
        let size = model.size(Some(Bytes::gib(1)));
        let run = |seed: u64| {
            let mut timing = model.timing(size, seed);
            let (mut now, mut events, mut step) = (Nanos(0), Vec::new(), 1_u64);
            for id in 1..=400 {
                step = step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let op = match step >> 60 {
                    0 => Op::Flush,
                    1 => Op::Discard,
                    2 => Op::Write { fua: true },
                    3..8 => Op::Read,
                    _ => Op::Write { fua: false },
                };
                let first = (step >> 20) % (size.0 / 4096) * 8;
                let sectors = if op == Op::Flush { Sectors::NONE } else { Sectors { first, count: 8 } };
                timing.submit(now, Command { id: CommandId(id), op, sectors });
                now = Nanos(now.0 + (step >> 44));
                timing.advance(now, &mut events);
            }
            for _ in 0..1_000_000 {
                let Some(next) = timing.next_event() else { break };
                timing.advance(next, &mut events);
            }
            assert_eq!(timing.next_event(), None, "{} never ends", model.name);
            assert_eq!(timing.dirty(), Bytes(0), "{}", model.name);
            let completed = events.iter().filter(|event| matches!(event, Event::Completed { .. })).count();
            assert_eq!(completed, 400, "{}", model.name);
            events
        };
        assert_eq!(run(7), run(7), "{}", model.name);
    }
}

#[test]
fn what_is_typed_names_a_model_and_its_state() {
    let typed: TypedModel =
        "liar?wce=off&seed=7&size=1GiB&fault=write:eio:p=0.01&fault=flush:timeout".parse().unwrap();
    assert_eq!(
        (typed.wce, typed.seed, typed.size, typed.faults.len()),
        (Some(false), 7, Some(Bytes::gib(1)), 2)
    );
    assert_eq!(typed.resolve().unwrap().kind, Kind::Ssd);
    for (wrong, part) in [
        ("null?wce=maybe", "wce=maybe"),
        ("null?sead=7", "sead=7"),
        ("null?seed", "seed"),
        ("null?size=12", "size=12"),
        ("null?size=513MiBs", "size=513MiBs"),
        ("null?fault=write:eoi", "fault=write:eoi"),
        ("", ""),
    ] {
        assert_eq!(wrong.parse::<TypedModel>().unwrap_err().part, part);
    }
    let unknown = "consumer-nvme-sdd".parse::<TypedModel>().unwrap().resolve().unwrap_err();
    assert!(
        matches!(&unknown, ModelError::Unknown { nearest: Some(name), .. } if name == "consumer-nvme-ssd")
    );
    assert!(unknown.to_string().contains("but `consumer-nvme-ssd` is"), "{unknown}");
    let missing = "./no/such.toml".parse::<TypedModel>().unwrap().resolve().unwrap_err();
    assert!(matches!(missing, ModelError::Read { .. }), "{missing}");
}

//! Tests that errors in a user's model are reported with file, line, field, value and what was expected; and
//! that no file, however wrong, makes anything panic or run for ever.
use plumb_block::{Bytes, Nanos, Op, VolatileCache};
use plumb_sim::model::{ContentError, Model};
use plumb_sim::{Command, CommandId, Sectors};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

const SSD: &str = include_str!("../models/consumer-sata-ssd.toml");

fn error(from: &str, to: &str) -> ContentError {
    let text = SSD.replacen(from, to, 1);
    assert_ne!(text, SSD, "`{from}` is not in the model");
    *Model::from_text("mine.toml", &text).unwrap_err()
}

/// Text of a model, the text that replaces it, the field, and the value and the expectation that the error
/// then states.
type Mistake = (&'static str, &'static str, &'static str, Option<&'static str>, &'static str);

const MISTAKES: [Mistake; 15] = [
    ("channels = { value = 8", "channels = { value = 99", "flash.channels", Some("99"), "expected 1 to 64"),
    ("queue = { value = 32", "queue = { value = -1", "flash.queue", Some("-1"), "expected u32"),
    (
        "program = { value = \"840us\"",
        "program = { value = 840",
        "flash.program",
        Some("840"),
        "a time such as",
    ),
    (
        "page = { value = \"16 KiB\"",
        "page = { value = \"17 KiB\"",
        "flash.page",
        Some("\"17 KiB\""),
        "a power of two",
    ),
    (
        "page = { value = \"16 KiB\"",
        "page = { value = \"big\"",
        "flash.page",
        Some("\"big\""),
        "expected a size",
    ),
    (
        "gather = { value = \"6 MiB\"",
        "gather = { value = \"17 MiB\"",
        "flash.gather",
        Some("\"17 MiB\""),
        "no more than the buffer holds",
    ),
    (
        "gather = { value = \"6 MiB\"",
        "gather = { value = \"six\"",
        "flash.gather",
        Some("\"six\""),
        "expected a size",
    ),
    (
        "link = { value = \"560 MB/s\"",
        "link = { value = \"560\"",
        "flash.link",
        Some("\"560\""),
        "expected a rate",
    ),
    (
        "read_spread = { value = 0.3",
        "read_spread = { value = nan",
        "flash.read_spread",
        Some("nan"),
        "0 to 0.9",
    ),
    ("kind = \"ssd\"", "kind = \"floppy\"", "kind", Some("\"floppy\""), "unknown variant"),
    ("kind = \"ssd\"", "kind = \"hdd\"", "flash", None, "[mechanics], [cache]"),
    ("channels = {", "chanels = {", "flash.chanels", Some("8"), "`channels` was probably meant"),
    (
        "wce = { value = \"on\"",
        "wce = { value = \"maybe\"",
        "behaviour.wce",
        Some("\"maybe\""),
        "unknown variant",
    ),
    (
        "ignores_flush = { value = \"never\"",
        "ignores_flush = { value = \"last-0\"",
        "behaviour.ignores_flush",
        None,
        "last-N",
    ),
    (
        "size = { value = \"3 GiB\"",
        "sice = { value = \"3 GiB\"",
        "flash.slc.sice",
        None,
        "`size` was probably meant",
    ),
];

fn line_of(text: &str) -> usize {
    1 + SSD.lines().position(|line| line.starts_with(text)).unwrap()
}

#[test]
fn an_error_names_the_place_the_value_and_what_was_expected() {
    for (from, to, field, value, expected) in MISTAKES {
        let error = error(from, to);
        assert_eq!((error.file.as_str(), error.field.as_str()), ("mine.toml", field), "{error}");
        let start = to.split(" = ").next().unwrap().trim_end_matches(" {");
        let there = if field == "flash" { "[flash]" } else { from.split(" = ").next().unwrap() };
        assert_eq!(error.line, line_of(there), "{start}: {error}");
        assert!(error.expected.contains(expected), "{error}");
        if value.is_some() {
            assert_eq!(error.value.as_deref(), value, "{error}");
        }
        println!("{error}");
    }
    let missing = error("queue = {", "# queue = {");
    assert_eq!(
        (missing.field.as_str(), missing.expected.as_str()),
        ("flash.queue", "is missing"),
        "{missing}"
    );
    assert_eq!(missing.line, line_of("[flash]"));
    let broken = error("[flash]", "[flash");
    assert!(broken.line == line_of("[flash]") && broken.to_string().contains("not TOML"), "{broken}");
    let table = error("name = ", "nome = ");
    assert_eq!(table.line, 1, "{table}");
}

#[test]
fn plain_values_do_for_a_users_own_file() {
    let plain: String = SSD
        .lines()
        .map(|line| match line.split_once("{ value = ") {
            Some((key, rest)) => format!("{key}{}\n", rest.split(", source = ").next().unwrap()),
            None => format!("{line}\n"),
        })
        .collect();
    let model = Model::from_text("mine.toml", &plain).unwrap();
    assert!(model.figures.iter().all(|figure| figure.source.is_none()));
    let figure = model.figures.iter().find(|figure| figure.path == "flash.slc.size").unwrap();
    assert_eq!(figure.value, "3 GiB");
}

#[test]
fn a_model_that_does_not_say_how_much_it_gathers_takes_half_of_its_buffer() {
    let line = SSD.lines().find(|line| line.starts_with("gather = ")).unwrap();
    let model = Model::from_text("mine.toml", &SSD.replace(line, "")).unwrap();
    let mut timing = model.timing(Bytes::mib(64), 1);
    let (mut now, mut events) = (Nanos(0), Vec::new());
    for id in 0..100 {
        let sectors = Sectors { first: id * 256, count: 256 };
        timing.submit(now, Command { id: CommandId(id), op: Op::Write { fua: false }, sectors });
        now = Nanos(now.0 + 10_000_000);
        timing.advance(now, &mut events);
    }
    // Half of the 16 MiB buffer is gathered: at 12.5 MiB/s the limit of 700 ms would allow 8.75 MiB.
    assert_eq!(timing.dirty(), Bytes::mib(8));
}

#[test]
fn an_array_cannot_contain_itself() {
    let text = include_str!("../models/hdd-space.toml").replace("\"nearline-4tb\"", "\"hdd-space\"");
    let error = Model::from_text("mine.toml", &text).unwrap_err();
    assert_eq!(error.field, "array.member", "{error}");
}

#[test]
fn an_array_has_a_battery_only_with_a_controller_and_a_controller_has_a_cache() {
    let space = include_str!("../models/hdd-space.toml")
        .replace("protected = { value = false", "protected = { value = true");
    let dead = space.replace("[behaviour]\n", "[behaviour]\nbattery_dead = true\n");
    let with = |text: &str| text.to_owned() + include_str!("array_controller.toml");
    assert!(Model::from_text("mine.toml", &with(&dead)).is_ok());
    let cache = with(&space);
    let write_cache = cache.find("[array.controller.cache.write]").unwrap();
    let media_cache = "[array.controller.cache.media]\nused = \"always\"\nsize = \"1 MiB\"\nsegments = 10\ndestage_delay = \"1 ms\"\ndestage_above_percent = 50\nresume_below_percent = 50\n";
    for (text, field, expected) in [
        (dead, "behaviour.battery_dead", "[array.controller]"),
        (
            cache.replace("wce = { value = \"on\"", "wce = { value = \"absent\""),
            "behaviour.wce",
            "reports_write_through",
        ),
        (cache[..write_cache].to_owned(), "array.controller.cache.write", "a write cache"),
        (cache.clone() + media_cache, "array.controller.cache.media", "no media cache"),
        (
            cache.replace("segments = 4096", "segments = 0"),
            "array.controller.cache.write.segments",
            "expected 1 to",
        ),
        (cache.replace("\"100us\"\n\n", "\"2s\"\n\n"), "array.controller.round_trip", "expected 0"),
    ] {
        let error = Model::from_text("mine.toml", &text).unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert!(error.expected.contains(expected), "{error}");
    }
}

/// Values that are likely to cause errors.
const HOSTILE: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "64",
    "65536",
    "4294967295",
    "9223372036854775807",
    "1e308",
    "-0.0",
    "nan",
    "inf",
    "0.5",
    "true",
    "\"\"",
    "\"0ns\"",
    "\"1ns\"",
    "\"1s\"",
    "\"3600s\"",
    "\"100ns\"",
    "\"512\"",
    "\"1 KiB\"",
    "\"64 KiB\"",
    "\"1 MiB\"",
    "\"64 MiB\"",
    "\"1 GiB\"",
    "\"64 GiB\"",
    "\"8191 PiB\"",
    "\"1 MB/s\"",
    "\"1000 GB/s\"",
    "\"0 MB/s\"",
    "\"on\"",
    "\"off\"",
    "\"absent\"",
    "\"steady\"",
    "\"fresh\"",
    "\"quorum\"",
    "\"plp-nvme-ssd\"",
    "\"always\"",
    "[]",
    "{}",
    "[1, 2]",
];

fn mutated(text: &str, chance: &mut Xoshiro256PlusPlus) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + chance.next_u64() % 6 {
        let at = (chance.next_u64() % lines.len() as u64) as usize;
        let value = HOSTILE[(chance.next_u64() % HOSTILE.len() as u64) as usize];
        match chance.next_u64() % 12 {
            0 => drop(lines.remove(at)),
            1 => lines.swap(at, 0),
            2 => {
                let cut = chance.next_u64() as usize % (lines[at].len() + 1);
                lines[at] = lines[at].chars().take(cut).collect();
            }
            3 => lines[at].push(char::from(chance.next_u64() as u8 % 96 + 32)),
            _ => {
                if let Some((key, _)) = lines[at].clone().split_once(" = ") {
                    lines[at] = format!("{key} = {value}");
                }
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

/// Runs an accepted model briefly: the run must end, with every command answered.
fn run(model: &Model, context: &str) {
    let size = model.size(Some(Bytes::mib(4)));
    let info = model.device_info(size, VolatileCache::None);
    let mut timing = model.timing(size, 1);
    let (mut events, mut now) = (Vec::new(), Nanos(0));
    let block = info.logical_block.0 / 512;
    for id in 0..48_u64 {
        let op = match id % 6 {
            0 => Op::Read,
            1 => Op::Flush,
            2 => Op::Write { fua: true },
            3 => Op::Discard,
            _ => Op::Write { fua: false },
        };
        let sectors =
            if op == Op::Flush { Sectors::NONE } else { Sectors { first: id * block, count: block } };
        timing.submit(now, Command { id: CommandId(id), op, sectors });
        now = Nanos(now.0 + (id % 3) * 1000);
        timing.advance(now, &mut events);
        if id == 30 {
            timing.set_wce(now, id % 2 == 0);
        }
    }
    for _ in 0..200_000 {
        let Some(next) = timing.next_event() else { break };
        timing.advance(next, &mut events);
    }
    assert!(timing.next_event().is_none(), "never ends: {context}");
    let completed =
        events.iter().filter(|event| matches!(event, plumb_sim::timing::Event::Completed { .. })).count();
    assert_eq!(completed, 48, "{context}");
}

#[test]
fn no_file_makes_anything_panic_or_run_for_ever() {
    let texts: Vec<(String, String)> = [
        "all-flash-cluster",
        "hdd-space",
        "consumer-sata-ssd",
        "usb-stick",
        "null",
        "plp-nvme-ssd",
        "nearline-4tb",
    ]
    .iter()
    .map(|name| {
        let path = format!("{}/models/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        ((*name).to_owned(), std::fs::read_to_string(path).unwrap())
    })
    .collect();
    let rounds: u64 =
        std::env::var("PLUMB_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1500);
    let mut taken = 0;
    for seed in 0..rounds {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (name, text) = &texts[seed as usize % texts.len()];
        let text = mutated(text, &mut chance);
        if let Ok(model) = Model::from_text(name, &text) {
            taken += 1;
            run(&model, &format!("seed {seed}, {name}:\n{text}"));
        }
    }
    assert!(taken > rounds / 50, "{taken} of {rounds} models were taken");
    println!("{taken} of {rounds} models were taken");
}

//! Writers, witnesses and cuts of simulated drives in virtual time: honest drives lose nothing, whatever is cut where; each kind of
//! liar is found. `PLUMB_CUTS` says how many cycles each drive takes (12 of an honest one, at most 50 of a liar), `PLUMB_SEED` the
//! first seed.

use std::collections::BTreeSet;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_block::{Bytes, Time, VirtualClock};

use plumb_prove::witness::record::Record;
use plumb_prove::witness::{
    Batch, Class, Durable, Plan, RunFacts, Until, VerifyDocument, Witness, WitnessError, verify, write,
};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::model::Typed;

const SIZE: Bytes = Bytes::mib(2);
/// A liar must be found within so many.
const LIAR_CYCLES_MAX: u64 = 50;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// A witness that needs no disk.
struct Memory(Record);

impl Witness for Memory {
    fn send(&mut self, batch: &Batch) -> Result<(), WitnessError> {
        self.0.batches.push(batch.clone());
        Ok(())
    }

    fn confirmed(&mut self, _: Duration) -> Result<u64, WitnessError> {
        Ok(self.0.confirmed())
    }
}

/// A drive that can be cut.
struct Bench {
    handle: Handle,
    time: Time,
    size: Bytes,
}

impl Bench {
    fn new(typed: &str, seed: u64) -> Self {
        let model = typed.parse::<Typed>().unwrap().resolve().unwrap();
        let options = DriveOptions { size: Some(SIZE), seed, ..DriveOptions::default() };
        let time = Time::Virtual(Arc::new(VirtualClock::new()));
        let handle = Handle::new(Drive::new(&model, options).unwrap(), time.clone());
        Self { handle, time, size: SIZE }
    }

    fn facts(&self, seed: u64, durable: Durable) -> RunFacts {
        let info = self.handle.device().info();
        let plan = Plan {
            seed,
            logical_block: info.logical_block,
            blocks: info.blocks(),
            write_blocks: (4096 / info.logical_block.0).max(1),
            depth: 1 + (seed % 16) as u32,
            overlap: !seed.is_multiple_of(3),
            durable,
            window: 16 + seed % 100,
        };
        RunFacts { plan, target: "drive".to_owned(), identity: None, size: self.size }
    }

    /// Writes until the power goes at `when`, and turns it on again.
    fn cut(&self, plan: &Plan, witness: &mut dyn Witness, when: &str) {
        self.handle.with(|drive, now| drive.cut_when(now, when.parse().unwrap()));
        let until = Until { writes: Some(20_000), time: None };
        let device = self.handle.device();
        let ended = write(plan, &*device, &self.time, witness, until, &AtomicBool::new(false)).unwrap();
        assert!(ended.device_failed, "the writer ended before the cut at {when}: {ended:?}");
        self.handle.with(Drive::power_on);
    }

    fn verify(&self, record: &Record) -> VerifyDocument {
        verify(record, &*self.handle.device(), None, &AtomicBool::new(false), &mut |_| {}).unwrap()
    }
}

fn moment(seed: u64, plan: &Plan) -> String {
    let flush = 2 + seed % 23;
    match (seed % 3, plan.durable) {
        (0, Durable::Flush(_) | Durable::Mixed(_)) => {
            format!("flush:{flush}:submitted..flush:{flush}:completed")
        }
        (1, Durable::Flush(_) | Durable::Mixed(_)) => format!("flush={flush}"),
        _ => format!("write={}", plan.fills() + 1 + seed * 37 % 500),
    }
}

const PATTERNS: [Durable; 3] = [Durable::Fua, Durable::Flush(7), Durable::Mixed(9)];

fn cycle(typed: &str, seed: u64) -> VerifyDocument {
    let bench = Bench::new(typed, seed);
    let facts = bench.facts(seed, PATTERNS[(seed / 3 % 3) as usize]);
    let mut witness = Memory(Record::new(facts.clone()));
    bench.cut(&facts.plan, &mut witness, &moment(seed, &facts.plan));
    let document = bench.verify(&witness.0);
    assert_eq!((document.blocks_read, document.blocks_unreached), (facts.plan.blocks, 0));
    document
}

#[test]
fn an_honest_drive_loses_nothing_wherever_its_power_is_cut() {
    let (first, cycles) = (from_environment("PLUMB_SEED", 1), from_environment("PLUMB_CUTS", 12));
    let models = [
        "consumer-nvme-ssd",
        "consumer-nvme-ssd?behaviour.damage.unreadable=0.2",
        "consumer-sata-ssd",
        "plp-nvme-ssd",
        "nearline-4tb",
        "consumer-nvme-ssd?geometry.logical_block=4096&geometry.physical_block=4096&geometry.atomic_unit=4096",
    ];
    for model in models {
        let mut required = 0;
        for seed in first..first + cycles {
            let document = cycle(model, seed);
            assert!(!document.has_loss(), "{model}, seed {seed}: {document:#?}");
            required += document.required;
        }
        assert!(required > cycles, "{model}: next to nothing was tested");
    }
}

#[test]
fn each_liar_is_found_and_told_by_its_kind() {
    let first = from_environment("PLUMB_SEED", 1);
    let in_4k = "geometry.logical_block=4096&geometry.physical_block=4096&geometry.atomic_unit=4096";
    let liars = [
        ("liar".to_owned(), vec![Class::Lost, Class::Unserialised, Class::Torn]),
        (
            "consumer-nvme-ssd?behaviour.ignores_flush=last-4".to_owned(),
            vec![Class::Lost, Class::Unserialised],
        ),
        ("consumer-nvme-ssd?behaviour.ignores_fua=true".to_owned(), vec![Class::Unserialised]),
        ("consumer-nvme-ssd?behaviour.driver_drops_flush=true".to_owned(), vec![Class::Unserialised]),
        (
            "enterprise-sata-ssd?behaviour.battery_dead=true&behaviour.ignores_flush=always".to_owned(),
            vec![Class::Lost],
        ),
        (format!("consumer-nvme-ssd?{in_4k}&behaviour.damage.torn=1"), vec![Class::Torn]),
        (format!("consumer-nvme-ssd?{in_4k}&behaviour.damage.shorn=1"), vec![Class::Torn]),
        ("consumer-nvme-ssd?behaviour.damage.misdirected=0.2".to_owned(), vec![Class::Misdirected]),
        ("liar?behaviour.damage.unserialized=1".to_owned(), vec![Class::Stale, Class::Unserialised]),
    ];
    for (model, expected) in liars {
        let mut found = BTreeSet::new();
        let mut cycles = 0;
        while cycles < LIAR_CYCLES_MAX && !expected.iter().all(|class| found.contains(class)) {
            found.extend(cycle(&model, first + cycles).classes.iter().map(|count| count.class));
            cycles += 1;
        }
        let is_found = expected.iter().all(|class| found.contains(class));
        assert!(
            is_found,
            "{model}: {found:?} within {cycles} cycles from seed {first}, expected {expected:?}"
        );
    }
}

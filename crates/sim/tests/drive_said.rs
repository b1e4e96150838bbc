//! Tests of the promises of a drive: lost data after lies is counted, a disabled cache is empty, a switch
//! lasts until the power is cut, and FUA on a drive without FUA follows the rules of a flush.
use std::sync::Arc;

use plumb_block::{
    Bytes, Clock as _, Completion, Errno, Lba, LbaRange, Nanos, Op, Outcome, Pattern, Payload, Pool,
    PoolShape, Queue, QueueOptions, Request, Tag, Time, VirtualClock, VolatileCache, Wait,
};
use plumb_sim::Handle;
use plumb_sim::contents::CutReport;
use plumb_sim::cut::CutWhen;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::model::Model;

const SATA: &str = include_str!("../models/consumer-sata-ssd.toml");
const NVME: &str = include_str!("../models/consumer-nvme-ssd.toml");
const PROTECTED: &str = include_str!("../models/plp-nvme-ssd.toml");

/// A drive and its host, which sends one command after the other.
struct Bench {
    clock: Arc<VirtualClock>,
    drive: Handle,
    queue: Box<dyn Queue>,
    tag: u64,
}

impl Bench {
    fn new(model: &Model, seed: u64) -> Self {
        let clock = Arc::new(VirtualClock::new());
        let options = DriveOptions { size: Some(Bytes::mib(64)), seed, ..DriveOptions::default() };
        let drive = Drive::new(model, options).unwrap();
        let drive = Handle::new(drive, Time::Virtual(Arc::clone(&clock)));
        let pool = Pool::new(PoolShape { buffer: Bytes::kib(4), count: 1, alignment: Bytes(512) }).unwrap();
        let queue = drive.device().open_queue(QueueOptions { depth: 4, pool }).unwrap();
        Self { clock, drive, queue, tag: 0 }
    }

    /// Executes one command of `kib` KiB, and returns its outcome.
    fn one(&mut self, op: Op, first_kib: u64, kib: u64) -> Outcome {
        self.tag += 1;
        let range =
            if op == Op::Flush { LbaRange::EMPTY } else { LbaRange::new(Lba(first_kib * 2), kib * 2) };
        let pattern = Pattern { seed: 1, lba: range.lba, generation: self.tag };
        let request = match op {
            Op::Flush => Request::flush(Tag(self.tag)),
            op => Request { op, ..Request::write(Tag(self.tag), range, Payload::Pattern(pattern)) },
        };
        self.queue.submit(request).unwrap();
        let mut completions: Vec<Completion> = Vec::new();
        while completions.is_empty() {
            self.queue.poll(Wait::ONE, &mut completions).unwrap();
        }
        completions[0].outcome
    }

    fn write(&mut self, first_kib: u64, kib: u64) -> Outcome {
        self.one(Op::Write { fua: false }, first_kib, kib)
    }

    fn fua(&mut self, first_kib: u64) -> Outcome {
        self.one(Op::Write { fua: true }, first_kib, 4)
    }

    fn flush(&mut self) -> Outcome {
        self.one(Op::Flush, 0, 0)
    }

    /// Makes `count` commits of 4 KiB each, one after the other in the same 400 KiB.
    fn commit(&mut self, count: u64) {
        for commit in 0..count {
            assert!(self.write(commit * 4 % 400, 4).is_done() && self.flush().is_done());
        }
    }

    fn wait(&self, time: Nanos) {
        let end = Nanos(self.clock.now().0 + time.0);
        while self.clock.advance(end) < end {}
    }

    fn cut(&self) -> CutReport {
        self.drive.with(Drive::cut_power);
        self.drive.with(|drive, _| *drive.last_cut().unwrap())
    }

    fn arm(&self, when: &str) {
        let when: CutWhen = when.parse().unwrap();
        self.drive.with(|drive, now| drive.cut_when(now, when));
    }

    fn fault(&self, fault: &str) {
        self.drive.with(|drive, _| drive.set_fault(fault.parse().unwrap()));
    }

    fn switch(&self, enabled: bool) {
        self.drive.with(|drive, now| drive.set_wce(now, enabled)).unwrap();
    }

    fn is_powered(&self) -> bool {
        self.drive.with(|drive, _| drive.is_powered())
    }
}

/// Returns a model with additional lines in its `[behaviour]`.
fn with(text: &str, behaviour: &str) -> Model {
    let text = text.replacen("[behaviour]\n", &format!("[behaviour]\n{behaviour}\n"), 1);
    Model::from_text("mine.toml", &text).unwrap()
}

fn ignoring(text: &str, which: &str) -> Model {
    let line = "ignores_flush = { value = \"never\"";
    assert!(text.contains(line));
    let text = text.replacen(line, &format!("ignores_flush = {{ value = \"{which}\""), 1);
    Model::from_text("mine.toml", &text).unwrap()
}

/// Returns the number of 40 cuts, each `after` 100 commits, in which flushed blocks were lost; each loss must
/// be counted.
fn cuts_that_lose(model: &Model, after: Nanos) -> usize {
    let loses = |seed: &u64| {
        let mut bench = Bench::new(model, *seed);
        bench.commit(100);
        bench.wait(after);
        let report = bench.cut();
        assert_eq!(report.lost_blocks, report.promised_lost_blocks, "all of it was flushed: {report:?}");
        report.promised_lost_blocks > 0
    };
    (0..40).filter(loses).count()
}

#[test]
fn who_lies_about_flushes_loses_commits_in_nearly_every_cut() {
    let liar = Model::named("liar").unwrap();
    let dead = with(PROTECTED, "battery_dead = { value = true, source = \"a test\" }");
    let drops = with(SATA, "driver_drops_flush = { value = true, source = \"a test\" }");
    let ignores = ignoring(NVME, "always");
    for (model, after) in [(&liar, 5000), (&dead, 2000), (&drops, 300), (&ignores, 300)] {
        for after in [Nanos::ZERO, Nanos::millis(after)] {
            let count = cuts_that_lose(model, after);
            assert!((30..=40).contains(&count), "{}: {count} of 40 cuts {after} later", model.name);
        }
    }
    for name in ["consumer-sata-ssd", "consumer-nvme-ssd", "plp-nvme-ssd", "usb-stick"] {
        assert_eq!(cuts_that_lose(&Model::named(name).unwrap(), Nanos::ZERO), 0, "{name} is honest");
    }
}

#[test]
fn what_is_not_flushed_is_at_risk_on_volatile_flash() {
    for name in ["consumer-sata-ssd", "consumer-nvme-ssd", "liar"] {
        let model = Model::named(name).unwrap();
        let loses = |seed: &u64| {
            let mut bench = Bench::new(&model, *seed);
            (0..16).for_each(|part| assert!(bench.write(part * 256, 256).is_done()));
            bench.wait(Nanos::millis(100));
            bench.cut().lost_blocks > 0
        };
        let count = (0..40).filter(loses).count();
        assert!((30..=40).contains(&count), "{name}: {count} of 40 cuts");
    }
}

#[test]
fn plain_writes_before_fua_stay_at_risk_and_fua_itself_does_not() {
    let model = Model::named("consumer-nvme-ssd").unwrap();
    let lost = (0..60).filter(|seed| {
        let mut bench = Bench::new(&model, *seed);
        assert!(bench.write(0, 4).is_done() && bench.fua(64).is_done());
        let report = bench.cut();
        assert_eq!((report.at_risk, report.promised_lost_blocks), (1, 0), "{report:?}");
        report.lost_blocks > 0
    });
    assert!((15..=50).contains(&lost.count()), "FUA is not a barrier");
}

#[test]
fn fua_that_is_ignored_is_in_the_account() {
    let model = with(NVME, "ignores_fua = { value = true, source = \"a test\" }");
    let lost = (0..40).filter(|seed| {
        let mut bench = Bench::new(&model, *seed);
        (0..10).for_each(|place| assert!(bench.fua(place * 16).is_done()));
        let report = bench.cut();
        assert_eq!(report.lost_blocks, report.promised_lost_blocks, "{report:?}");
        report.promised_lost_blocks > 0
    });
    let count = lost.count();
    assert!((25..=40).contains(&count), "{count} of 40 cuts");
}

#[test]
fn a_cache_that_is_turned_off_is_empty_however_its_flushes_lie() {
    for which in ["last-1", "last-3", "always"] {
        for (seed, flushes) in (0..10).flat_map(|seed| [(seed, 0), (seed, 1), (seed, 4)]) {
            let mut bench = Bench::new(&ignoring(SATA, which), seed);
            assert!((0..4).all(|place| bench.write(place * 8, 4).is_done()));
            assert!((0..flushes).all(|_| bench.flush().is_done()));
            bench.switch(false);
            assert_eq!(bench.drive.with(|drive, _| drive.at_risk()), Bytes(0), "{which}");
            assert!(bench.write(64, 4).is_done());
            assert_eq!(bench.cut().lost_blocks, 0, "{which}, {flushes} flushes, seed {seed}");
        }
    }
}

#[test]
fn a_switched_cache_is_as_it_was_saved_when_power_comes_on() {
    let model = Model::named("consumer-nvme-ssd").unwrap();
    let state = |bench: &Bench| bench.drive.with(|drive, _| (drive.wce(), drive.info().volatile_cache));
    let mut bench = Bench::new(&model, 1);
    bench.switch(false);
    assert_eq!(state(&bench), (Some(false), VolatileCache::None));
    bench.cut();
    bench.drive.with(Drive::power_on);
    assert_eq!(state(&bench), (Some(true), VolatileCache::Enabled));
    // A power cut empties the cache, so it is volatile.
    assert!(bench.write(0, 4).is_done());
    assert_eq!(bench.cut().at_risk, 1);
    let options = DriveOptions { wce: Some(false), ..DriveOptions::default() };
    let drive = Handle::new(Drive::new(&model, options).unwrap(), Time::Virtual(Arc::default()));
    drive.with(|drive, now| drive.set_wce(now, true)).unwrap();
    drive.with(Drive::cut_power);
    drive.with(Drive::power_on);
    assert_eq!(drive.with(|drive, _| drive.wce()), Some(false), "as it was made with");
}

#[test]
fn the_flush_of_fua_that_is_not_native_is_cut_at() {
    let model = Model::named("consumer-sata-ssd").unwrap();
    for (when, answered) in [
        ("flush=2", 1),
        ("flush:1:submitted..flush:1:completed", 0),
        ("flush:3:completed", 2),
        ("write:2:completed", 1),
    ] {
        let mut bench = Bench::new(&model, 1);
        bench.arm(when);
        let outcomes: Vec<Outcome> = (0..5).map(|place| bench.fua(place * 16)).collect();
        assert_eq!(outcomes.iter().filter(|one| one.is_done()).count(), answered, "{when}: {outcomes:?}");
        assert!(!bench.is_powered(), "{when}");
        let report = bench.drive.with(|drive, _| *drive.last_cut().unwrap());
        assert_eq!((report.lost_blocks, report.at_risk), (0, 0), "{when}: nobody was told: {report:?}");
    }
    let mut bench = Bench::new(&model, 1);
    bench.arm("flush=2");
    bench.drive.with(|drive, _| drive.disarm());
    assert!((0..5).all(|place| bench.fua(place * 16).is_done()));
    let (writes, flushes) = bench.drive.with(|drive, _| {
        let storage = &drive.counters().storage;
        (storage.writes, storage.flushes)
    });
    assert_eq!((writes, flushes), (5, Some(5)));
}

#[test]
fn the_flush_of_fua_that_is_not_native_fails_latches_and_is_refused_after_that() {
    let model = Model::named("consumer-sata-ssd").unwrap();
    let mut bench = Bench::new(&model, 1);
    bench.fault("flush:enospc:nth=2");
    assert!(bench.fua(0).is_done());
    assert_eq!(bench.fua(16), Outcome::Failed(Errno::ENOSPC));
    assert!(bench.drive.with(|drive, _| drive.latched().is_some()));
    assert_eq!(bench.fua(32), Outcome::Failed(Errno::ENOSPC), "latched");
    assert_eq!(bench.flush(), Outcome::Failed(Errno::ENOSPC), "latched");
    assert!(bench.write(48, 4).is_done());
    let report = bench.cut();
    assert_eq!(
        (report.at_risk, report.promised_lost_blocks),
        (1, 0),
        "failed ones were in flight: {report:?}"
    );
    bench.drive.with(Drive::power_on);
    assert!(bench.fua(0).is_done());
}

#[test]
fn a_fault_of_blocks_that_a_drive_does_not_have_makes_no_drive() {
    let model = Model::named("consumer-sata-ssd").unwrap();
    let made = |fault: &str| {
        let faults = vec![fault.parse().unwrap()];
        Drive::new(&model, DriveOptions { size: Some(Bytes::mib(1)), faults, ..DriveOptions::default() })
    };
    assert!(made("write:eio:lba=0-2047").is_ok());
    let error = made("write:eio:lba=0-2048").unwrap_err().to_string();
    assert!(error.contains("0 to 2047"), "{error}");
}

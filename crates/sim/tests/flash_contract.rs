//! Tests of the contract between a timing and its drive, with every model: each command is answered once,
//! Persisted comes after Completed, a flush after the Persisted of all commands that it covers, and a cut
//! clears everything.
use std::collections::BTreeMap;

use plumb_block::{Bytes, Nanos, Op};
use plumb_sim::model::{Kind, Model, Wce};
use plumb_sim::timing::{Event, Timing};
use plumb_sim::{Command, CommandId, Sectors};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

const SIZE: Bytes = Bytes::mib(256);

/// A host that submits random commands and records the events.
struct Host {
    timing: Box<dyn Timing>,
    now: Nanos,
    chance: Xoshiro256PlusPlus,
    commands: BTreeMap<u64, EventLog>,
    events: Vec<Event>,
    last: Nanos,
    volatile: bool,
    context: String,
}

struct EventLog {
    op: Op,
    submitted: Nanos,
    completed: Option<Nanos>,
    persisted: bool,
    /// Writes that were answered but not persisted when this flush was submitted.
    covers: Vec<u64>,
}

impl Host {
    fn submit(&mut self) {
        let draw = self.chance.next_u64();
        let op = match draw >> 59 {
            0 | 1 => Op::Flush,
            2 => Op::Discard,
            3 => Op::WriteZeroes { fua: false, no_hole: false, fast_only: false },
            4 | 5 => Op::Write { fua: true },
            6..14 => Op::Read,
            _ => Op::Write { fua: false },
        };
        let count = if draw.is_multiple_of(16) { 512 } else { 8 };
        let first = (draw >> 8) % (SIZE.0 / 512 - count) / 8 * 8;
        let sectors = if op == Op::Flush { Sectors::NONE } else { Sectors { first, count } };
        let id = self.commands.len() as u64;
        let at_risk = |told: &EventLog| {
            let plain = !matches!(told.op, Op::Read | Op::Flush | Op::Write { fua: true });
            plain && told.completed.is_some() && !told.persisted
        };
        let covers = match op {
            Op::Flush => self.commands.iter().filter(|(_, told)| at_risk(told)).map(|(id, _)| *id).collect(),
            _ => Vec::new(),
        };
        let told = EventLog { op, submitted: self.now, completed: None, persisted: false, covers };
        self.commands.insert(id, told);
        self.timing.submit(self.now, Command { id: CommandId(id), op, sectors });
    }

    fn advance(&mut self, to: Nanos) {
        self.now = to;
        let mut events = std::mem::take(&mut self.events);
        self.timing.advance(to, &mut events);
        for event in events.drain(..) {
            self.hear(event);
        }
        self.events = events;
        assert!(self.timing.next_event().is_none_or(|next| next > to), "{}", self.context);
    }

    fn hear(&mut self, event: Event) {
        let (Event::Completed { id, at } | Event::Persisted { id, at }) = event;
        assert!(at >= self.last && at <= self.now, "{}: {event:?} after {}", self.context, self.last);
        self.last = at;
        let told = self.commands.get_mut(&id.0).unwrap();
        if matches!(event, Event::Persisted { .. }) {
            assert!(told.completed.is_some() && !told.persisted, "{}: {event:?}", self.context);
            assert!(self.volatile, "{}: {event:?} without a volatile cache", self.context);
            told.persisted = true;
            return;
        }
        assert!(told.completed.is_none() && at >= told.submitted, "{}: {event:?}", self.context);
        told.completed = Some(at);
        if self.volatile {
            let covers = std::mem::take(&mut told.covers);
            let left: Vec<_> = covers.into_iter().filter(|id| !self.commands[id].persisted).collect();
            assert!(
                left.is_empty(),
                "{}: flush {} answered before {left:?} were persisted",
                self.context,
                id.0
            );
        }
    }

    fn drain(&mut self) {
        for _ in 0..1_000_000 {
            match self.timing.next_event() {
                Some(next) => self.advance(next),
                None => return,
            }
        }
        panic!("{}: never ends", self.context);
    }
}

fn host(model: &Model, seed: u64) -> Host {
    Host {
        timing: model.timing(SIZE, seed),
        now: Nanos(0),
        chance: Xoshiro256PlusPlus::seed_from_u64(seed),
        commands: BTreeMap::new(),
        events: Vec::new(),
        last: Nanos(0),
        volatile: model.behaviour.wce != Wce::Absent && !model.behaviour.protected,
        context: format!("{} seed {seed}", model.name),
    }
}

/// Returns all shipped models except the disks, and an array of three copies on volatile drives, of which two
/// suffice for an answer, over a network with very different latencies: alone, and behind a controller with a
/// volatile or protected cache.
fn models() -> Vec<Model> {
    let quorum = include_str!("../models/hdd-space.toml")
        .replace("\"hdd-space\"", "\"quorum\"")
        .replace("\"nearline-4tb\"", "\"consumer-nvme-ssd\"")
        .replace("copies = { value = 1", "copies = { value = 3")
        .replace("acknowledge = { value = \"all\"", "acknowledge = { value = \"quorum\"")
        .replace("jitter = { value = \"100us\"", "jitter = { value = \"5ms\"");
    let controller =
        quorum.replace("\"quorum\"\nkind", "\"controller\"\nkind") + include_str!("array_controller.toml");
    let protected = controller
        .replace("\"controller\"\nkind", "\"protected-controller\"\nkind")
        .replace("protected = { value = false", "protected = { value = true");
    let shipped = Model::all().unwrap().into_iter().filter(|model| model.kind != Kind::Hdd);
    let mine = [quorum, controller, protected].map(|text| Model::from_text("mine.toml", &text).unwrap());
    shipped.chain(mine).collect()
}

#[test]
fn every_command_is_answered_once_and_flushes_keep_their_word() {
    for model in models() {
        for seed in 0..4 {
            let mut host = host(&model, seed);
            for _ in 0..600 {
                host.submit();
                let step = host.chance.next_u64() >> (38 + host.chance.next_u64() % 12);
                host.advance(Nanos(host.now.0 + step));
            }
            host.drain();
            assert!(host.commands.values().all(|told| told.completed.is_some()), "{}", host.context);
            if host.volatile {
                let left = host.commands.values().filter(|told| {
                    matches!(told.op, Op::Write { fua: false } | Op::Discard) && !told.persisted
                });
                assert_eq!(left.count(), 0, "{}", host.context);
            }
            assert_eq!(host.timing.dirty(), Bytes(0), "{}", host.context);
        }
    }
}

#[test]
fn with_the_cache_off_a_write_is_answered_when_it_is_on_the_flash() {
    for name in ["consumer-sata-ssd", "consumer-nvme-ssd", "liar"] {
        let model = Model::named(name).unwrap();
        let mean = |wce: bool| {
            let mut timing = model.timing(SIZE, 1);
            timing.set_wce(Nanos(0), wce);
            let (mut now, mut events) = (Nanos(0), Vec::new());
            for id in 0..200 {
                let sectors = Sectors { first: id * 8, count: 8 };
                timing.submit(now, Command { id: CommandId(id), op: Op::Write { fua: false }, sectors });
                let done = |events: &[Event]| {
                    events
                        .iter()
                        .any(|event| matches!(event, Event::Completed { id: done, .. } if done.0 == id))
                };
                while !done(&events) {
                    now = timing.next_event().unwrap();
                    timing.advance(now, &mut events);
                }
            }
            // Data that waits for more data is programmed eventually.
            while let Some(next) = timing.next_event() {
                timing.advance(next, &mut events);
            }
            let persisted = events.iter().any(|event| matches!(event, Event::Persisted { .. }));
            assert_eq!(persisted, wce, "{name}");
            now.as_secs_f64() / 200.0
        };
        assert!(mean(false) > mean(true) * 5.0, "{name}: {} {}", mean(false), mean(true));
    }
}

#[test]
fn turning_the_cache_off_empties_it_first() {
    let model = Model::named("consumer-sata-ssd").unwrap();
    let (mut timing, mut events) = (model.timing(SIZE, 1), Vec::new());
    let sectors = Sectors { first: 0, count: 8 };
    timing.submit(Nanos(0), Command { id: CommandId(0), op: Op::Write { fua: false }, sectors });
    timing.advance(Nanos::millis(1), &mut events);
    assert_eq!((events.len(), timing.dirty()), (1, Bytes::kib(4)));
    timing.set_wce(Nanos::millis(1), false);
    timing.advance(Nanos::millis(10), &mut events);
    assert!(matches!(events[..], [Event::Completed { .. }, Event::Persisted { .. }]), "{events:?}");
    assert_eq!(timing.dirty(), Bytes(0));
}

#[test]
fn what_nobody_flushes_leaves_the_cache_by_itself() {
    for name in ["consumer-sata-ssd", "consumer-nvme-ssd"] {
        let (mut timing, mut events) = (Model::named(name).unwrap().timing(SIZE, 1), Vec::new());
        let sectors = Sectors { first: 0, count: 8 };
        timing.submit(Nanos(0), Command { id: CommandId(0), op: Op::Write { fua: false }, sectors });
        timing.advance(Nanos::secs(1), &mut events);
        assert!(
            matches!(events[..], [Event::Completed { .. }, Event::Persisted { .. }]),
            "{name}: {events:?}"
        );
    }
}

#[test]
fn after_a_power_cut_nothing_that_was_before_it_happens() {
    for model in models() {
        let mut host = host(&model, 3);
        for _ in 0..300 {
            host.submit();
        }
        host.advance(Nanos::micros(300));
        host.timing.power_cut(host.now);
        assert_eq!((host.timing.next_event(), host.timing.dirty()), (None, Bytes(0)), "{}", host.context);
        let before = host.commands.len() as u64;
        // Commands that the cut lost are not expected to persist any more.
        host.commands.values_mut().for_each(|told| told.persisted = true);
        host.now = Nanos::secs(1);
        for _ in 0..300 {
            host.submit();
        }
        host.drain();
        let old = host
            .commands
            .range(..before)
            .filter(|(_, told)| told.completed.is_some_and(|at| at > Nanos::millis(1)));
        assert_eq!(old.count(), 0, "{}", host.context);
        assert!(host.commands.range(before..).all(|(_, told)| told.completed.is_some()), "{}", host.context);
    }
}

/// Returns the amount in the cache of a flash drive of `mib` MiB that were written `after` ago.
fn dirty_after(name: &str, mib: u64, after: Nanos) -> Bytes {
    let (mut timing, mut events) = (Model::named(name).unwrap().timing(SIZE, 1), Vec::new());
    let mut now = Nanos(0);
    for id in 0..mib * 8 {
        let sectors = Sectors { first: id * 256, count: 256 };
        timing.submit(now, Command { id: CommandId(id), op: Op::Write { fua: false }, sectors });
        while !events.iter().any(|event| matches!(event, Event::Completed { id: done, .. } if done.0 == id)) {
            now = timing.next_event().unwrap();
            timing.advance(now, &mut events);
        }
    }
    timing.advance(Nanos(now.0 + after.0), &mut events);
    timing.dirty()
}

#[test]
fn what_nobody_flushes_waits_in_a_volatile_buffer_for_more_to_come() {
    for (name, gathered) in
        [("consumer-nvme-ssd", Bytes::mib(8)), ("consumer-sata-ssd", Bytes::mib(6)), ("liar", Bytes::mib(14))]
    {
        let soon = Nanos::millis(300);
        assert_eq!(dirty_after(name, 4, soon), Bytes::mib(4), "{name}: all that was written last");
        assert_eq!(dirty_after(name, 40, soon), gathered, "{name}: no more than it gathers");
        assert_eq!(dirty_after(name, 40, Nanos::secs(11)), Bytes(0), "{name}: not for ever");
    }
    assert_eq!(dirty_after("liar", 4, Nanos::secs(5)), Bytes::mib(4), "a liar waits for longer");
}

#[test]
fn fua_does_not_carry_along_what_was_written_before_it() {
    let (mut timing, mut events) = (Model::named("consumer-nvme-ssd").unwrap().timing(SIZE, 1), Vec::new());
    for (id, fua) in [(0, false), (1, true), (2, false)] {
        let sectors = Sectors { first: id * 8, count: 8 };
        timing.submit(Nanos(0), Command { id: CommandId(id), op: Op::Write { fua }, sectors });
    }
    timing.advance(Nanos::millis(100), &mut events);
    let persisted: Vec<u64> = events
        .iter()
        .filter(|event| matches!(event, Event::Persisted { .. }))
        .map(|event| id(*event))
        .collect();
    assert_eq!((events.len(), persisted), (4, vec![1]), "{events:?}");
    assert_eq!(timing.dirty(), Bytes::kib(8));
    timing.submit(Nanos::millis(100), Command { id: CommandId(3), op: Op::Flush, sectors: Sectors::NONE });
    timing.advance(Nanos::millis(200), &mut events);
    assert_eq!((events.len(), timing.dirty()), (7, Bytes(0)), "{events:?}");
}

fn id(event: Event) -> u64 {
    let (Event::Completed { id, .. } | Event::Persisted { id, .. }) = event;
    id.0
}

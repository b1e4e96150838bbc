//! Tests, against the rules, of the durability of data in a volatile buffer; and tests that wrong drives are
//! found.

use std::collections::BTreeMap;

use plumb_block::{Bytes, Nanos, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::command::{Command, CommandId, Sectors};
use crate::model::TypedModel;
use crate::timing::{Event, Timing};

/// A mistake that turns the correct drive into a wrong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// FUA also makes earlier writes durable: they are flushed first.
    FuaCarriesAlong,
    /// A flush leaves gathered data in the buffer: the drive gets a read instead.
    FlushLeavesGathered,
    /// A unit is programmed as soon as it is full: a model that gathers nothing.
    NothingGathered,
}

/// A host that writes, sometimes with FUA, and flushes, with few commands in flight.
struct Host {
    mistake: Option<Mistake>,
    timing: Box<dyn Timing>,
    now: Nanos,
    ops: Vec<Op>,
    completed: BTreeMap<u64, Nanos>,
    persisted: BTreeMap<u64, Nanos>,
}

impl Host {
    fn new(mistake: Option<Mistake>) -> Self {
        let gathers_nothing = mistake == Some(Mistake::NothingGathered);
        let name = if gathers_nothing { "consumer-nvme-ssd?flash.gather=0" } else { "consumer-nvme-ssd" };
        let model = name.parse::<TypedModel>().unwrap().resolve().unwrap();
        let (completed, persisted) = (BTreeMap::new(), BTreeMap::new());
        let timing = model.timing(Bytes::mib(64), 1);
        Self { mistake, timing, now: Nanos(0), ops: Vec::new(), completed, persisted }
    }

    fn submit(&mut self, op: Op, sectors: Sectors) -> u64 {
        match self.mistake {
            Some(Mistake::FuaCarriesAlong) if op == Op::Write { fua: true } => {
                self.hand_over(Op::Flush, Sectors::NONE);
            }
            Some(Mistake::FlushLeavesGathered) if op == Op::Flush => {
                return self.hand_over(Op::Read, Sectors { first: 0, count: 8 });
            }
            _ => {}
        }
        self.hand_over(op, sectors)
    }

    fn hand_over(&mut self, op: Op, sectors: Sectors) -> u64 {
        let id = self.ops.len() as u64;
        self.ops.push(op);
        self.timing.submit(self.now, Command { id: CommandId(id), op, sectors });
        id
    }

    fn advance(&mut self, to: Nanos) {
        let mut events = Vec::new();
        self.timing.advance(to, &mut events);
        self.now = to;
        for event in events {
            match event {
                Event::Completed { id, at } => self.completed.insert(id.0, at),
                Event::Persisted { id, at } => self.persisted.insert(id.0, at),
            };
        }
    }

    /// Lets time pass until a command is answered.
    fn answered(&mut self, id: u64) -> Nanos {
        while !self.completed.contains_key(&id) {
            self.advance(self.timing.next_event().unwrap());
        }
        self.completed[&id]
    }
}

/// Runs a stream of commands. Returns a description of the failure, if any.
fn run(seed: u64, mistake: Option<Mistake>) -> Result<(), String> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut host, mut waiting) = (Host::new(mistake), Vec::new());
    for _ in 0..200 {
        let draw = chance.next_u64();
        let sectors = Sectors { first: draw % 1000 * 8, count: 8 + draw / 1000 % 8 * 8 };
        match draw >> 60 {
            0 => {
                let covers = std::mem::take(&mut waiting);
                let flush = host.submit(Op::Flush, Sectors::NONE);
                host.answered(flush);
                let left: Vec<_> = covers.iter().filter(|id| !host.persisted.contains_key(id)).collect();
                if !left.is_empty() {
                    return Err(format!("flush {flush} leaves {left:?}"));
                }
            }
            1 => {
                let id = host.submit(Op::Write { fua: true }, sectors);
                host.answered(id);
                let carried: Vec<_> = waiting.iter().filter(|id| host.persisted.contains_key(id)).collect();
                if !carried.is_empty() {
                    return Err(format!("FUA write {id} carries {carried:?} along"));
                }
            }
            _ => {
                let id = host.submit(Op::Write { fua: false }, sectors);
                host.answered(id);
                waiting.push(id);
                host.advance(Nanos(host.now.0 + draw % 100_000));
                if let Some(early) = waiting.iter().find(|id| host.persisted.contains_key(id)) {
                    return Err(format!("{early} did not wait for more to come"));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn what_is_gathered_waits_for_a_flush_and_fua_goes_alone() {
    for seed in 0..50 {
        run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn each_mistake_is_found() {
    for mistake in [Mistake::FuaCarriesAlong, Mistake::FlushLeavesGathered, Mistake::NothingGathered] {
        assert!((0..50).any(|seed| run(seed, Some(mistake)).is_err()), "nothing finds {mistake:?}");
    }
}

#[test]
fn a_command_in_several_units_is_out_when_the_last_of_them_is_programmed() {
    let mut host = Host::new(None);
    // Units of 16 KiB: the second write begins in the first and ends in the ninth, the third shares that one.
    let sizes = [8, 256, 8];
    let writes: Vec<u64> = sizes
        .iter()
        .map(|count| {
            let id = host.submit(Op::Write { fua: false }, Sectors { first: 0, count: *count });
            host.answered(id);
            id
        })
        .collect();
    let fua = host.submit(Op::Write { fua: true }, Sectors { first: 0, count: 64 });
    host.answered(fua);
    assert_eq!(host.timing.dirty(), Bytes::kib(136));
    let flush = host.submit(Op::Flush, Sectors::NONE);
    let end = host.answered(flush);
    let out: Vec<Nanos> = writes.iter().map(|id| host.persisted[id]).collect();
    assert!(out[0] <= out[1] && out[1] == out[2] && out[2] <= end, "{out:?} {end:?}");
    assert_eq!(host.timing.dirty(), Bytes(0));
}

//! Tests of the controller in front of mechanics with fixed times, and in front of a disk.

use std::collections::{BTreeMap, BTreeSet};

use plumb_block::{Bytes, Nanos, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::parameters::*;
use super::{Controller, Protection};
use crate::command::{Command, CommandId, Sectors};
use crate::model::{Rate, Size, Time};
use crate::timing::hdd::Hdd;
use crate::timing::hdd::tests_desktop as desktop;
use crate::timing::{Event, Timing};

const WRITE: Op = Op::Write { fua: false };
const FUA: Op = Op::Write { fua: true };

fn parameters() -> ControllerParameters {
    ControllerParameters {
        command_overhead: Time(Nanos::micros(100)),
        link_rate: Rate(100_000_000),
        queue_depth: 32,
        write: Some(WriteCacheParameters {
            size: Size(Bytes::mib(1)),
            segments: 64,
            coalesce: Size(Bytes::kib(256)),
            destage_order: DestageOrder::Elevator,
            destage_delay: Time(Nanos::millis(200)),
            destage_above_percent: 50,
            resume_below_percent: 90,
        }),
        media: None,
    }
}

fn media(used: MediaCacheUse) -> ControllerParameters {
    let media = MediaCacheParameters {
        used,
        size: Size(Bytes::kib(256)),
        segments: 16,
        destage_delay: Time(Nanos::millis(50)),
        destage_above_percent: 50,
        resume_below_percent: 50,
    };
    ControllerParameters { media: Some(media), ..parameters() }
}

fn drive(parameters: &ControllerParameters, wce: bool, protection: Protection) -> Controller<Hdd> {
    Controller::new(parameters, Hdd::new(&desktop(), Bytes(0)), wce, protection)
}

/// A host that sends one command after the other.
struct Host {
    drive: Controller<Hdd>,
    now: Nanos,
    next: u64,
    persisted: BTreeMap<u64, Nanos>,
}

impl Host {
    fn new(drive: Controller<Hdd>) -> Self {
        Self { drive, now: Nanos(0), next: 0, persisted: BTreeMap::new() }
    }

    /// Returns the time that a command takes.
    fn does(&mut self, op: Op, first: u64, count: u64) -> Nanos {
        let (id, since) = (CommandId(self.next), self.now);
        self.next += 1;
        self.drive.submit(self.now, Command { id, op, sectors: Sectors { first, count } });
        let mut events = Vec::new();
        loop {
            self.now = self.drive.next_event().unwrap();
            self.drive.advance(self.now, &mut events);
            let mut answered = false;
            for event in events.drain(..) {
                match event {
                    Event::Completed { id: done, .. } => answered |= done == id,
                    Event::Persisted { id, at } => assert_eq!(self.persisted.insert(id.0, at), None),
                }
            }
            if answered {
                return self.now.since(since);
            }
        }
    }

    fn rests(&mut self) {
        let mut events = Vec::new();
        while let Some(at) = self.drive.next_event() {
            self.now = at;
            self.drive.advance(at, &mut events);
        }
        for event in events {
            if let Event::Persisted { id, at } = event {
                self.persisted.insert(id.0, at);
            }
        }
    }
}

#[test]
fn a_cached_write_costs_the_link_and_its_flush_the_mechanics() {
    let mut host = Host::new(drive(&parameters(), true, Protection::None));
    assert_eq!(host.does(WRITE, 1000, 8), Nanos(100_000 + 40_960));
    assert_eq!(host.drive.dirty(), Bytes(4096));
    assert!(host.does(Op::Flush, 0, 0) > Nanos::micros(200));
    assert_eq!(host.drive.dirty(), Bytes(0));
    assert!(host.persisted.contains_key(&0));
    // Nothing is dirty any more.
    assert_eq!(host.does(Op::Flush, 0, 0), Nanos::micros(100));
}

#[test]
fn what_a_flush_costs_follows_from_what_is_dirty() {
    let cost = |writes: u64| {
        let mut host = Host::new(drive(&parameters(), true, Protection::None));
        for index in 0..writes {
            host.does(WRITE, index * 1_000_003 % 70_000_000 / 8 * 8, 8);
        }
        host.does(Op::Flush, 0, 0)
    };
    let (one, ten, forty) = (cost(1), cost(10), cost(40));
    assert!(ten > one * 2 && forty > ten * 2, "{one}, {ten}, {forty}");
}

#[test]
fn adjacent_writes_leave_as_one_and_overwritten_ones_once() {
    let cost = |places: &[u64]| {
        let mut host = Host::new(drive(&parameters(), true, Protection::None));
        for place in places {
            host.does(WRITE, *place, 8);
        }
        host.does(Op::Flush, 0, 0);
        assert_eq!(host.persisted.len(), places.len());
        host.now.since(Nanos(0)).as_secs_f64() * 1e3
    };
    let adjacent = cost(&[1000, 1008, 1016, 1024, 992, 984]);
    let same = cost(&[1000; 6]);
    assert!(adjacent < 20.0 && same < 20.0, "{adjacent} ms, {same} ms");
}

#[test]
fn dirty_data_are_read_from_the_cache_and_leave_by_themselves() {
    let mut host = Host::new(drive(&parameters(), true, Protection::None));
    host.does(WRITE, 1000, 8);
    assert_eq!(host.does(Op::Read, 1002, 4), Nanos(100_000 + 20_480));
    host.rests();
    assert_eq!(host.drive.dirty(), Bytes(0));
    assert!(host.persisted[&0] >= Nanos::millis(200));
    assert!(host.does(Op::Read, 5_000_000, 4) > Nanos::millis(1));
}

#[test]
fn a_full_cache_holds_writes_back() {
    let mut host = Host::new(drive(&parameters(), true, Protection::None));
    let times: Vec<Nanos> =
        (0..200).map(|index| host.does(WRITE, index * 7919 * 8 % 70_000_000, 8)).collect();
    assert!(times[..30].iter().all(|time| *time < Nanos::micros(200)), "{times:?}");
    assert!(times[100..].iter().any(|time| *time > Nanos::millis(2)), "{times:?}");
    // Longer than the cache: written through.
    assert!(host.does(WRITE, 0, 4096) > Nanos::millis(10));
}

#[test]
fn fua_and_cache_off_wait_for_the_mechanics() {
    let mut on = Host::new(drive(&parameters(), true, Protection::None));
    on.does(WRITE, 9_000_000, 8);
    assert!(on.does(FUA, 1000, 8) > Nanos::micros(500));
    assert_eq!(on.drive.dirty(), Bytes(4096), "FUA covers only its own blocks");
    let mut off = Host::new(drive(&parameters(), false, Protection::None));
    off.does(WRITE, 1000, 8);
    let again = off.does(WRITE, 1000, 8).as_secs_f64() * 1e3;
    assert!((again - 8.33).abs() < 0.2, "{again} ms");
    assert_eq!(off.does(Op::Flush, 0, 0), Nanos::micros(100));
    assert!(off.persisted.is_empty(), "nothing was ever volatile");
}

#[test]
fn what_a_battery_keeps_is_not_waited_for_until_it_dies() {
    let pair = |protection| {
        let mut host = Host::new(drive(&parameters(), true, protection));
        host.does(WRITE, 1000, 8);
        let dirty = host.drive.dirty();
        (host.does(Op::Flush, 0, 0), host.does(FUA, 70_000_000, 8), dirty)
    };
    let quick = |time: Nanos| time < Nanos::micros(200);
    let (flush, fua, dirty) = pair(Protection::Healthy);
    assert!(quick(flush) && quick(fua) && dirty == Bytes(0));
    let (flush, fua, dirty) = pair(Protection::DeadUnnoticed);
    assert!(quick(flush) && quick(fua) && dirty == Bytes(4096), "it lies");
    let (flush, fua, dirty) = pair(Protection::DeadNoticed);
    assert!(quick(flush) && !quick(fua) && dirty == Bytes(0), "it writes through");
}

#[test]
fn a_media_cache_takes_writes_while_the_cache_is_off_and_stalls_when_full() {
    let mut host = Host::new(drive(&media(MediaCacheUse::CacheOff), false, Protection::None));
    let times: Vec<Nanos> = (0..60).map(|index| host.does(WRITE, index * 7919 * 8 % 70_000_000, 8)).collect();
    assert!(times[..16].iter().all(|time| *time < Nanos::micros(200)), "{times:?}");
    let stalls = times.iter().filter(|time| **time > Nanos::millis(5)).count();
    assert!((2..30).contains(&stalls), "{times:?}");
    assert_eq!(host.drive.dirty(), Bytes(0));
    assert!(host.persisted.is_empty());
    // With the cache on this one is not used.
    host.rests();
    host.drive.set_wce(host.now, true);
    host.does(WRITE, 1000, 8);
    assert!(host.does(Op::Flush, 0, 0) > Nanos::micros(500));
}

#[test]
fn a_media_cache_that_is_always_used_makes_flushes_cheap_up_to_its_size() {
    let cost = |writes: u64| {
        let mut host = Host::new(drive(&media(MediaCacheUse::Always), true, Protection::None));
        for index in 0..writes {
            host.does(WRITE, index * 1_000_003 % 70_000_000 / 8 * 8, 8);
        }
        let cost = host.does(Op::Flush, 0, 0);
        assert_eq!(host.persisted.len() as u64, writes);
        cost
    };
    assert_eq!(cost(10), Nanos::micros(100));
    assert!(cost(30) > Nanos::millis(20));
}

#[test]
fn turning_the_cache_off_empties_it() {
    let mut host = Host::new(drive(&parameters(), true, Protection::None));
    for index in 0..20 {
        host.does(WRITE, index * 100_000, 8);
    }
    assert!(host.drive.dirty() > Bytes(0));
    host.drive.set_wce(host.now, false);
    host.does(Op::Flush, 0, 0);
    assert_eq!(host.drive.dirty(), Bytes(0));
    assert_eq!(host.persisted.len(), 20);
}

#[test]
fn a_cut_forgets_everything_and_the_drive_works_on() {
    let mut host = Host::new(drive(&parameters(), true, Protection::None));
    host.does(WRITE, 1000, 8);
    host.drive.submit(host.now, Command { id: CommandId(50), op: Op::Flush, sectors: Sectors::NONE });
    host.drive.power_cut(host.now);
    assert_eq!((host.drive.next_event(), host.drive.dirty()), (None, Bytes(0)));
    host.now += Nanos::secs(1);
    host.next = 60;
    assert!(host.does(Op::Read, 1000, 8) > Nanos::micros(200));
}

/// Record of the events, to check rules that hold for every drive and all parameters.
#[derive(Default)]
struct Ledger {
    written: BTreeSet<u64>,
    answered: BTreeSet<u64>,
    persisted: BTreeSet<u64>,
    /// Commands that each flush covers.
    covers: BTreeMap<u64, BTreeSet<u64>>,
}

impl Ledger {
    fn see(&mut self, event: Event, volatile: bool, seed: u64) {
        match event {
            Event::Persisted { id, .. } => {
                assert!(
                    self.answered.contains(&id.0),
                    "seed {seed}: {id:?} persisted before it was answered"
                );
                assert!(self.persisted.insert(id.0), "seed {seed}: {id:?} persisted twice");
            }
            Event::Completed { id, .. } => {
                assert!(self.answered.insert(id.0), "seed {seed}: {id:?} answered twice");
                if let Some(covered) = self.covers.get(&id.0).filter(|_| volatile) {
                    let lost: Vec<_> = covered.difference(&self.persisted).collect();
                    assert!(lost.is_empty(), "seed {seed}: flush {id:?} answered without {lost:?}");
                }
            }
        }
    }
}

/// Runs a deep load that mixes all commands in a small range on `drive`.
fn mixed_load(mut drive: Controller<Hdd>, volatile: bool, seed: u64) {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut ledger = Ledger::default();
    let mut events = Vec::new();
    let (mut id, mut now, mut last) = (0, Nanos(0), Nanos(0));
    while id < 3000 || drive.next_event().is_some() {
        let own = now + Nanos(chance.next_u64() % 2_000_000);
        match drive.next_event() {
            Some(at) if id >= 3000 || at <= own => now = at,
            _ => {
                now = own;
                let sectors = Sectors { first: chance.next_u64() % 4000, count: 1 + chance.next_u64() % 64 };
                let op = match chance.next_u64() % 10 {
                    0 => Op::Flush,
                    1 => FUA,
                    2 => Op::Discard,
                    3 => Op::Read,
                    _ => WRITE,
                };
                match op {
                    Op::Flush => {
                        let completed = ledger.written.intersection(&ledger.answered).copied().collect();
                        ledger.covers.insert(id, completed);
                    }
                    WRITE | Op::Discard => {
                        ledger.written.insert(id);
                    }
                    _ => {}
                }
                let sectors = if op == Op::Flush { Sectors::NONE } else { sectors };
                drive.submit(now, Command { id: CommandId(id), op, sectors });
                id += 1;
            }
        }
        drive.advance(now, &mut events);
        for event in events.drain(..) {
            let (Event::Completed { at, .. } | Event::Persisted { at, .. }) = event;
            assert!(last <= at && at <= now, "seed {seed}: {event:?} after {last}, at {now}");
            last = at;
            ledger.see(event, volatile, seed);
        }
    }
    assert_eq!(ledger.answered.len() as u64, id, "seed {seed}: not all were answered");
    assert!(!volatile || ledger.written.is_subset(&ledger.persisted), "seed {seed}: something stayed dirty");
    assert_eq!(drive.dirty(), Bytes(0), "seed {seed}");
}

#[test]
fn every_command_is_answered_once_and_flushes_cover_what_they_must() {
    let fifo = |parameters: ControllerParameters| {
        let write = parameters.write.clone().map(|write| WriteCacheParameters {
            destage_order: DestageOrder::Fifo,
            segments: 5,
            ..write
        });
        ControllerParameters { write, queue_depth: 4, ..parameters }
    };
    let always = media(MediaCacheUse::Always);
    for seed in 0..4 {
        mixed_load(drive(&parameters(), true, Protection::None), true, seed);
        mixed_load(drive(&fifo(parameters()), true, Protection::None), true, seed);
        mixed_load(drive(&always, true, Protection::None), true, seed);
        mixed_load(drive(&parameters(), false, Protection::None), false, seed);
        mixed_load(drive(&media(MediaCacheUse::CacheOff), false, Protection::None), false, seed);
        mixed_load(drive(&parameters(), true, Protection::Healthy), false, seed);
        mixed_load(drive(&parameters(), true, Protection::DeadNoticed), false, seed);
    }
}

//! Tests of the whole state machine over members that are arrays: written data is read back, even after
//! openings, for any order in which actions complete.

mod faults;
mod grown;
mod kept;

use super::*;
use crate::action::Purpose;
use crate::settings::Uuid;
use plumb_block::{Op, Pool, PoolShape, Tag};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use std::collections::BTreeMap;

const BLOCKS: u64 = 256;
const LEG: Bytes = Bytes::kib(16 + 8 + 8 * 32);

fn pool(count: u32) -> Pool {
    Pool::new(PoolShape { buffer: BUFFER, count, alignment: Bytes(4096) }).unwrap()
}

fn options() -> Options {
    Options { bypass_after: None, ..Options::new(pool(BUFFERS_MIN)) }
}

struct Rig {
    legs: Vec<Vec<u8>>,
    backing: Vec<u8>,
    chance: Xoshiro256PlusPlus,
    cache: Cache,
    pending: Vec<Action>,
    answers: BTreeMap<u64, Completion>,
    now: Nanos,
    pool: Pool,
    tag: u64,
    /// Actions of this purpose fail on this member.
    failing: Option<(Member, Purpose)>,
    /// Actions of this purpose are not answered.
    held: Option<Purpose>,
    seen: BTreeMap<Purpose, u64>,
}

fn leg_info() -> DeviceInfo {
    DeviceInfo::plain("leg", LEG, Bytes(512))
}

fn backing_info() -> DeviceInfo {
    let mut info = DeviceInfo::plain("backing", Bytes(512 * BLOCKS), Bytes(512));
    info.discard_max = Bytes::mib(1);
    info
}

impl Rig {
    fn new(seed: u64, legs: usize, layout: Layout, options: Options) -> Self {
        let settings = Settings {
            cache: Uuid([1; 16]),
            backing: Uuid([2; 16]),
            size: LEG,
            segment: Bytes::kib(32),
            layout,
        };
        let infos = vec![leg_info(); legs];
        let mut media = vec![vec![0_u8; LEG.0 as usize]; legs];
        for write in Cache::create(&settings, &infos, &backing_info()).unwrap() {
            let Member::Leg(leg) = write.member else { panic!("{write:?}") };
            let at = write.range.lba.0 as usize * 512;
            media[leg][at..at + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        let cache = Cache::open(options, infos.into_iter().map(Some).collect(), backing_info()).unwrap();
        let mut rig = Self {
            legs: media,
            backing: vec![0; 512 * BLOCKS as usize],
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
            cache,
            pending: Vec::new(),
            answers: BTreeMap::new(),
            now: Nanos::ZERO,
            pool: pool(64),
            tag: 0,
            failing: None,
            held: None,
            seen: BTreeMap::new(),
        };
        rig.run();
        rig
    }

    fn reopen(&mut self, options: Options, present: &[bool]) {
        self.pending.clear();
        let infos = present.iter().map(|present| present.then(leg_info)).collect();
        self.cache = Cache::open(options, infos, backing_info()).unwrap();
        self.run();
    }

    /// Marks the backing device as requested. Returns the last mark.
    fn mark(&mut self) -> Option<Mark> {
        let mut last = None;
        while let Some(mark) = self.cache.to_mark() {
            self.cache.marked(mark, Ok(()), self.now);
            self.run();
            last = Some(mark);
        }
        last
    }

    /// Executes actions in any order until none is left.
    fn run(&mut self) {
        loop {
            self.cache.take_actions(&mut self.pending);
            let free = (0..self.pending.len()).filter(|at| Some(self.pending[*at].purpose) != self.held);
            let free: Vec<_> = free.collect();
            if free.is_empty() {
                break;
            }
            let next = free[self.chance.next_u64() as usize % free.len()];
            let action = self.pending.swap_remove(next);
            *self.seen.entry(action.purpose).or_default() += 1;
            let (outcome, payload) = if self.failing == Some((action.member, action.purpose)) {
                (Outcome::Failed(Errno::EIO), action.request.payload)
            } else {
                self.perform(action.member, action.request)
            };
            self.now += Nanos::micros(10);
            self.cache.completed(action.id, outcome, payload, self.now);
        }
        let mut answers = Vec::new();
        self.cache.take_answers(&mut answers);
        for answer in answers {
            assert!(self.answers.insert(answer.tag.0, answer).is_none(), "answered twice");
        }
    }

    fn perform(&mut self, member: Member, request: Request) -> (Outcome, Payload) {
        let medium = match member {
            Member::Leg(leg) => &mut self.legs[leg],
            Member::Backing => &mut self.backing,
        };
        let at = request.range.lba.0 as usize * 512;
        let range = at..at + request.range.nlb as usize * 512;
        let payload = match (request.op, request.payload) {
            (Op::Read, Payload::Into(mut buffer)) => {
                buffer.copy_from_slice(&medium[range]);
                Payload::Into(buffer)
            }
            (Op::Write { .. }, Payload::Bytes(bytes)) => {
                medium[range].copy_from_slice(&bytes);
                Payload::Bytes(bytes)
            }
            (Op::Write { .. }, Payload::Pattern(pattern)) => {
                pattern.fill(512, &mut medium[range]);
                Payload::Pattern(pattern)
            }
            (Op::WriteZeroes { .. } | Op::Discard, payload) => {
                medium[range].fill(0);
                payload
            }
            (_, payload) => payload,
        };
        (Outcome::Done, payload)
    }

    fn ask(&mut self, op: Op, lba: u64, nlb: u64, fill: u8) -> u64 {
        let range = if op == Op::Flush { LbaRange::EMPTY } else { LbaRange::new(Lba(lba), nlb) };
        let buffer = || self.pool.take(Bytes(nlb * 512)).unwrap();
        let payload = match op {
            Op::Read => Payload::Into(buffer()),
            Op::Write { .. } => {
                let mut buffer = buffer();
                buffer.fill(fill);
                Payload::Bytes(buffer.freeze())
            }
            _ => Payload::None,
        };
        self.tag += 1;
        self.cache.submit(Request { tag: Tag(self.tag), op, range, payload, deadline: None }, self.now);
        self.tag
    }

    fn done(&mut self, op: Op, lba: u64, nlb: u64, fill: u8) -> Completion {
        let tag = self.ask(op, lba, nlb, fill);
        self.run();
        for _ in 0..100 {
            if self.answers.contains_key(&tag) {
                break;
            }
            self.now = self.cache.next_event().expect("nothing more would happen");
            self.cache.advance(self.now);
            self.run();
        }
        self.answers.remove(&tag).expect("it was answered")
    }

    fn write(&mut self, lba: u64, nlb: u64, fill: u8) {
        assert_eq!(self.done(Op::Write { fua: false }, lba, nlb, fill).outcome, Outcome::Done);
    }

    fn bytes(&mut self, lba: u64, nlb: u64) -> Vec<u8> {
        let answer = self.done(Op::Read, lba, nlb, 0);
        assert_eq!(answer.outcome, Outcome::Done);
        let Payload::Into(buffer) = answer.payload else { panic!("no bytes") };
        buffer.to_vec()
    }

    fn wait(&mut self, until: impl Fn(&Cache) -> bool) {
        for _ in 0..1000 {
            self.run();
            if until(&self.cache) {
                return;
            }
            self.now = self.cache.next_event().unwrap_or(self.now + Nanos::millis(1));
            self.cache.advance(self.now);
        }
        panic!("it never came: {:?}", self.cache.status());
    }
}

#[test]
fn what_was_written_is_read_back_in_every_layout_and_mode_and_after_every_opening() {
    let modes = [Mode::WriteBack, Mode::WriteThrough, Mode::Protected, Mode::Ordered];
    let layouts = [(1, Layout::Mirror), (2, Layout::Mirror), (3, Layout::Stripe)];
    for (seed, (mode, (legs, layout))) in
        modes.into_iter().flat_map(|mode| layouts.map(|layout| (mode, layout))).cycle().take(60).enumerate()
    {
        let bypass_after = (seed % 3 == 0).then_some(Bytes::kib(4));
        let with = || Options { mode, bypass_after, ..options() };
        let mut rig = Rig::new(seed as u64, legs, layout, with());
        assert_eq!(rig.cache.state(), State::Serving, "seed {seed}");
        let mut expected = vec![0_u8; 512 * BLOCKS as usize];
        for step in 0..400_u64 {
            let lba = rig.chance.next_u64() % BLOCKS;
            let nlb = 1 + rig.chance.next_u64() % (BLOCKS - lba).min(40);
            let range = lba as usize * 512..(lba + nlb) as usize * 512;
            let fill = (step % 250) as u8 + 1;
            match rig.chance.next_u64() % 16 {
                0..7 => {
                    rig.done(Op::Write { fua: step % 5 == 0 }, lba, nlb, fill);
                    expected[range].fill(fill);
                }
                7 => {
                    rig.done(Op::Discard, lba, nlb, 0);
                    expected[range].fill(0);
                }
                8 => {
                    rig.done(
                        Op::WriteZeroes { fua: false, no_hole: step % 2 == 0, fast_only: true },
                        lba,
                        nlb,
                        0,
                    );
                    expected[range].fill(0);
                }
                9 => assert_eq!(rig.done(Op::Flush, 0, 0, 0).outcome, Outcome::Done),
                10 if step % 7 == 0 => rig.reopen(with(), &vec![true; legs]),
                _ => {
                    assert!(rig.bytes(lba, nlb) == expected[range], "seed {seed}, step {step}: {lba} + {nlb}")
                }
            }
        }
        assert!(rig.bytes(0, BLOCKS) == expected, "seed {seed}");
        rig.cache.detach(rig.now);
        rig.wait(|cache| matches!(cache.state(), State::Stopped { is_clean: true }));
        assert!(rig.backing == expected, "seed {seed}: a detached cache leaves all on the backing device");
        assert_eq!(rig.pool.available(), 64, "seed {seed}: every payload came back");
    }
}

#[test]
fn one_flush_of_the_leg_and_none_of_the_backing_device_for_a_flush() {
    let mut rig = Rig::new(1, 1, Layout::Mirror, options());
    rig.done(Op::Flush, 0, 0, 0);
    assert_eq!(rig.seen[&Purpose::BypassFlush], 1, "what went past the log in the session before");
    rig.write(0, 8, 1);
    rig.seen.clear();
    rig.done(Op::Flush, 0, 0, 0);
    assert_eq!(rig.seen, BTreeMap::from([(Purpose::LogFlush, 1)]));
    rig.done(Op::Flush, 0, 0, 0);
    assert_eq!(rig.seen[&Purpose::LogFlush], 1, "nothing was written since");
}

#[test]
fn a_stop_waits_for_what_is_being_destaged_and_not_for_what_is_left() {
    let mut rig = Rig::new(6, 1, Layout::Mirror, options());
    (0..24).for_each(|block| rig.write(block * 10, 1, 7));
    let before = rig.seen.get(&Purpose::BackingDestage).copied().unwrap_or(0);
    rig.cache.drain(rig.now);
    rig.cache.stop(rig.now);
    rig.wait(|cache| cache.state() == State::Stopped { is_clean: false });
    let destaged = rig.seen.get(&Purpose::BackingDestage).copied().unwrap_or(0) - before;
    assert!(destaged <= 8, "{destaged} of 24 runs were destaged");
    rig.reopen(options(), &[true]);
    assert!((0..24).all(|block| rig.bytes(block * 10, 1) == [7; 512]));
}

#[test]
fn a_mirror_goes_on_without_a_leg_and_never_reads_it_again() {
    for purpose in [Purpose::LogRecord, Purpose::LogFlush, Purpose::TailAdvance, Purpose::TailFlush] {
        let mut rig = Rig::new(7, 2, Layout::Mirror, options());
        rig.write(0, 8, 1);
        rig.failing = Some((Member::Leg(0), purpose));
        rig.write(0, 4, 2);
        assert_eq!(rig.done(Op::Flush, 0, 0, 0).outcome, Outcome::Done);
        rig.cache.drain(rig.now);
        rig.wait(|cache| cache.status().is_some_and(|status| !status.is_draining));
        rig.write(0, 2, 3);
        let states = rig.cache.status().unwrap().legs;
        assert_eq!(states, [LegState::Lost, LegState::Live], "{purpose:?}");
        rig.failing = None;
        rig.reopen(options(), &[true, true]);
        assert_eq!(rig.cache.status().unwrap().legs, [LegState::Lost, LegState::Live]);
        let read = rig.bytes(0, 8);
        assert_eq!((read[0], read[1024], read[2048]), (3, 2, 1), "{purpose:?}");
        rig.reopen(options(), &[true, false]);
        let State::Failed { because } = rig.cache.state() else { panic!("a stale leg was opened") };
        assert!(because.contains("device 1 of the log is missing"), "{because}");
    }
}

#[test]
fn the_last_leg_that_fails_stops_writes_and_flushes() {
    let mut rig = Rig::new(3, 1, Layout::Mirror, options());
    rig.write(0, 8, 1);
    rig.failing = Some((Member::Leg(0), Purpose::LogFlush));
    assert_eq!(rig.done(Op::Flush, 0, 0, 0).outcome, Outcome::Failed(Errno::EIO));
    assert!(matches!(rig.cache.state(), State::Latched { .. }));
    rig.cache.drain(rig.now);
    assert!(rig.cache.status().is_some_and(|status| !status.is_draining), "nothing is written back any more");
    rig.failing = None;
    assert_eq!(rig.done(Op::Flush, 0, 0, 0).outcome, Outcome::Failed(Errno::EIO), "a failed flush latches");
    assert_eq!(rig.done(Op::Write { fua: false }, 0, 1, 9).outcome, Outcome::Failed(Errno::EIO));
    assert_eq!(rig.bytes(0, 1), [1; 512]);
}

#[test]
fn damage_of_one_leg_is_read_from_the_other_and_repaired_and_of_both_is_an_error() {
    let mut rig = Rig::new(5, 2, Layout::Mirror, options());
    rig.write(0, 8, 1);
    let at = rig.legs[0].windows(4096).position(|window| window == [1; 4096]).unwrap();
    for leg in 0..2 {
        rig.legs[leg][at + 100] = 0;
        for _ in 0..2 {
            assert_eq!(rig.bytes(0, 8), [1; 4096]);
        }
        assert_eq!(rig.legs[leg][at + 100], 1, "leg {leg} was repaired");
    }
    (rig.legs[0][at], rig.legs[1][at]) = (0, 0);
    assert_eq!(rig.done(Op::Read, 0, 1, 0).outcome, Outcome::Failed(Errno::EIO));
    assert_eq!(rig.cache.status().unwrap().figures.repaired, 2);
}

//! Tests of the rate of writes into a full log: in virtual time, over a leg that takes 100 us for each
//! command, and a backing device that executes 150 commands a second, one at a time.

use std::collections::BTreeMap;

use plumb_block::{
    Bytes, Completion, DeviceInfo, Lba, LbaRange, Nanos, Op, Outcome, Payload, Pool, PoolShape, Request, Tag,
};
use plumb_cache::{Action, BUFFER, Cache, DestageOptions, Layout, Member, Options, Settings, Uuid};
use plumb_crash::below;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

const LOG: Bytes = Bytes::mib(128);
const BACKING: Bytes = Bytes::gib(1);
const LEG_TAKES: Nanos = Nanos::micros(100);
const BACKING_TAKES: Nanos = Nanos(1_000_000_000 / 150);

struct Disks {
    cache: Cache,
    log: Vec<u8>,
    pool: Pool,
    chance: Xoshiro256PlusPlus,
    now: Nanos,
    /// Time until which the backing device is busy.
    busy_until: Nanos,
    in_flight: BTreeMap<(Nanos, u64), Action>,
    tag: u64,
}

impl Disks {
    fn new(seed: u64) -> Self {
        Self::with(seed, DestageOptions::DEFAULT)
    }

    fn with(seed: u64, destage: DestageOptions) -> Self {
        let (leg, backing) =
            (DeviceInfo::plain("leg", LOG, Bytes(4096)), DeviceInfo::plain("backing", BACKING, Bytes(4096)));
        let settings = Settings {
            cache: Uuid([1; 16]),
            backing: Uuid([2; 16]),
            size: LOG,
            segment: Bytes::mib(1),
            layout: Layout::Mirror,
        };
        let mut log = vec![0; LOG.0 as usize];
        for write in Cache::create(&settings, std::slice::from_ref(&leg), &backing).unwrap() {
            log[write.range.lba.0 as usize * 4096..][..write.bytes.len()].copy_from_slice(&write.bytes);
        }
        let pool = |count| Pool::new(PoolShape { buffer: BUFFER, count, alignment: Bytes(4096) }).unwrap();
        let options = Options { bypass_after: None, destage, ..Options::new(pool(48)) };
        let cache = Cache::open(options, vec![Some(leg)], backing).unwrap();
        let chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (now, busy_until, in_flight) = (Nanos::ZERO, Nanos::ZERO, BTreeMap::new());
        Self { cache, log, pool: pool(16), chance, now, busy_until, in_flight, tag: 0 }
    }

    fn ask(&mut self, op: Op, bytes: u64) {
        self.tag += 1;
        let nlb = bytes / 4096;
        let range = LbaRange::new(Lba(below(&mut self.chance, BACKING.0 / 4096 / nlb.max(1)) * nlb), nlb);
        let payload = match op {
            Op::Read => Payload::Into(self.pool.take(Bytes(bytes)).unwrap()),
            _ => Payload::Bytes(self.pool.take(Bytes(bytes)).unwrap().freeze()),
        };
        self.cache.submit(Request { tag: Tag(self.tag), op, range, payload, deadline: None }, self.now);
    }

    /// Hands the actions of the cache to the members.
    fn hand_over(&mut self) {
        let mut actions = Vec::new();
        self.cache.take_actions(&mut actions);
        for action in actions {
            let ready = match (action.member, action.request.op) {
                (Member::Backing, Op::Flush) | (Member::Leg(_), _) => self.now + LEG_TAKES,
                (Member::Backing, _) => {
                    self.busy_until = self.busy_until.max(self.now) + BACKING_TAKES;
                    self.busy_until
                }
            };
            self.in_flight.insert((ready, action.id.0), action);
        }
    }

    /// Handles the next event. Returns the resulting answers.
    fn go_on(&mut self) -> Vec<Completion> {
        self.hand_over();
        let event = self.cache.next_event();
        match self.in_flight.first_key_value().map(|((ready, _), _)| *ready) {
            Some(ready) if event.is_none_or(|event| ready <= event) => {
                let ((now, _), action) = self.in_flight.pop_first().unwrap();
                self.now = now;
                let payload = self.done(action.member, action.request);
                self.cache.completed(action.id, Outcome::Done, payload, now);
            }
            _ => {
                self.now = event.expect("nothing more would happen");
                self.cache.advance(self.now);
            }
        }
        self.hand_over();
        let mut answers = Vec::new();
        self.cache.take_answers(&mut answers);
        answers
    }

    fn done(&mut self, member: Member, request: Request) -> Payload {
        let at = request.range.lba.0 as usize * 4096;
        match (member, request.op, request.payload) {
            (Member::Leg(_), Op::Read, Payload::Into(mut buffer)) => {
                let length = buffer.len();
                buffer.copy_from_slice(&self.log[at..at + length]);
                Payload::Into(buffer)
            }
            (Member::Leg(_), Op::Write { .. }, Payload::Bytes(bytes)) => {
                self.log[at..at + bytes.len()].copy_from_slice(&bytes);
                Payload::Bytes(bytes)
            }
            (_, _, payload) => payload,
        }
    }

    /// Runs these requests, `depth` at a time, for `time`. Returns the time of each answer and its latency.
    fn load(&mut self, op: Op, bytes: u64, depth: u32, time: Nanos) -> Vec<(Nanos, Nanos)> {
        let (from, mut answered) = (self.now, Vec::new());
        (0..depth).for_each(|_| self.ask(op, bytes));
        let mut left = depth;
        while left > 0 {
            for answer in self.go_on() {
                assert_eq!(answer.outcome, Outcome::Done);
                answered.push((self.now.since(from), self.now.since(answer.submitted_at)));
                left -= 1;
                if self.now.since(from) < time {
                    self.ask(op, bytes);
                    left += 1;
                }
            }
        }
        answered
    }
}

fn percentile(answered: &[(Nanos, Nanos)], per_mille: usize) -> f64 {
    let mut took: Vec<_> = answered.iter().map(|(_, took)| took.as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    took[(took.len() * per_mille / 1000).min(took.len() - 1)]
}

fn check(bytes: u64, depth: u32) {
    let mut disks = Disks::new(bytes);
    let burst = disks.load(Op::Write { fua: false }, bytes, depth, Nanos::secs(30));
    let mut seconds = [0_u64; 30];
    burst.iter().for_each(|(at, _)| seconds[(at.as_secs_f64() as usize).min(29)] += 1);
    let longest = percentile(&burst, 1000);
    eprintln!(
        "{}, depth {depth}: {} in 30 s, {seconds:?} by second, the longest {longest:.3} s",
        Bytes(bytes),
        burst.len()
    );
    assert!(seconds.iter().all(|rate| *rate >= 140), "slower than the backing device alone: {seconds:?}");
    assert!(longest < 1.0, "a write took {longest} s");
    let synced = disks.load(Op::Write { fua: true }, 4096, 1, Nanos::secs(10));
    let reads = disks.load(Op::Read, 4096, 1, Nanos::secs(10));
    for (what, after) in [("synced writes", synced), ("reads", reads)] {
        let (rate, p99) = (after.len() as f64 / 10.0, percentile(&after, 990));
        eprintln!("  then {what}: {rate:.0} /s, p99 {:.1} ms", p99 * 1e3);
        assert!(rate >= 0.9 * 150.0, "{what}: {rate} a second");
        assert!(p99 <= 3.0 / 150.0, "{what}: p99 {p99} s");
    }
}

#[test]
fn writes_of_64_kib_to_a_full_log_come_in_as_it_becomes_free() {
    check(64 << 10, 8);
}

#[test]
fn writes_of_4_kib_to_a_full_log_come_in_as_it_becomes_free() {
    check(4 << 10, 8);
}

/// Tests the estimate of the time of a drain, which is within a factor of 2 between the first and the last
/// tenth.
#[test]
fn the_time_that_a_drain_takes_is_said_within_a_factor_of_2() {
    for (bytes, writes) in [(4 << 10, 20_000), (64 << 10, 1000), (256 << 10, 300)] {
        let mut disks = Disks::new(bytes);
        let mut written = 0;
        while written < writes {
            disks.ask(Op::Write { fua: false }, bytes);
            while disks.go_on().is_empty() {}
            written += 1;
        }
        let (from, mut said) = (disks.now, Vec::new());
        disks.cache.drain(disks.now);
        loop {
            let status = disks.cache.status().unwrap();
            if !status.is_draining {
                break;
            }
            said.extend(status.drain_eta.map(|eta| (disks.now, eta)));
            disks.go_on();
        }
        let end = disks.now;
        let took = end.since(from).as_secs_f64();
        let is_counted =
            |(at, _): &&(Nanos, Nanos)| (0.1..0.9).contains(&(at.since(from).as_secs_f64() / took));
        let off = |(at, eta): &(Nanos, Nanos)| eta.as_secs_f64() / end.since(*at).as_secs_f64();
        let (least, most) = said
            .iter()
            .filter(is_counted)
            .map(off)
            .fold((f64::MAX, 0.0_f64), |(least, most), off| (least.min(off), most.max(off)));
        eprintln!(
            "{}: drained in {took:.1} s, said to take {least:.2} to {most:.2} times what was left",
            Bytes(bytes)
        );
        assert!(took > 1.0 && least >= 0.5 && most <= 2.0, "{} bytes: {least} to {most}", bytes);
    }
}

/// Returns the times at which the backing device was first used after a pause of ten minutes, with a write of
/// 64 KiB every `pause` for `hours`.
fn wakes_of_a_resting_device(destage: DestageOptions, pause: Nanos, hours: u64) -> (Vec<Nanos>, Disks) {
    let mut disks = Disks::with(1, destage);
    let (mut used, mut next) = (Vec::new(), Nanos::ZERO);
    while disks.now < Nanos::secs(3600 * hours) {
        while disks.cache.next_event().is_some_and(|event| event < next) || !disks.in_flight.is_empty() {
            disks.go_on();
            let is_busy = disks.in_flight.values().any(|action| action.member == Member::Backing);
            used.extend(is_busy.then_some(disks.now));
        }
        disks.now = next;
        disks.cache.advance(next);
        disks.ask(Op::Write { fua: false }, 64 << 10);
        disks.hand_over();
        next += pause;
    }
    used.dedup_by(|later, earlier| {
        let is_one = later.since(*earlier) < Nanos::secs(600);
        // The pause counts from the last use.
        *earlier = if is_one { *later } else { *earlier };
        is_one
    });
    (used, disks)
}

#[test]
fn a_backing_device_rests_until_the_log_is_full_enough_or_its_oldest_record_old_enough() {
    let (idle, day) = (Nanos(u64::MAX), Nanos::secs(86_400));
    let rests = DestageOptions { start: 0.5, age: day, idle, rests: true, ..DestageOptions::DEFAULT };
    // One write a minute takes 68 KiB of the log, so half of 128 MiB is full after 16 hours.
    let (by_share, disks) = wakes_of_a_resting_device(rests, Nanos::secs(60), 70);
    let hours: Vec<u64> = by_share.iter().map(|at| at.0 / 3_600_000_000_000).collect();
    assert_eq!(hours.len(), 4, "each time about 16 hours after the last: {hours:?}");
    let status = disks.cache.status().unwrap();
    assert_eq!(status.spin_ups, 4, "as the device was used");
    assert!(status.dirty < Bytes::mib(48), "everything was written back each time: {}", status.dirty);
    let by_age = DestageOptions { age: Nanos::secs(6 * 3600), ..rests };
    let (by_age, _) = wakes_of_a_resting_device(by_age, Nanos::secs(60), 70);
    let gaps: Vec<u64> = by_age.windows(2).map(|pair| pair[1].since(pair[0]).0 / 60_000_000_000).collect();
    assert!(by_age.len() >= 10 && gaps.iter().all(|gap| (359..=364).contains(gap)), "{gaps:?} minutes");
    // Without rest a device is used soon after each write.
    let (eager, _) = wakes_of_a_resting_device(DestageOptions::DEFAULT, Nanos::secs(1200), 10);
    assert_eq!(eager.len(), 30);
}

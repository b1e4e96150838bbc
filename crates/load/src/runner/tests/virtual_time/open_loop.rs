//! Tests of the accuracy of an open loop: a single server with known service times, at 80 % of its capacity.
//!
//! The latency since the intended start is compared with two oracles that know nothing of workers, depths and
//! batches: Lindley's recursion over the same arrivals and service times, which it must match to the digits
//! of the histogram, and queueing theory (M/D/1, M/M/1, D/M/1), which it must match to 2 %. A closed loop, or
//! a load that omits operations that it could not start in time, fails both by far.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard};

use plumb_block::{
    Clock, Completion, Device, DeviceInfo, Error, ErrorKind, EventSource, Extent, Latch, LbaRange, Queue,
    QueueFull, QueueOptions, Request, VirtualClock, Wait,
};
use plumb_measure::Histogram;
use plumb_workload::{Amount, Arrival, Schedule};

use super::*;

/// Mean service time, for a capacity of 10,000 operations a second.
const SERVICE: Nanos = Nanos::micros(100);
/// Rate of the load: 80 % of the capacity.
const RATE: f64 = 8000.0;
/// Permitted relative deviation from theory.
const TOLERANCE: f64 = 0.02;
/// Relative error that a histogram of three digits may have.
const DIGITS: f64 = 0.001;

/// Distribution of the service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    /// Always [`SERVICE`].
    Fixed,
    /// Exponential with the mean [`SERVICE`].
    Exponential,
}

/// Time in which the server does nothing: an operation that would begin in it begins at its end.
#[derive(Debug, Clone, Copy)]
struct Stall {
    from: Nanos,
    length: Nanos,
}

/// A single server, first come first served, by Lindley's recursion. The device and the oracle each have one.
#[derive(Debug, Clone)]
struct Server {
    service: Service,
    stall: Option<Stall>,
    free_at: Nanos,
    draws: u64,
}

impl Server {
    fn new(service: Service, stall: Option<Stall>) -> Self {
        Self { service, stall, free_at: Nanos::ZERO, draws: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Returns the time at which an operation that arrives at `now` is done.
    fn serve(&mut self, now: Nanos) -> Nanos {
        let mut begin = now.max(self.free_at);
        if let Some(stall) = self.stall
            && begin >= stall.from
            && begin < stall.from + stall.length
        {
            begin = stall.from + stall.length;
        }
        self.free_at = begin + self.draw();
        self.free_at
    }

    fn draw(&mut self) -> Nanos {
        if self.service == Service::Fixed {
            return SERVICE;
        }
        // SplitMix64.
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.draws;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        Nanos((-(1.0 - part).ln() * SERVICE.0 as f64) as u64)
    }
}

/// A device that behaves like the server.
struct Shop {
    clock: Arc<VirtualClock>,
    inner: Arc<Inner>,
}

struct Inner(Mutex<WaitingArrival>);

struct WaitingArrival {
    server: Server,
    /// Completion times of all operations in the shop, in order.
    due: VecDeque<Nanos>,
}

impl Shop {
    fn new(server: Server) -> Self {
        let inner = Arc::new(Inner(Mutex::new(WaitingArrival { server, due: VecDeque::new() })));
        let (clock, source) = (Arc::new(VirtualClock::new()), Arc::downgrade(&inner));
        clock.register(source);
        Self { clock, inner }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, WaitingArrival> {
        self.0.lock().unwrap()
    }
}

impl EventSource for Inner {
    fn next_event(&self) -> Option<Nanos> {
        self.lock().due.front().copied()
    }

    fn advance(&self, now: Nanos) -> bool {
        let mut inner = self.lock();
        let done = inner.due.partition_point(|due| *due <= now);
        inner.due.drain(..done).count() > 0
    }
}

impl Device for Shop {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::plain("shop", Bytes::mib(64), Bytes(512))
    }

    fn open_queue(&self, _options: QueueOptions) -> plumb_block::Result<Box<dyn Queue>> {
        let (clock, inner) = (Arc::clone(&self.clock), Arc::clone(&self.inner));
        Ok(Box::new(Counter { clock, inner, waiting: VecDeque::new() }))
    }

    fn extents(&self, _range: LbaRange) -> plumb_block::Result<Vec<Extent>> {
        Ok(Vec::new())
    }

    fn set_wce(&self, _enabled: bool) -> plumb_block::Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "set the write cache of", "shop"))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

struct Counter {
    clock: Arc<VirtualClock>,
    inner: Arc<Inner>,
    waiting: VecDeque<Completion>,
}

impl Queue for Counter {
    fn submit(&mut self, request: Request) -> Result<(), QueueFull> {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        let due = inner.server.serve(now);
        inner.due.push_back(due);
        self.waiting.push_back(Completion { completed_at: due, ..request.completed(Outcome::Done, now) });
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> plumb_block::Result<usize> {
        let (now, before) = (self.clock.now(), completions.len());
        while self.waiting.front().is_some_and(|first| first.completed_at <= now) {
            completions.extend(self.waiting.pop_front());
        }
        Ok(completions.len() - before)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Result of an exact computation of the same run.
struct Exact {
    sojourns: Vec<u64>,
    late_starts: u64,
    backlog_max: Nanos,
}

impl Exact {
    /// Serves the intended starts of all `workers` in order. An operation starts only when the one `depth`
    /// operations before it is done; several workers are assumed never to reach the depth.
    fn simulate(workload: &Workload, workers: u32, mut server: Server) -> Self {
        let Some(operations) = workload.stop.operations else { panic!("a counted workload") };
        let mut arrivals = Vec::new();
        for share in Share::all(NonZeroU32::new(workers).unwrap()) {
            let mut schedule = Schedule::new(workload, share).unwrap();
            for _ in 0..workload.operations_of(share).unwrap() {
                arrivals.push(schedule.intended());
                schedule.advance(Bytes::kib(4));
            }
        }
        arrivals.sort_unstable();
        assert_eq!(arrivals.len() as u64, operations);
        let interval = Schedule::new(workload, Share::WHOLE).unwrap().interval();
        let mut done: VecDeque<Nanos> = VecDeque::new();
        let mut exact = Self { sojourns: Vec::new(), late_starts: 0, backlog_max: Nanos::ZERO };
        for arrival in arrivals {
            let room_at = if done.len() == workload.depth as usize { done.pop_front() } else { None };
            let start = if workers == 1 { room_at.unwrap_or_default().max(arrival) } else { arrival };
            exact.late_starts += u64::from(start.since(arrival) > interval);
            exact.backlog_max = exact.backlog_max.max(start.since(arrival));
            let end = server.serve(start);
            exact.sojourns.push(end.since(arrival).0);
            done.push_back(end);
        }
        exact.sojourns.sort_unstable();
        exact
    }

    fn at(&self, percent: usize) -> f64 {
        let rank = (self.sojourns.len() * percent).div_ceil(100);
        self.sojourns[rank - 1] as f64
    }
}

fn poisson() -> Rate {
    Rate::Scheduled { amount: Amount::Iops(RATE), arrival: Arrival::Poisson }
}

fn at_80_percent(arrivals: Rate, operations: u64) -> Workload {
    Workload { rate: arrivals, depth: 64, stop: Stop::operations(operations), ..workload() }
}

/// Runs the workload on the server, and compares it with the recursion. Returns the outcome, and its
/// latencies since the intended start.
fn run_and_compare(workload: &Workload, workers: u32, server: &Server) -> (LoadOutcome, Histogram) {
    let shop = Shop::new(server.clone());
    let shares = Share::all(NonZeroU32::new(workers).unwrap());
    let team = shares.map(|share| {
        Worker::new(&shop, workload, WorkerOptions { share, ..WorkerOptions::default() }).unwrap()
    });
    let never = AtomicBool::new(false);
    let outcome = run(team.collect(), &Time::Virtual(Arc::clone(&shop.clock)), &never, &mut |_| {}).unwrap();
    let exact = Exact::simulate(workload, workers, server.clone());
    let measured = outcome.read.latency_from_intended_start.clone().unwrap();
    assert_eq!(measured.count(), exact.sojourns.len() as u64, "every operation has a latency");
    for percent in [1, 25, 50, 75, 90, 99] {
        let got = measured.at_per_mille(percent as u32 * 10).unwrap().0 as f64;
        let expected = exact.at(percent);
        assert!(
            (got / expected - 1.0).abs() <= DIGITS,
            "p{percent}: {got} ns for {expected}, {server:?}, seed {}",
            workload.seed
        );
    }
    assert_eq!(measured.max(), exact.sojourns.last().copied().map(Nanos));
    assert_eq!(measured.sum_ns(), exact.sojourns.iter().map(|value| u128::from(*value)).sum::<u128>());
    assert_eq!((outcome.backlog_max, outcome.late_starts), (exact.backlog_max, exact.late_starts));
    (outcome, measured)
}

/// Asserts that p50 and p99 are within `tolerance` of the values of `theory` for these probabilities, in
/// service times.
fn assert_theory(measured: &Histogram, tolerance: f64, theory: impl Fn(f64) -> f64) {
    for per_mille in [500, 990] {
        let got = measured.at_per_mille(per_mille).unwrap().0 as f64 / SERVICE.0 as f64;
        let expected = theory(f64::from(per_mille) / 1000.0);
        assert!((got / expected - 1.0).abs() <= tolerance, "{per_mille}: {got} for {expected} service times");
    }
}

/// Returns the probability that the wait of M/D/1 at load `rho` is at most `t` service times (Erlang 1909).
fn md1_wait(rho: f64, t: f64) -> f64 {
    let mut sum = 0.0;
    for k in 0..=(t.floor() as i32) {
        let x = rho * (f64::from(k) - t);
        let term = (1..=k).fold((-x).exp(), |term, factor| term * x / f64::from(factor));
        sum += term;
    }
    (1.0 - rho) * sum
}

/// Returns the value at which `distribution`, which grows, reaches `probability`.
fn quantile(probability: f64, distribution: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 30.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if distribution(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[test]
fn poisson_arrivals_at_a_server_of_fixed_time_are_m_d_1() {
    let server = Server::new(Service::Fixed, None);
    let (_, measured) = run_and_compare(&at_80_percent(poisson(), 200_000), 1, &server);
    assert_theory(&measured, TOLERANCE, |probability| 1.0 + quantile(probability, |t| md1_wait(0.8, t)));
}

#[test]
fn several_workers_are_together_one_poisson_process() {
    let server = Server::new(Service::Fixed, None);
    let (_, measured) = run_and_compare(&at_80_percent(poisson(), 200_000), 4, &server);
    assert_theory(&measured, TOLERANCE, |probability| 1.0 + quantile(probability, |t| md1_wait(0.8, t)));
}

#[test]
fn poisson_arrivals_at_a_server_of_exponential_time_are_m_m_1() {
    let server = Server::new(Service::Exponential, None);
    let (_, measured) = run_and_compare(&at_80_percent(poisson(), 400_000), 1, &server);
    // The time in the system is exponential with the mean 1 / (1 - rho). At this load the waits of some
    // eighty successive operations are correlated, so that the p99 has a standard deviation of 3 % between
    // seeds. The tolerance of 2 % applies to the recursion, which uses the drawn numbers.
    assert_theory(&measured, 3.0 * TOLERANCE, |probability| -(1.0 - probability).ln() / 0.2);
}

#[test]
fn a_fixed_schedule_at_a_server_of_exponential_time_is_d_m_1() {
    let server = Server::new(Service::Exponential, None);
    let (_, measured) = run_and_compare(&at_80_percent(Rate::iops(RATE), 200_000), 1, &server);
    // Exponential with the mean 1 / (1 - sigma), where sigma = exp(-(1 - sigma) / rho).
    let sigma = (0..200).fold(0.5_f64, |sigma, _| (-(1.0 - sigma) / 0.8).exp());
    assert_theory(&measured, TOLERANCE, |probability| -(1.0 - probability).ln() / (1.0 - sigma));
}

#[test]
fn a_fixed_schedule_at_a_server_of_fixed_time_never_waits() {
    let server = Server::new(Service::Fixed, None);
    let (outcome, measured) = run_and_compare(&at_80_percent(Rate::iops(RATE), 50_000), 1, &server);
    assert_eq!((measured.min(), measured.max()), (Some(SERVICE), Some(SERVICE)));
    assert_eq!((outcome.late_starts, outcome.backlog_max, outcome.unstarted), (0, Nanos::ZERO, 0));
}

#[test]
fn a_stall_is_paid_for_by_everything_that_was_due_in_it() {
    // 100 ms in the middle of ten seconds. Each interval of 125 us makes up for 25 us, so 4,000 of 80,000
    // operations are delayed, evenly from 100 ms down to nothing: 1 % of all waited longer than 80 ms.
    let stall = Stall { from: Nanos::secs(4), length: Nanos::millis(100) };
    let server = Server::new(Service::Fixed, Some(stall));
    let (outcome, measured) = run_and_compare(&at_80_percent(Rate::iops(RATE), 80_000), 1, &server);
    let p99 = measured.at_per_mille(990).unwrap().as_secs_f64();
    assert!((p99 / 0.0801 - 1.0).abs() <= TOLERANCE, "{p99}");
    // Sixty-four operations were in the shop when the stall began; all others waited outside, which service
    // times do not show.
    let service = outcome.read.latency.at_per_mille(990).unwrap();
    assert!(service <= SERVICE * 65, "{service}");
    assert!(outcome.backlog_max > Nanos::millis(85) && outcome.backlog_max < stall.length);
    assert!(outcome.late_starts > 3000, "{}", outcome.late_starts);
}

#[test]
fn a_stall_among_poisson_arrivals_is_exact_too() {
    let stall = Stall { from: Nanos::secs(2), length: Nanos::millis(300) };
    let server = Server::new(Service::Exponential, Some(stall));
    let (outcome, _) = run_and_compare(&at_80_percent(poisson(), 100_000), 1, &server);
    assert!(outcome.backlog_max > Nanos::millis(250) && outcome.late_starts > 1000);
}

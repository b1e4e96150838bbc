//! An open loop in real time against a server whose answers are known from theory: one server, 100 us for each
//! request, Poisson arrivals at 80 % of what it can do (M/D/1).
//!
//! Prints the p50 and the p99 of the time since the intended start, and what queueing theory says of them. What is
//! longer than that is the machine's: a thread that did not run when it should have. In virtual time, where nothing
//! disturbs, the tests of `runner` hold both to 2 %.
//!
//! `cargo run --release -p plumb-load --example queueing [SECONDS]`

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, Error, ErrorKind, Extent, Latch, LbaRange, Nanos, Outcome,
    Queue, QueueFull, QueueOptions, RealClock, Request, Result, Time, Wait,
};
use plumb_load::{LoadOutcome, RunOptions, Team, Worker, WorkerOptions, run_teams};
use plumb_workload::{Amount, Arrival, ByteRange, Rate, Stop, Workload};

/// How long each request is served.
const SERVICE: Nanos = Nanos::micros(100);
/// Arrivals a second: 80 % of 10,000.
const RATE: f64 = 8000.0;
/// What M/D/1 takes at that load, waiting and service, in service times: the p50 and the p99 (Erlang's formula of
/// 1909, as in the tests of `runner`).
const THEORY: [f64; 2] = [2.276, 11.356];

struct Server {
    clock: Arc<dyn Clock>,
}

impl Device for Server {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::plain("server", Bytes::gib(1), Bytes(512))
    }

    fn open_queue(&self, _options: QueueOptions) -> Result<Box<dyn Queue>> {
        let clock = Arc::clone(&self.clock);
        Ok(Box::new(ServerQueue { clock, free_at: Nanos::ZERO, waiting: VecDeque::new() }))
    }

    fn extents(&self, _range: LbaRange) -> Result<Vec<Extent>> {
        Ok(Vec::new())
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "set the write cache of", "server"))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

struct ServerQueue {
    clock: Arc<dyn Clock>,
    free_at: Nanos,
    /// What was asked for, in order, and when each will be done.
    waiting: VecDeque<(Nanos, Request, Nanos)>,
}

impl Queue for ServerQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        let now = self.clock.now();
        self.free_at = self.free_at.max(now) + SERVICE;
        self.waiting.push_back((self.free_at, request, now));
        Ok(())
    }

    /// Spins until something is done: sleeping would be late by more than is to be measured.
    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let before = completions.len();
        loop {
            let now = self.clock.now();
            let done = self.waiting.iter().take_while(|request| request.0 <= now).count();
            // A server with a time stamp of its own: done when it was done.
            completions.extend(self.waiting.drain(..done).map(|(due, request, submitted_at)| Completion {
                tag: request.tag,
                outcome: Outcome::Done,
                submitted_at,
                completed_at: due,
                payload: request.payload,
            }));
            let is_over = wait.deadline.is_some_and(|deadline| deadline <= now);
            if completions.len() > before || wait.completions == 0 || is_over {
                return Ok(completions.len() - before);
            }
            std::hint::spin_loop();
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(10), |typed| typed.parse())?;
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let device = Server { clock: Arc::clone(&clock) };
    let range = ByteRange { offset: Bytes(0), length: Bytes::gib(1) };
    let workload = Workload {
        depth: 64,
        rate: Rate::Scheduled { amount: Amount::Iops(RATE), arrival: Arrival::Poisson },
        stop: Stop::after(Nanos::secs(seconds)),
        ..Workload::over(range, Bytes::kib(4))
    };
    let worker = Worker::new(&device, &workload, WorkerOptions::default())?;
    let never = AtomicBool::new(false);
    let options = RunOptions::whole(Time::Real(Arc::clone(&clock)), &never);
    let teams = run_teams(vec![Team::of(worker)], &options, &mut ())?;
    let outcome = LoadOutcome::together(teams[0].workers.iter().map(|worker| &worker.outcome));
    let latency = outcome.application().latency_from_intended_start.ok_or("nothing was measured")?;
    for (name, measured, theory) in [("p50", latency.p50, THEORY[0]), ("p99", latency.p99, THEORY[1])] {
        let theory = theory * SERVICE.as_secs_f64();
        println!(
            "{name} {:.1} us, theory {:.1} us, ratio {:.3}",
            measured * 1e6,
            theory * 1e6,
            measured / theory
        );
    }
    println!("late starts {}, longest {}", outcome.late_starts, outcome.backlog_max);
    Ok(())
}

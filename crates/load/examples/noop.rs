//! How many I/Os per second a worker can drive when the device costs nothing: the load generator's own cost.
//!
//! One worker, one thread, a queue that answers at its next poll with one reading of the clock for the whole batch.
//! Latencies, time series and payload stamps are recorded as in any run.
//!
//! `cargo run --release -p plumb-load --example noop [SECONDS [CASE]]`; only the cases whose names contain CASE.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, Error, ErrorKind, Extent, Iops, Latch, LbaRange, Nanos,
    Outcome, Queue, QueueFull, QueueOptions, RealClock, Request, Result, Time, Wait,
};
use plumb_load::{LoadOutcome, RunOptions, Team, Worker, WorkerOptions, run_teams};
use plumb_workload::{Access, ByteRange, Rate, Stop, Workload};

struct Noop {
    clock: Arc<dyn Clock>,
}

impl Device for Noop {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::plain("noop", Bytes::gib(64), Bytes(512))
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let pending = Vec::with_capacity(options.depth as usize);
        let clock = Arc::clone(&self.clock);
        Ok(Box::new(NoopQueue { pending, handed_at: clock.now(), clock }))
    }

    fn extents(&self, _range: LbaRange) -> Result<Vec<Extent>> {
        Ok(Vec::new())
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "set the write cache of", "noop"))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

struct NoopQueue {
    pending: Vec<Request>,
    handed_at: Nanos,
    clock: Arc<dyn Clock>,
}

impl Queue for NoopQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.pending.len() == self.pending.capacity() {
            return Err(QueueFull(request));
        }
        self.pending.push(request);
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let (submitted_at, completed_at) = (self.handed_at, self.clock.now());
        self.handed_at = completed_at;
        let count = self.pending.len();
        completions.extend(self.pending.drain(..).map(|request| Completion {
            tag: request.tag,
            outcome: Outcome::Done,
            submitted_at,
            completed_at,
            payload: request.payload,
        }));
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2), |typed| typed.parse())?;
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let device = Noop { clock: Arc::clone(&clock) };
    let range = ByteRange { offset: Bytes(0), length: Bytes::gib(64) };
    let base = Workload { stop: Stop::after(Nanos::secs(seconds)), ..Workload::over(range, Bytes::kib(4)) };
    let cases = [
        ("random read, depth 1", Workload { ..base.clone() }),
        ("random read, depth 32", Workload { depth: 32, ..base.clone() }),
        ("random read, depth 256", Workload { depth: 256, ..base.clone() }),
        ("random write, depth 32", Workload { depth: 32, write_percent: 100, ..base.clone() }),
        ("30 % writes, depth 32", Workload { depth: 32, write_percent: 30, ..base.clone() }),
        ("sequential read, depth 32", Workload { depth: 32, access: Access::SEQUENTIAL, ..base.clone() }),
        (
            "random read on a schedule, depth 32",
            Workload { depth: 32, rate: Rate::iops(1e9), ..base.clone() },
        ),
    ];
    let chosen = std::env::args().nth(2).unwrap_or_default();
    for (name, workload) in cases.into_iter().filter(|(name, _)| name.contains(&chosen)) {
        let worker = Worker::new(&device, &workload, WorkerOptions::default())?;
        let never = AtomicBool::new(false);
        let options = RunOptions::whole(Time::Real(Arc::clone(&clock)), &never);
        let teams = run_teams(vec![Team::of(worker)], &options, &mut ())?;
        let outcome = LoadOutcome::together(teams[0].workers.iter().map(|worker| &worker.outcome));
        let side = outcome.application();
        let cpu = outcome.worker_cpu.iter().flatten().map(|thread| thread.running).sum::<Nanos>();
        let each = cpu.0 as f64 / side.operations.max(1) as f64;
        println!("{name:36} {:>16}  {each:5.1} ns of processor time each", Iops(side.iops).to_string());
    }
    Ok(())
}

//! Running workers in real time: one thread each.
//!
//! The calling thread starts all workers at one moment, watches the flag to stop, shows progress, and collects what
//! the workers measured. The first fault stops all of them.
//!
//! Nothing a device does can keep [`run`] from returning. A request without an answer ends its worker by deadline; a
//! worker that does not come back from its queue at all is given up, and its thread is left behind. The queue of a
//! worker whose device fell silent is not dropped, since dropping would wait for the device: its memory stays
//! allocated, for the device may still write there.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plumb_block::{Clock, Nanos};
use plumb_measure::process::OwnThread;

use crate::fault::{Fault, LoadFailure};
use crate::outcome::{Ending, LoadOutcome};
use crate::progress::{Board, Progress};
use crate::worker::{POLL_MAX, Step, Worker};

/// How often the calling thread looks around.
const TICK: Duration = Duration::from_millis(25);
/// How often the observer is called.
const OBSERVED_EVERY: Nanos = Nanos::millis(100);
/// Sleeping is only this precise; the rest of a wait is spun.
const SLEEP_SLACK: Nanos = Nanos::micros(60);
/// How long threads that have reported may take to let go of their queues before they are left behind.
const LET_GO_WITHIN: Nanos = Nanos::secs(5);

/// Runs the workers to the end of their workload, until `stop` is set, or until something fails.
///
/// `clock` is the one that the devices' queues stamp completions with. `observer` is called about ten times a second
/// on the calling thread, and once at the end.
///
/// # Errors
/// The first fault, with all that was measured before it.
pub fn run(
    workers: Vec<Worker>,
    clock: &Arc<dyn Clock>,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&Progress),
) -> Result<LoadOutcome, LoadFailure> {
    let mut crew = Crew::gather(workers, clock);
    crew.start();
    crew.supervise(stop, observer);
    crew.dismiss()
}

/// What a thread says when it is done.
struct Report {
    worker: usize,
    outcome: LoadOutcome,
    fault: Option<Fault>,
}

/// A worker's thread, seen from the calling thread.
struct Member {
    thread: Option<JoinHandle<()>>,
    go: Option<Sender<Nanos>>,
    board: Arc<Board>,
    answer_within: Nanos,
    outcome: Option<LoadOutcome>,
    /// It has reported, or nothing more is expected of it.
    over: bool,
}

/// All threads.
struct Crew {
    clock: Arc<dyn Clock>,
    start: Nanos,
    stop: Arc<AtomicBool>,
    members: Vec<Member>,
    reports: Receiver<Report>,
    fault: Option<Fault>,
}

impl Crew {
    /// Makes the threads, which wait for their start.
    fn gather(workers: Vec<Worker>, clock: &Arc<dyn Clock>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (report, reports) = channel();
        let mut crew = Self {
            clock: Arc::clone(clock),
            start: Nanos::ZERO,
            stop,
            members: Vec::new(),
            reports,
            fault: None,
        };
        for (index, worker) in workers.into_iter().enumerate() {
            let (go, start) = channel();
            let board = Arc::new(Board::default());
            let answer_within = worker.answer_within();
            let shift = Shift {
                index,
                clock: Arc::clone(clock),
                stop: Arc::clone(&crew.stop),
                board: Arc::clone(&board),
                report: report.clone(),
            };
            let thread = thread::Builder::new()
                .name(format!("load-{index}"))
                .spawn(move || shift.work(worker, &start));
            let failed = thread.as_ref().err().map(ToString::to_string);
            let over = failed.is_some();
            crew.members.push(Member {
                thread: thread.ok(),
                go: Some(go),
                board,
                answer_within,
                outcome: None,
                over,
            });
            if let Some(why) = failed {
                crew.fail(Fault::Thread { worker: index, why });
                break;
            }
        }
        crew
    }

    fn start(&mut self) {
        self.start = self.clock.now();
        for worker in 0..self.members.len() {
            let member = &mut self.members[worker];
            member.board.seen(self.start);
            if member.go.take().is_some_and(|go| go.send(self.start).is_err()) {
                member.over = true;
                self.fail(Fault::Thread { worker, why: "it ended before the start".to_owned() });
            }
        }
    }

    fn supervise(&mut self, stop: &AtomicBool, observer: &mut dyn FnMut(&Progress)) {
        let mut next_view = self.start;
        while self.members.iter().any(|member| !member.over) {
            match self.reports.recv_timeout(TICK) {
                Ok(report) => self.collect(report),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.look_after_the_silent()
                }
            }
            if stop.load(Ordering::Relaxed) {
                self.stop.store(true, Ordering::Relaxed);
            }
            let now = self.clock.now();
            if now >= next_view {
                observer(&self.progress(now));
                next_view = now + OBSERVED_EVERY;
            }
        }
        observer(&self.progress(self.clock.now()));
    }

    fn collect(&mut self, report: Report) {
        let Some(member) = self.members.get_mut(report.worker) else { return };
        member.outcome = Some(report.outcome);
        member.over = true;
        if let Some(fault) = report.fault {
            self.fail(fault);
        }
    }

    /// Keeps the first fault and stops everybody.
    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Gives up threads that panicked, and those that do not come back from their queue.
    fn look_after_the_silent(&mut self) {
        let now = self.clock.now();
        for worker in 0..self.members.len() {
            let member = &self.members[worker];
            if member.over {
                continue;
            }
            let waited = now.since(member.board.seen_at());
            let fault = if member.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                // It may have reported between the last look and its end.
                while let Ok(report) = self.reports.try_recv() {
                    self.collect(report);
                }
                (!self.members[worker].over).then(|| Fault::Thread { worker, why: "it panicked".to_owned() })
            } else {
                // Twice the time, for the worker's own watch comes first wherever its queue returns at all.
                (waited > member.answer_within.saturating_add(member.answer_within).saturating_add(POLL_MAX))
                    .then_some(Fault::Hung { worker, waited })
            };
            if let Some(fault) = fault {
                self.members[worker].over = true;
                self.fail(fault);
            }
        }
    }

    fn progress(&self, now: Nanos) -> Progress {
        let mut progress = Progress { elapsed: now.since(self.start), ..Progress::default() };
        for member in &self.members {
            member.board.add_to(&mut progress);
        }
        progress
    }

    /// Waits for the threads to let go of their queues, and puts together what they measured.
    fn dismiss(self) -> Result<LoadOutcome, LoadFailure> {
        let deadline = self.clock.now() + LET_GO_WITHIN;
        let mut outcome: Option<LoadOutcome> = None;
        for member in self.members {
            if let (Some(thread), true) = (member.thread, member.outcome.is_some()) {
                while !thread.is_finished() && self.clock.now() < deadline {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            match (&mut outcome, member.outcome) {
                (Some(together), Some(more)) => together.merge(&more),
                (None, more) => outcome = more,
                (Some(_), None) => {}
            }
        }
        let mut outcome = outcome.unwrap_or_else(LoadOutcome::empty);
        match self.fault {
            None => Ok(outcome),
            Some(fault) => {
                outcome.ending = Ending::Interrupted;
                Err(LoadFailure { fault, outcome: Box::new(outcome) })
            }
        }
    }
}

/// What a worker's thread has.
struct Shift {
    index: usize,
    clock: Arc<dyn Clock>,
    stop: Arc<AtomicBool>,
    board: Arc<Board>,
    report: Sender<Report>,
}

impl Shift {
    fn work(self, mut worker: Worker, start: &Receiver<Nanos>) {
        let Ok(start) = start.recv() else { return };
        worker.start(start);
        let before = OwnThread::read(Path::new("/proc"));
        let fault = self.step_to_the_end(&mut worker).err();
        self.board.show(worker.totals());
        let cpu = before
            .zip(OwnThread::read(Path::new("/proc")))
            .map(|(before, after)| after.running.since(before.running));
        let is_silence = fault.as_ref().is_some_and(Fault::is_silence);
        let (mut outcome, queue) = worker.finish();
        outcome.worker_cpu = vec![cpu];
        // Fails only if the calling thread has given this one up.
        drop(self.report.send(Report { worker: self.index, outcome, fault }));
        if is_silence {
            std::mem::forget(queue);
        }
    }

    fn step_to_the_end(&self, worker: &mut Worker) -> Result<(), Fault> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                worker.interrupt();
            }
            let now = self.clock.now();
            self.board.seen(now);
            match worker.step(now)? {
                Step::Progressed | Step::Waiting { .. } => self.board.show(worker.totals()),
                Step::Idle { until } => self.sleep_towards(until),
                Step::Done => return Ok(()),
            }
        }
    }

    /// Sleeps until shortly before `until`, but not for long; spins when it is near.
    fn sleep_towards(&self, until: Nanos) {
        let left = until.since(self.clock.now()).0.min(POLL_MAX.0);
        match left.checked_sub(SLEEP_SLACK.0) {
            Some(sleep) => thread::sleep(Duration::from_nanos(sleep)),
            None => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests;

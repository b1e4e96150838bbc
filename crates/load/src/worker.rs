//! A worker: one queue, one generator, one recorder, driven step by step.
//!
//! Invariants:
//!
//! - at most `depth` requests are in flight;
//! - a flush starts when all writes before it have completed, and nothing starts until the flush has completed;
//! - an operation is submitted once, or, when the end is reached before its time, not at all.

pub(crate) mod shape;
pub(crate) mod stream;

use plumb_block::{Completion, Device, Nanos, Queue, QueueOptions, Request, Wait};
use plumb_workload::{Operation, Share, Workload};

use self::shape::Shape;
use self::stream::{Next, Stream};
use crate::batch::Batch;
use crate::fault::{Error, Fault};
use crate::in_flight::{InFlight, Kind, Table};
use crate::outcome::{Ending, LoadOutcome};
use crate::recorder::{Answer, Recorder};

/// How a worker behaves apart from its workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Which part of the workload is this worker's.
    pub share: Share,
    /// How long a request may go without an answer before the run is ended.
    pub answer_within: Nanos,
}

impl Default for WorkerOptions {
    /// All of the workload, and 30 s: as long as Linux by default gives a command to a SCSI disk.
    fn default() -> Self {
        Self { share: Share::WHOLE, answer_within: Nanos::secs(30) }
    }
}

/// What a step did, and what to do before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Something was submitted or completed: step again.
    Progressed,
    /// Requests are in flight and none completed. In real time the queue has already waited: step again. In virtual
    /// time the world must move, to `until` at the latest.
    Waiting {
        /// When the worker has something to do even if nothing completes.
        until: Nanos,
    },
    /// Nothing is in flight and nothing is to start before `until`.
    Idle {
        /// When.
        until: Nanos,
    },
    /// All is done.
    Done,
}

/// One worker on one device.
pub struct Worker {
    queue: Box<dyn Queue>,
    stream: Stream,
    shape: Shape,
    options: WorkerOptions,
    table: Table,
    writes_in_flight: u32,
    flush_in_flight: bool,
    /// A request that the queue had no room for; it goes first.
    held: Option<Request>,
    /// When the next operation is meant to start, if only time keeps it from starting.
    next_start: Option<Nanos>,
    completions: Vec<Completion>,
    /// Something could be submitted, but what is submitted goes to the device first.
    more_is_ready: bool,
    /// What begins with the first step.
    running: Option<Running>,
    interrupted: bool,
}

struct Running {
    start: Nanos,
    recorder: Recorder,
    batch: Batch,
    /// When to look again for requests without an answer.
    next_watch: Nanos,
}

/// How long a poll waits at most, so that a flag to stop is seen soon.
pub(crate) const POLL_MAX: Nanos = Nanos::millis(50);

impl Worker {
    /// A worker for a share of `workload` on `device`.
    ///
    /// # Errors
    /// If the workload is invalid or does not fit the device's blocks or size, or the device has no queue for it.
    pub fn new(device: &dyn Device, workload: &Workload, options: WorkerOptions) -> Result<Self, Error> {
        let stream = Stream::new(workload, options.share)?;
        let info = device.info();
        let (shape, pool) = Shape::new(workload, &info)?;
        let queue = device.open_queue(QueueOptions { depth: workload.depth, pool })?;
        Ok(Self {
            queue,
            stream,
            shape,
            options,
            table: Table::new(workload.depth),
            writes_in_flight: 0,
            flush_in_flight: false,
            held: None,
            next_start: None,
            more_is_ready: false,
            completions: Vec::with_capacity(workload.depth as usize),
            running: None,
            interrupted: false,
        })
    }

    /// Starts the window at `now`: what the first step does by itself, unless several workers are to share a start.
    pub fn start(&mut self, now: Nanos) {
        self.running = Some(Running {
            start: now,
            recorder: Recorder::starting_at(now, self.stream.expected(), self.stream.is_scheduled()),
            batch: Batch::starting_at(now),
            next_watch: now.saturating_add(self.watch_interval()),
        });
    }

    /// No operation starts any more, a flush that is due neither; those in flight are waited for.
    pub fn interrupt(&mut self) {
        self.interrupted |= self.stream.cut();
    }

    /// Submits what may start at `now`, polls, and records what completed.
    ///
    /// # Errors
    /// The first request that failed or was not answered. The worker is then over: [`finish`](Self::finish) it.
    pub fn step(&mut self, now: Nanos) -> Result<Step, Fault> {
        if self.running.is_none() {
            self.start(now);
        }
        let Some(mut running) = self.running.take() else { return Ok(Step::Done) };
        let step = self.step_in(&mut running, now);
        self.running = Some(running);
        step
    }

    fn step_in(&mut self, running: &mut Running, now: Nanos) -> Result<Step, Fault> {
        let submitted = self.submit_ready(running, now)?;
        if self.table.len() == 0 {
            return Ok(self.next_start.map_or(Step::Done, |until| Step::Idle { until }));
        }
        let completed = self.reap(running, now)?;
        self.watch(running, now)?;
        if submitted || completed {
            return Ok(Step::Progressed);
        }
        let watch = running.next_watch;
        Ok(Step::Waiting { until: self.next_start.map_or(watch, |start| start.min(watch)) })
    }

    /// How many requests are in flight.
    pub fn in_flight(&self) -> usize {
        self.table.len()
    }

    /// How long a request may go without an answer.
    pub(crate) fn answer_within(&self) -> Nanos {
        self.options.answer_within
    }

    /// Reads, writes and flushes that completed so far, and their bytes.
    pub(crate) fn totals(&self) -> [(u64, u64); 3] {
        self.running.as_ref().map_or([(0, 0); 3], |running| running.recorder.totals())
    }

    /// Ends the worker: what it measured, and its queue, whose drop waits for requests still in flight.
    pub fn finish(self) -> (LoadOutcome, Box<dyn Queue>) {
        let ending = if self.interrupted { Ending::Interrupted } else { Ending::Complete };
        let outcome = match self.running {
            Some(running) => running.recorder.finish(ending),
            None => LoadOutcome::empty(),
        };
        (outcome, self.queue)
    }

    /// Submits as long as there is room and something is due. Says whether anything was.
    fn submit_ready(&mut self, running: &mut Running, now: Nanos) -> Result<bool, Fault> {
        let mut submitted = false;
        if let Some(request) = self.held.take() {
            submitted = self.hand_over(request)?;
        }
        self.next_start = None;
        self.more_is_ready = false;
        let elapsed = now.since(running.start);
        let burst = self.table.len() + running.batch.burst(self.table.capacity());
        while self.held.is_none() && !self.flush_in_flight && !self.table.is_full() {
            if self.table.len() >= burst {
                self.more_is_ready = true;
                break;
            }
            match self.stream.take(elapsed, self.writes_in_flight > 0) {
                Next::Start { operation, intended } => {
                    if let (Some(interval), Some(intended)) = (self.stream.interval(), intended) {
                        running.recorder.started_late(elapsed.since(intended), interval);
                    }
                    let intended_at = intended.map_or(now, |intended| running.start + intended);
                    submitted |= self.submit(operation, intended_at, now)?;
                }
                Next::At(start) => {
                    self.next_start = Some(running.start.saturating_add(start));
                    break;
                }
                Next::AfterWrites => break,
                Next::End => {
                    running.recorder.ended(now, self.stream.unstarted(elapsed));
                    break;
                }
            }
        }
        running.recorder.in_flight(self.table.len() - usize::from(self.held.is_some()));
        Ok(submitted)
    }

    /// Submits one operation. Says whether the queue took it; if not it is held.
    fn submit(&mut self, operation: Operation, intended_at: Nanos, now: Nanos) -> Result<bool, Fault> {
        let (kind, lba) = self.shape.place(operation);
        let in_flight = InFlight { kind, lba, intended_at, handed_at: now };
        let tag = self.table.put(in_flight).ok_or_else(|| self.breach("more in flight than its depth"))?;
        match kind {
            Kind::Read => {}
            Kind::Write => self.writes_in_flight += 1,
            Kind::Flush => self.flush_in_flight = true,
        }
        let mut request = self.shape.request(tag, operation);
        request.deadline = Some(now.saturating_add(self.options.answer_within));
        self.hand_over(request)
    }

    fn hand_over(&mut self, request: Request) -> Result<bool, Fault> {
        match self.queue.submit(request) {
            Ok(()) => Ok(true),
            Err(_) if self.table.len() == 1 => Err(self.breach("it is full although nothing is in flight")),
            Err(full) => {
                self.held = Some(full.0);
                Ok(false)
            }
        }
    }

    /// Polls, and records what completed. Says whether anything did.
    fn reap(&mut self, running: &mut Running, now: Nanos) -> Result<bool, Fault> {
        let latest = now.saturating_add(POLL_MAX);
        let wait = if self.more_is_ready {
            Wait::NONE
        } else {
            Wait {
                completions: running.batch.wanted(self.table.len()),
                deadline: Some(self.next_start.map_or(latest, |start| start.min(latest))),
            }
        };
        self.queue
            .poll(wait, &mut self.completions)
            .map_err(|source| Fault::Queue { worker: self.index(), source })?;
        let Some(last) = self.completions.last().map(|completion| completion.completed_at) else {
            return Ok(false);
        };
        let mut completions = std::mem::take(&mut self.completions);
        running.batch.completed(completions.len(), last);
        let mut fault = Ok(true);
        for completion in completions.drain(..) {
            let recorded = self.record(running, &completion);
            if fault.is_ok() {
                fault = recorded.map(|()| true);
            }
        }
        self.completions = completions;
        fault
    }

    #[inline]
    fn record(&mut self, running: &mut Running, completion: &Completion) -> Result<(), Fault> {
        let Some(request) = self.table.take(completion.tag) else {
            return Err(self.breach("it answered a request that was not in flight"));
        };
        match request.kind {
            Kind::Read => {}
            Kind::Write => self.writes_in_flight -= 1,
            Kind::Flush => self.flush_in_flight = false,
        }
        running.recorder.completed(
            &request,
            Answer {
                outcome: completion.outcome,
                submitted_at: completion.submitted_at,
                completed_at: completion.completed_at,
                bytes: self.shape.bytes_of(request.kind),
            },
        );
        if completion.outcome.is_done() {
            return Ok(());
        }
        let (outcome, at) = (completion.outcome, completion.completed_at.since(running.start));
        Err(match request.kind {
            Kind::Flush => Fault::Flush { outcome, at },
            kind => Fault::Request { kind, range: self.shape.range_of(kind, request.lba), outcome, at },
        })
    }

    /// From time to time, whether a request is without an answer for too long: past its deadline the queue should
    /// have given it up, but that a queue fails to do so must not end in waiting for ever.
    fn watch(&self, running: &mut Running, now: Nanos) -> Result<(), Fault> {
        if now < running.next_watch {
            return Ok(());
        }
        running.next_watch = now.saturating_add(self.watch_interval());
        let patience = self.options.answer_within.saturating_add(self.watch_interval());
        match self.table.oldest() {
            Some(oldest) if now.since(oldest.handed_at) > patience => Err(Fault::Unanswered {
                kind: oldest.kind,
                range: self.shape.range_of(oldest.kind, oldest.lba),
                waited: now.since(oldest.handed_at),
            }),
            _ => Ok(()),
        }
    }

    fn watch_interval(&self) -> Nanos {
        Nanos((self.options.answer_within.0 / 4).max(1))
    }

    fn index(&self) -> usize {
        self.options.share.index() as usize
    }

    fn breach(&self, how: &'static str) -> Fault {
        Fault::Contract { worker: self.index(), how }
    }
}

#[cfg(test)]
mod tests;

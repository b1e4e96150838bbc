//! A worker: one queue, one generator, one recorder, driven step by step.
//!
//! Invariants:
//!
//! - at most `depth` requests are in flight;
//! - a flush starts when all writes before it have completed, and nothing starts until the flush has
//!   completed;
//! - while read data is verified, no request starts that overlaps one in flight;
//! - an operation is submitted once, or not at all if the workload ends before its time.

pub mod options;
pub mod replaying;
pub(crate) mod shape;
pub(crate) mod stream;

use std::sync::Arc;

use plumb_block::{Completion, Device, Errno, Nanos, Outcome, Queue, QueueOptions, Request, Wait};
use plumb_measure::VerifyResult;
use plumb_workload::{Operation, Workload};

pub use self::options::{Step, WorkerOptions};
use self::shape::Shape;
pub use self::shape::check;
use self::stream::{Next, Stream};
use crate::batch::Batch;
use crate::fault::{Error, Fault, FaultPlace};
use crate::in_flight::{InFlight, Kind, Table};
use crate::ledger::Ledger;
use crate::outcome::{Ending, LoadOutcome};
use crate::progress::Board;
use crate::recorder::{Answer, Recorder};
use crate::window::Window;

/// One worker on one device.
pub struct Worker {
    queue: Box<dyn Queue>,
    /// Name of the device in errors.
    place: FaultPlace,
    stream: Stream,
    shape: Shape,
    options: WorkerOptions,
    /// Length of the measurement, if time ends it.
    duration: Option<Nanos>,
    /// Expected content of each block, if it is verified.
    ledger: Option<Ledger>,
    table: Table,
    /// Number of requests that may be in flight now: from its own depth, or from the depth shared with other
    /// workers of its thread.
    allowance: usize,
    writes_in_flight: u32,
    flush_in_flight: bool,
    /// Request that the queue had no room for; it is submitted first.
    held: Option<Request>,
    /// Operation that waits for others on the same blocks, and its intended start.
    overlapping: Option<(Operation, Option<Nanos>)>,
    /// Intended start of the next operation, if only time delays it.
    next_start: Option<Nanos>,
    completions: Vec<Completion>,
    /// Number of requests that may still be submitted, but are kept until the device has had time to work.
    pub(crate) room_kept: usize,
    /// State that begins with the first step. Boxed, because each step takes it out and puts it back.
    running: Option<Box<RunningWorker>>,
    interrupted: bool,
    /// Time at which the last step saw completions, if it did.
    saw_at: Option<Nanos>,
    /// True if a step waits for completions.
    waits: bool,
    /// Board for displays during the run.
    board: Arc<Board>,
}

struct RunningWorker {
    start: Nanos,
    window: Arc<Window>,
    /// End of the workload since the start, with the cool-down.
    end: Option<Nanos>,
    recorder: Recorder,
    batch: Batch,
    /// Next check for requests without an answer.
    next_watch: Nanos,
}

/// Longest wait of a poll, so that a stop flag is seen soon.
pub(crate) const POLL_MAX: Nanos = Nanos::millis(50);

impl Worker {
    /// Creates a worker for a share of `workload` on `device`.
    ///
    /// # Errors
    /// Fails if the workload is invalid or does not fit the blocks or size of the device, or if the device
    /// cannot open a queue for it.
    pub fn new(device: &dyn Device, workload: &Workload, options: WorkerOptions) -> Result<Self, Error> {
        let mut stream = Stream::new(workload, options.share, &options.cursor)?;
        let info = device.info();
        if let Some(recorded) = options.replay.clone() {
            replaying::check(&recorded, &info)?;
            stream.replay(recorded);
        }
        let shape = Shape::new(workload, &info)?;
        let ledger = workload.verify.then(|| shape.ledger(workload, &info)).transpose()?;
        let queue = device.open_queue(QueueOptions { depth: workload.depth, pool: shape.pool.clone() })?;
        Ok(Self {
            queue,
            place: FaultPlace { device: info.name, logical_block: info.logical_block },
            stream,
            shape,
            options,
            duration: workload.stop.duration,
            ledger,
            table: Table::new(workload.depth),
            allowance: workload.depth as usize,
            writes_in_flight: 0,
            flush_in_flight: false,
            held: None,
            overlapping: None,
            next_start: None,
            room_kept: 0,
            completions: Vec::with_capacity(workload.depth as usize),
            running: None,
            interrupted: false,
            saw_at: None,
            waits: true,
            board: Arc::new(Board::default()),
        })
    }

    /// Starts at `now`; measures within `window`.
    pub fn start(&mut self, now: Nanos, window: &Arc<Window>) {
        let start = now.saturating_add(self.options.start_delay);
        self.running = Some(Box::new(RunningWorker {
            start,
            window: Arc::clone(window),
            end: None,
            recorder: Recorder::new(self.stream.is_scheduled()),
            batch: Batch::starting_at(start),
            next_watch: start.saturating_add(self.watch_interval()),
        }));
    }

    /// Prevents further operations and flushes from starting; those in flight are awaited.
    pub fn interrupt(&mut self) {
        self.interrupted |= self.stream.cut();
    }

    /// Submits the requests that may start at `now`, polls, and records completions. Does nothing before the
    /// start.
    ///
    /// # Errors
    /// Fails with the first request that failed or had no answer. The worker is then over:
    /// [`finish`](Self::finish) it.
    pub fn step(&mut self, now: Nanos) -> Result<Step, Fault> {
        let Some(mut running) = self.running.take() else { return Ok(Step::Done) };
        let step = self.step_in(&mut running, now);
        self.running = Some(running);
        step
    }

    fn step_in(&mut self, running: &mut RunningWorker, now: Nanos) -> Result<Step, Fault> {
        self.saw_at = None;
        if !running.recorder.is_measuring() {
            self.look_for_window(running);
        }
        if now < running.start && !self.stream.is_ended {
            return Ok(Step::Idle { until: running.start });
        }
        let submitted = self.submit_ready(running, now)?;
        if self.table.len() == 0 {
            return Ok(match self.next_start {
                Some(until) => Step::Idle { until },
                None if self.stream.is_ended => Step::Done,
                // The worker has no share of the depth now.
                None => Step::Waiting { until: running.next_watch },
            });
        }
        let completed = self.reap(running, now)?;
        self.watch(running, now)?;
        if submitted || completed {
            return Ok(Step::Progressed);
        }
        let watch = running.next_watch;
        Ok(Step::Waiting { until: self.next_start.map_or(watch, |start| start.min(watch)) })
    }

    /// Reads the begin of the measurement once it is known.
    fn look_for_window(&self, running: &mut RunningWorker) {
        let Some(from) = running.window.from() else { return };
        let from = from.max(running.start);
        running.recorder.measure(from, self.duration);
        running.end = self.duration.map(|duration| {
            from.since(running.start).saturating_add(duration).saturating_add(running.window.cooldown())
        });
    }

    /// Sets the largest number of requests in flight from now on; never more than the depth.
    pub(crate) fn allow(&mut self, allowance: usize) {
        self.allowance = allowance.min(self.table.capacity());
    }

    /// Sets whether a step waits for completions; it does not if other workers of its thread have work too,
    /// or in virtual time.
    pub(crate) fn set_waits(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// Publishes latencies on the board, too, for displays during the run. Call before the start.
    pub fn show_latency(&mut self) {
        self.board = Arc::new(Board::with_latency());
    }

    /// Returns the board on which the worker publishes its progress.
    pub(crate) fn board(&self) -> Arc<Board> {
        Arc::clone(&self.board)
    }

    /// Publishes the worker's counts on the board.
    pub(crate) fn show(&self) {
        if let Some(running) = &self.running {
            self.board.show(running.recorder.totals());
            self.board.give_figures(|| self.figures(running));
        }
    }

    /// Returns the measurements so far.
    fn figures(&self, running: &RunningWorker) -> LoadOutcome {
        LoadOutcome { verified: self.verified(), ..running.recorder.figures() }
    }

    fn verified(&self) -> Option<VerifyResult> {
        self.ledger.as_ref().map(|ledger| ledger.verified().clone())
    }

    /// Returns the end of its measurement, if known and if time ends it.
    pub(crate) fn measured_until(&self) -> Option<Nanos> {
        let running = self.running.as_ref()?;
        Some(running.start + running.end?.since(running.window.cooldown()))
    }

    /// Returns the queue of the worker, to wait for.
    pub(crate) fn queue(&self) -> &dyn Queue {
        &*self.queue
    }

    /// Returns the time if the last step just read it and it is accurate enough for the next step: a schedule
    /// needs the real clock.
    #[inline]
    pub(crate) fn time_just_read(&self) -> Option<Nanos> {
        self.saw_at.filter(|_| !self.stream.is_scheduled())
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.table.len()
    }

    /// Returns the time limit for the answer to a request.
    pub(crate) fn answer_within(&self) -> Nanos {
        self.options.answer_within
    }

    /// Ends the worker. Returns its measurements, the expected content of its blocks if requested, and its
    /// queue, whose drop waits for requests in flight.
    pub fn finish(self) -> (LoadOutcome, Option<Ledger>, Box<dyn Queue>) {
        let ending = if self.interrupted { Ending::Interrupted } else { Ending::Complete };
        let verified = self.verified();
        let outcome = match self.running {
            Some(running) => running.recorder.finish(ending, running.window.cooldown() > Nanos::ZERO),
            None => LoadOutcome::empty(),
        };
        (LoadOutcome { verified, ..outcome }, self.ledger, self.queue)
    }

    /// Submits requests while there is room and one is due. Returns true if it submitted any.
    fn submit_ready(&mut self, running: &mut RunningWorker, now: Nanos) -> Result<bool, Fault> {
        let mut submitted = false;
        if let Some(request) = self.held.take() {
            submitted = self.hand_over(request)?;
        }
        self.next_start = None;
        self.room_kept = 0;
        if let Some((operation, intended)) = self.overlapping.take() {
            if self.must_wait(operation) {
                self.overlapping = Some((operation, intended));
                return Ok(submitted);
            }
            submitted |= self.begin(running, operation, intended, now)?;
        }
        let elapsed = now.since(running.start);
        let burst = self.table.len() + running.batch.burst(self.table.capacity());
        while self.held.is_none() && !self.flush_in_flight && self.table.len() < self.allowance {
            if self.table.len() >= burst {
                self.room_kept = self.allowance - self.table.len();
                break;
            }
            match self.stream.take(elapsed, running.end, self.writes_in_flight > 0) {
                Next::Start { operation, intended } => {
                    if self.ledger.is_some() && self.must_wait(operation) {
                        self.overlapping = Some((operation, intended));
                        break;
                    }
                    submitted |= self.begin(running, operation, intended, now)?;
                }
                Next::At(start) => {
                    self.next_start = Some(running.start.saturating_add(start));
                    break;
                }
                Next::AfterWrites => break,
                Next::End => {
                    let unstarted = match self.interrupted {
                        true => 0,
                        false => self.stream.unstarted(elapsed, running.end),
                    };
                    running.recorder.ended(now, unstarted);
                    break;
                }
            }
        }
        running.recorder.in_flight(self.table.len() - usize::from(self.held.is_some()));
        Ok(submitted)
    }

    /// Returns true if `operation` must wait for requests in flight on the same blocks, so that its result is
    /// certain.
    fn must_wait(&self, operation: Operation) -> bool {
        let (kind, range, _) = self.shape.place(operation);
        kind != Kind::Flush && self.table.touches(range)
    }

    /// Starts an operation with the intended start `intended` since the start of the worker, if it has a
    /// schedule.
    #[inline]
    fn begin(
        &mut self,
        running: &mut RunningWorker,
        operation: Operation,
        intended: Option<Nanos>,
        now: Nanos,
    ) -> Result<bool, Fault> {
        let mut intended_at = now;
        if let (Some(interval), Some(intended)) = (self.stream.interval(), intended) {
            intended_at = running.start + intended;
            running.recorder.started_late(intended_at, now.since(intended_at), interval);
        }
        self.submit(operation, intended_at, now)
    }

    /// Submits one operation. Returns true if the queue accepted it; otherwise it is held.
    #[inline]
    fn submit(&mut self, operation: Operation, intended_at: Nanos, now: Nanos) -> Result<bool, Fault> {
        let (kind, range, generation) = self.shape.place(operation);
        let fua = matches!(operation, Operation::Write { fua: true, .. });
        let in_flight = InFlight { kind, range, generation, fua, intended_at, handed_at: now };
        let tag = self.table.put(in_flight).ok_or_else(|| self.breach("more in flight than its depth"))?;
        match kind {
            Kind::Read | Kind::Trim => {}
            Kind::Write => self.writes_in_flight += 1,
            Kind::Flush => self.flush_in_flight = true,
        }
        let request = self.shape.request(tag, operation, range);
        let mut request = request.ok_or_else(|| self.breach("it keeps buffers of completed requests"))?;
        request.deadline = Some(now.saturating_add(self.options.answer_within));
        self.hand_over(request)
    }

    #[inline]
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

    /// Polls and records completions. Returns true if there were any.
    fn reap(&mut self, running: &mut RunningWorker, now: Nanos) -> Result<bool, Fault> {
        let latest = now.saturating_add(POLL_MAX);
        let wait = if self.room_kept > 0 || !self.waits {
            Wait::NONE
        } else {
            Wait {
                completions: running.batch.wanted(self.table.len()),
                patience: Some(running.batch.patience()),
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
        if running.batch.completed(completions.len(), wait.completions, last) {
            running.recorder.came_late(completions.len() as u64);
        }
        self.saw_at = Some(last);
        let mut fault = None;
        for completion in &completions {
            if let Err(error) = self.record(running, completion) {
                fault.get_or_insert(error);
            }
        }
        running.recorder.settle();
        completions.clear();
        self.completions = completions;
        fault.map_or(Ok(true), Err)
    }

    #[inline]
    fn record(&mut self, running: &mut RunningWorker, completion: &Completion) -> Result<(), Fault> {
        let Some(request) = self.table.take(completion.tag) else {
            return Err(self.breach("it answered a request that was not in flight"));
        };
        match request.kind {
            Kind::Read | Kind::Trim => {}
            Kind::Write => self.writes_in_flight -= 1,
            Kind::Flush => self.flush_in_flight = false,
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.enter(&request, completion);
        }
        running.recorder.completed(
            &request,
            &Answer {
                outcome: completion.outcome,
                submitted_at: completion.submitted_at,
                completed_at: completion.completed_at,
                bytes: self.shape.bytes_of(request.range),
            },
        );
        if !completion.outcome.is_done() {
            return self.failed(running, &request, completion);
        }
        self.board.took(request.kind, completion.service_time());
        Ok(())
    }

    /// Handles a failed request: it ends the worker, unless errors are only counted. A failed flush always
    /// ends it, and so does a missing answer, since the device may still hold the memory of the request.
    #[cold]
    fn failed(
        &self,
        running: &RunningWorker,
        request: &InFlight,
        completion: &Completion,
    ) -> Result<(), Fault> {
        let (outcome, at) = (completion.outcome, completion.completed_at.since(running.start));
        match request.kind {
            Kind::Flush => Err(Fault::Flush { device: self.place.device.clone(), outcome, at }),
            _ if self.options.continue_on_error && matches!(outcome, Outcome::Failed(_)) => Ok(()),
            Kind::Write if self.options.counts_refusals && is_refusal(outcome) => Ok(()),
            kind => {
                let place = self.place.clone();
                Err(Fault::Request { place, kind, range: request.range, outcome, at })
            }
        }
    }

    /// Checks from time to time for a request without an answer for too long. The queue should have ended it
    /// at its deadline, but a queue that fails to do so must not cause an endless wait.
    fn watch(&self, running: &mut RunningWorker, now: Nanos) -> Result<(), Fault> {
        if now < running.next_watch {
            return Ok(());
        }
        running.next_watch = now.saturating_add(self.watch_interval());
        let patience = self.options.answer_within.saturating_add(self.watch_interval());
        match self.table.oldest() {
            Some(oldest) if now.since(oldest.handed_at) > patience => Err(Fault::Unanswered {
                place: self.place.clone(),
                kind: oldest.kind,
                range: oldest.range,
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

    #[cold]
    fn breach(&self, how: &'static str) -> Fault {
        Fault::Contract { worker: self.index(), how }
    }
}

/// Returns true if a write was refused before any part of it was written.
fn is_refusal(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Failed(Errno::EINVAL | Errno::EOPNOTSUPP))
}

#[cfg(test)]
mod tests;

//! Steps of the workers of a team in turn: the same in real and in virtual time.

use std::sync::Arc;

use plumb_block::{Nanos, Queue};

use crate::fault::Fault;
use crate::progress::Board;
use crate::team::{SharedDepth, WorkerOutcome};
use crate::window::Window;
use crate::worker::{Step, Worker};

/// Workers of a team.
pub(super) struct Steps {
    workers: Vec<Worker>,
    shared_depth: Option<SharedDepth>,
    /// True for each worker that is done.
    over: Vec<bool>,
}

impl Steps {
    /// Creates the steps. `waits` is true if a single worker waits for completions in its own queue.
    pub(super) fn new(mut workers: Vec<Worker>, shared_depth: Option<SharedDepth>, waits: bool) -> Self {
        let waits = waits && workers.len() == 1;
        workers.iter_mut().for_each(|worker| worker.set_waits(waits));
        Self { over: vec![false; workers.len()], shared_depth, workers }
    }

    pub(super) fn start(&mut self, now: Nanos, window: &Arc<Window>) {
        self.workers.iter_mut().for_each(|worker| worker.start(now, window));
    }

    pub(super) fn interrupt(&mut self) {
        self.workers.iter_mut().for_each(Worker::interrupt);
    }

    /// Steps every worker once. [`Step::Idle`] means that none has a request in flight.
    pub(super) fn step(&mut self, now: Nanos) -> Result<Step, Fault> {
        if let Some(shared) = &mut self.shared_depth {
            shared.grant(&mut self.workers, &self.over);
        }
        let (mut has_progressed, mut is_waiting, mut earliest) = (false, false, None::<Nanos>);
        for (worker, over) in self.workers.iter_mut().zip(&mut self.over).filter(|(_, over)| !**over) {
            let step = worker.step(now)?;
            match step {
                Step::Progressed => has_progressed = true,
                Step::Waiting { until } | Step::Idle { until } => {
                    is_waiting |= matches!(step, Step::Waiting { .. });
                    earliest = Some(earliest.map_or(until, |earliest| earliest.min(until)));
                }
                Step::Done => *over = true,
            }
        }
        Ok(match earliest {
            _ if has_progressed => Step::Progressed,
            Some(until) if is_waiting => Step::Waiting { until },
            Some(until) => Step::Idle { until },
            None => Step::Done,
        })
    }

    /// Returns the time if the last step just read it; only with one worker that waits itself.
    #[inline]
    pub(super) fn time_just_read(&self) -> Option<Nanos> {
        match &self.workers[..] {
            [worker] => worker.time_just_read(),
            _ => None,
        }
    }

    /// Returns the queues with requests in flight.
    pub(super) fn queues(&self) -> impl Iterator<Item = &dyn Queue> {
        self.workers.iter().filter(|worker| worker.in_flight() > 0).map(Worker::queue)
    }

    /// Returns true if a worker has waited in its own queue.
    pub(super) fn waits(&self) -> bool {
        self.workers.len() == 1
    }

    /// Publishes the progress of each worker.
    #[inline]
    pub(super) fn show(&self) {
        self.workers.iter().for_each(Worker::show);
    }

    /// Returns the boards of the workers.
    pub(super) fn boards(&self) -> Vec<Arc<Board>> {
        self.workers.iter().map(Worker::board).collect()
    }

    /// Returns the end of the measurement, if known and if time ends it.
    pub(super) fn measured_until(&self) -> Option<Nanos> {
        self.workers.iter().map(Worker::measured_until).max().flatten()
    }

    /// Returns the measurements of each worker, and the queues, whose drop waits for requests in flight.
    pub(super) fn finish(self) -> (Vec<WorkerOutcome>, Vec<Box<dyn Queue>>) {
        self.show();
        let finished = self.workers.into_iter().map(|worker| {
            let (outcome, ledger, queue) = worker.finish();
            (WorkerOutcome { outcome, ledger }, queue)
        });
        finished.unzip()
    }
}

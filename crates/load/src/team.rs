//! A team: the workers of one thread, one for each target of the thread.
//!
//! Most teams have one worker, which waits in its own queue. A larger team steps its workers in turn without
//! waiting, and when none made progress it waits for all their queues together. The workers of a team may
//! share one depth: then each completed request makes room for one on a target that is chosen by weight.

use crate::fault::Fault;
use crate::ledger::Ledger;
use crate::outcome::LoadOutcome;
use crate::span::CpuUse;
use crate::worker::Worker;

/// Prepares a thread before it begins: its processors, its priority.
pub type Prepare = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// Workers of one thread.
pub struct Team {
    /// One worker for each target.
    pub workers: Vec<Worker>,
    /// Shared depth of the workers, if any.
    pub shared_depth: Option<SharedDepth>,
    /// Function called on the thread before it begins.
    pub prepare: Option<Prepare>,
    /// Reads the processor time of the calling thread, if it is to be recorded.
    pub cpu: Option<fn() -> Option<CpuUse>>,
}

impl Team {
    /// Creates a team of one worker.
    pub fn single(worker: Worker) -> Self {
        Self { workers: vec![worker], shared_depth: None, prepare: None, cpu: None }
    }
}

/// Figures of a team.
#[derive(Debug)]
pub struct TeamOutcome {
    /// Processor time of its thread during the measurement; `None` if it was not requested or is not
    /// recorded, and in virtual time.
    pub cpu: Option<CpuUse>,
    /// Outcome of each worker, in order.
    pub workers: Vec<WorkerOutcome>,
}

impl TeamOutcome {
    /// Builds the outcome of workers that are not done, or whose ledgers are not needed.
    pub(crate) fn of_figures(figures: impl IntoIterator<Item = LoadOutcome>) -> Self {
        let workers = figures.into_iter().map(|outcome| WorkerOutcome { outcome, ledger: None });
        Self { cpu: None, workers: workers.collect() }
    }
}

/// Figures of a worker.
#[derive(Debug)]
pub struct WorkerOutcome {
    /// Figures of the worker.
    pub outcome: LoadOutcome,
    /// Expected content of the worker's blocks, if it was verified.
    pub ledger: Option<Ledger>,
}

/// Fault of a run, and the measurements before it.
#[derive(Debug, thiserror::Error)]
#[error("the load stopped at its first failure")]
pub struct TeamsFailure {
    /// First fault.
    #[source]
    pub fault: Fault,
    /// Results of each team, in order; an abandoned team has no workers here.
    pub teams: Vec<TeamOutcome>,
}

/// One depth for several targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedDepth {
    depth: usize,
    weights: Vec<u32>,
    /// Smooth weighted round robin: the target with the most credit is next, and its credit is reduced.
    credits: Vec<i64>,
}

impl SharedDepth {
    /// Returns a depth of `depth` requests over all targets, each chosen in proportion to its weight.
    pub fn new(depth: u32, weights: Vec<u32>) -> Self {
        let credits = vec![0; weights.len()];
        Self { depth: depth as usize, weights, credits }
    }

    /// Gives free room to the workers that are not done.
    pub(crate) fn grant(&mut self, workers: &mut [Worker], over: &[bool]) {
        let taken = |worker: &Worker| worker.in_flight() + worker.room_kept;
        let mut allowed: Vec<usize> = workers.iter().map(taken).collect();
        let mut free = self.depth.saturating_sub(allowed.iter().sum());
        while free > 0 {
            let Some(next) = self.next(over) else { break };
            allowed[next] += 1;
            free -= 1;
        }
        for (worker, allowance) in workers.iter_mut().zip(allowed) {
            worker.allow(allowance);
        }
    }

    /// Returns the next target among those that are not done.
    fn next(&mut self, over: &[bool]) -> Option<usize> {
        let live: Vec<usize> = (0..self.weights.len()).filter(|index| !over[*index]).collect();
        let mut all = 0;
        for index in &live {
            self.credits[*index] += i64::from(self.weights[*index]);
            all += i64::from(self.weights[*index]);
        }
        let next = live.into_iter().max_by_key(|index| (self.credits[*index], std::cmp::Reverse(*index)))?;
        self.credits[next] -= all;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_by_weight() {
        let mut shared = SharedDepth::new(8, vec![3, 1, 1]);
        let mut given = [0; 3];
        for _ in 0..100 {
            given[shared.next(&[false; 3]).unwrap()] += 1;
        }
        assert_eq!(given, [60, 20, 20]);
        let mut after = [0; 3];
        for _ in 0..100 {
            after[shared.next(&[true, false, false]).unwrap()] += 1;
        }
        assert_eq!(after, [0, 50, 50], "what is over gets nothing");
        assert_eq!(shared.next(&[true; 3]), None);
    }
}

//! Running workers in virtual time: on one thread, in a fixed order, so that the same seed gives the same run.
//!
//! Workers never move the clock. When none of them can go on, the world is asked to move: to its next event, or to
//! the time at which a worker has something to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::Nanos;

use crate::fault::{Fault, LoadFailure};
use crate::outcome::{Ending, LoadOutcome};
use crate::window::Window;
use crate::worker::{Step, Worker};

/// So many steps without the clock moving mean that it never will: a device that takes no time at all.
const STEPS_PER_INSTANT_MAX: u64 = 1 << 24;

/// Runs the workers from `start` to the end of their workload, until `stop` is set, or until something fails.
///
/// `world` is given a deadline. It moves the clock that stamps completions to its next event, or to the deadline if
/// there is none before, and returns the time that it is then.
///
/// # Errors
/// The first fault, with all that was measured before it.
pub fn run_virtual(
    mut workers: Vec<Worker>,
    start: Nanos,
    stop: &AtomicBool,
    world: &mut dyn FnMut(Nanos) -> Nanos,
) -> Result<LoadOutcome, LoadFailure> {
    let window = Window::closed(Nanos::ZERO);
    window.begin_at(start);
    let window = Arc::new(window);
    for worker in &mut workers {
        worker.start(start, &window);
    }
    let ended = advance_to_the_end(&mut workers, start, stop, world);
    let outcome = workers
        .into_iter()
        .map(|worker| worker.finish().0)
        .reduce(|mut together, more| {
            together.merge(&more);
            together
        })
        .unwrap_or_else(LoadOutcome::empty);
    match ended {
        Ok(()) => Ok(outcome),
        Err(fault) => {
            let outcome = LoadOutcome { ending: Ending::Interrupted, ..outcome };
            Err(LoadFailure { fault, outcome: Box::new(outcome) })
        }
    }
}

fn advance_to_the_end(
    workers: &mut [Worker],
    start: Nanos,
    stop: &AtomicBool,
    world: &mut dyn FnMut(Nanos) -> Nanos,
) -> Result<(), Fault> {
    let mut now = start;
    let mut moved = true;
    loop {
        if stop.load(Ordering::Relaxed) {
            workers.iter_mut().for_each(Worker::interrupt);
        }
        let mut round = Round::default();
        for worker in &mut *workers {
            round.step_through(worker, now)?;
        }
        let Some(deadline) = round.deadline else { return Ok(()) };
        if !moved && !round.progressed {
            return Err(Fault::Standstill { at: now });
        }
        let next = world(deadline);
        moved = next > now;
        now = next.max(now);
    }
}

/// What all workers did at one moment.
#[derive(Default)]
struct Round {
    /// The first time at which one of them has something to do; `None` if all are done.
    deadline: Option<Nanos>,
    progressed: bool,
}

impl Round {
    /// Steps `worker` until it can do nothing more at `now`.
    fn step_through(&mut self, worker: &mut Worker, now: Nanos) -> Result<(), Fault> {
        for _ in 0..STEPS_PER_INSTANT_MAX {
            match worker.step(now)? {
                Step::Progressed => self.progressed = true,
                Step::Waiting { until } | Step::Idle { until } => {
                    self.deadline = Some(self.deadline.map_or(until, |earliest| earliest.min(until)));
                    return Ok(());
                }
                Step::Done => return Ok(()),
            }
        }
        Err(Fault::Standstill { at: now })
    }
}

#[cfg(test)]
mod tests;

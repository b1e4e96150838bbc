//! A queue of the model.

use std::os::fd::BorrowedFd;

use super::bug::Bug;
use super::device::ModelDevice;
use crate::clock::Clock;
use crate::conformance::crash_rules::Moment;
use crate::device::{Queue, QueueFull, Wait};
use crate::error::Result;
use crate::request::{Completion, Request};

/// A queue of the model.
pub(super) struct ModelQueue {
    pub(super) device: ModelDevice,
    pub(super) id: u64,
    pub(super) depth: usize,
    pub(super) waiting: Vec<(Request, Moment)>,
}

impl Queue for ModelQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        let mut state = self.device.state();
        let mine = state.jobs.iter().filter(|job| job.queue == self.id).count();
        if self.waiting.len() + mine >= self.depth {
            return match self.device.options.bug {
                Some(Bug::FullQueueDropsRequest) => Ok(()),
                Some(Bug::FullQueueChangesRequest) => {
                    request.range.lba = request.range.lba + 1;
                    Err(QueueFull(request))
                }
                _ => Err(QueueFull(request)),
            };
        }
        state.moment += 1;
        let moment = state.moment;
        drop(state);
        self.waiting.push((request, moment));
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let now = self.device.clock.now();
        let before = completions.len();
        let options = self.device.options;
        let mut state = self.device.state();
        for (request, submitted) in self.waiting.drain(..) {
            state.hand_over(self.id, request, submitted, now, &options);
        }
        state.answer(self.id, now, &options, completions);
        let count = completions.len() - before;
        Ok(if options.bug == Some(Bug::PollMiscounts) && count > 0 { count - 1 } else { count })
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for ModelQueue {
    fn drop(&mut self) {
        let mut state = self.device.state();
        let (mine, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.jobs).into_iter().partition(|job| job.queue == self.id);
        state.jobs = others;
        drop(state);
        if self.device.options.bug == Some(Bug::DropLeaksBuffers) {
            std::mem::forget(mine);
        }
    }
}

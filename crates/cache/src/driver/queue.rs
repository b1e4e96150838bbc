//! [`CacheQueue`]: a queue of the cached device, through which a client submits requests to the cache.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use plumb_block::{Clock as _, Completion, Queue, QueueFull, Request, Result, Wait, waiting_poll};

use super::shared::{RunningCache, become_io_flusher};
use super::wake::Wake;

/// A queue of the cached device; [`shared`](super::shared) calls it a front queue.
pub(super) struct CacheQueue {
    pub(super) running: Arc<RunningCache>,
    pub(super) port: usize,
    /// Descriptor that wakes the owner; only in real time.
    pub(super) wake: Option<Arc<Wake>>,
    pub(super) capacity: usize,
    pub(super) in_flight: usize,
}

impl Queue for CacheQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.in_flight == self.capacity {
            return Err(QueueFull(request));
        }
        self.running.submit(self.port, request);
        self.in_flight += 1;
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        if wait.completions > 0 {
            let (in_flight, time) = (self.in_flight, self.running.time().clone());
            return waiting_poll(self, in_flight, wait, completions, &mut &time);
        }
        if self.wake.is_some() {
            become_io_flusher();
        }
        let first = completions.len();
        let count = self.running.poll(self.port, self.in_flight, completions);
        self.in_flight -= count;
        if self.wake.is_some() && count > 0 {
            // Requests that completed a while ago are noticed only now.
            let now = self.running.time().now();
            completions[first..].iter_mut().for_each(|completion| completion.completed_at = now);
        }
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(|wake| wake.as_fd())
    }
}

impl Drop for CacheQueue {
    fn drop(&mut self) {
        self.running.close(self.port);
    }
}

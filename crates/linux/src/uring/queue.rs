//! Queue of a device that submits its requests through an io_uring.

#![expect(unsafe_code, reason = "submission entries carry the addresses of buffers")]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use plumb_block::{
    Bytes, Completion, Errno, Error, ErrorKind, Nanos, Queue, QueueFull, QueueOptions, Request, Result, Wait,
};

use super::entry::{self, PushOutcome};
use super::in_flight::InFlight;
use super::ring::Ring;
use crate::block_ioctl;
use crate::file::Target;
use crate::file::work::Call;

/// A queue over io_uring. It belongs to the thread that polls it. It may move to another thread while nothing
/// is in flight, or at any time if the target is [shared](crate::FileOptions::is_shared).
pub(crate) struct UringQueue {
    target: Arc<Target>,
    ring: Ring,
    requests: InFlight,
    /// Number of waiting requests, oldest first, that are already in the submission queue.
    pushed: usize,
}

impl UringQueue {
    pub(crate) fn new(target: Arc<Target>, file: OwnedFd, options: QueueOptions) -> Result<Self> {
        let depth = options.depth;
        let ring = Ring::new(Arc::clone(&target), file, depth, options.pool.clone()).map_err(|error| {
            Error::io(&error, "open a queue to", target.name.as_str())
                .because(format!("an io_uring of depth {depth}: {error}"))
        })?;
        Ok(Self { target, ring, requests: InFlight::new(depth, options.pool), pushed: 0 })
    }

    /// Moves waiting requests to the submission queue with the submission time `now`. Discards of block
    /// devices, which io_uring does not support, are executed immediately.
    fn push_waiting(&mut self, now: Nanos) {
        while let Some(index) = self.requests.waiting().get(self.pushed).copied() {
            let Some((call, memory)) = self.requests.prepare(index, now) else { return };
            // SAFETY: the memory belongs to the slot, which keeps it unused until the kernel has answered.
            match unsafe { entry::push(&mut self.ring, call, memory, u64::from(index)) } {
                PushOutcome::Yes => self.pushed += 1,
                PushOutcome::Full => return,
                PushOutcome::NotForRings => self.make_aside(call),
            }
        }
    }

    fn make_aside(&mut self, call: Call) {
        let index = self.requests.take_aside(self.pushed);
        let answer = match call {
            Call::Discard { offset, length } => {
                block_ioctl::discard(self.target.file(), Bytes(offset), Bytes(length))
            }
            Call::Truncate => rustix::fs::ftruncate(self.target.file(), 0).map_err(io::Error::from),
            _ => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        };
        let answer = answer.map(|()| 0).map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno));
        self.requests.answered_aside(index, answer, &self.target);
    }

    /// Submits pushed entries and waits for `want` completions until `until`.
    fn enter(&mut self, want: usize, until: Option<Nanos>, now: Nanos) -> Result<()> {
        if self.pushed == 0 && want == 0 && !self.ring.has_deferred() {
            return Ok(());
        }
        let timeout = until.map(|until| Duration::from(until.since(now)));
        match self.ring.enter(want, timeout) {
            Ok(taken) => {
                self.requests.handed_over(taken);
                self.pushed -= taken;
                Ok(())
            }
            Err(error) => self.recover(&error),
        }
    }

    fn recover(&mut self, error: &io::Error) -> Result<()> {
        let place = self.target.name.as_str();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(()),
            // Completions must be fetched first, or the kernel is short of memory until some requests
            // complete.
            Some(libc::EBUSY | libc::EAGAIN) if self.requests.in_kernel > 0 => Ok(()),
            Some(libc::EEXIST) if self.requests.in_kernel == 0 => {
                self.pushed = 0;
                self.ring
                    .renew()
                    .and_then(|()| self.ring.claim())
                    .map_err(|error| Error::io(&error, "move a queue of", place))
            }
            Some(libc::EEXIST) => Err(Error::new(ErrorKind::Invalid, "poll a queue of", place)
                .because("it moved to another thread while requests were in flight")),
            _ => Err(Error::io(error, "poll a queue of", place)),
        }
    }

    /// Appends the available completions, all stamped with one reading of the clock taken after they were
    /// seen. Returns that reading.
    fn reap(&mut self, completions: &mut Vec<Completion>) -> Nanos {
        let Self { target, ring, requests, .. } = self;
        let batch = ring.completions();
        let now = target.clock.now();
        for answer in batch {
            let moved = u64::try_from(answer.result()).map_err(|_| match answer.result().wrapping_neg() {
                // The submitting thread has ended, and with it the calls that the kernel had not started:
                // repeat the call.
                libc::ECANCELED if target.options.is_shared => Errno(libc::EINTR),
                errno => Errno(errno),
            });
            // `push_waiting` sets the user data to a slot index.
            requests.answered(answer.user_data() as u32, moved, target, now, completions);
        }
        requests.complete_ended(now, completions);
        now
    }
}

impl Queue for UringQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        self.requests.admit(request, &self.target).map_err(QueueFull)
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        self.ring.claim().map_err(|error| Error::io(&error, "poll a queue of", self.target.name.as_str()))?;
        self.ring.clear_wake();
        let before = completions.len();
        let asked = wait.completions as usize;
        let mut now = self.target.clock.now();
        let patient_until = wait.patience.filter(|_| asked > 1).map(|patience| now.saturating_add(patience));
        loop {
            self.push_waiting(now);
            let mut want = asked.saturating_sub(completions.len() - before).min(self.requests.awaited());
            let mut until = earlier(wait.deadline, self.requests.deadline_earliest());
            match patient_until {
                Some(patient_until) if patient_until > now => until = earlier(until, Some(patient_until)),
                Some(_) => want = want.min(1),
                None => {}
            }
            if self.requests.has_ended() || until.is_some_and(|until| until <= now) {
                want = 0;
            }
            self.enter(want, until, now)?;
            now = self.reap(completions);
            self.requests.abandon_late(now, completions);
            let is_handed_over = self.requests.waiting().is_empty();
            let count = completions.len() - before;
            let is_out_of_patience = count > 0 && patient_until.is_some_and(|until| until <= now);
            let is_enough = count >= asked || is_out_of_patience || self.requests.awaited() == 0;
            let is_late = wait.deadline.is_some_and(|deadline| deadline <= now);
            if is_handed_over && (is_enough || is_late) {
                return Ok(completions.len() - before);
            }
        }
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.wake_fd())
    }
}

/// Waits until the kernel no longer accesses any buffer. Requests that the kernel never received are given
/// up.
impl Drop for UringQueue {
    fn drop(&mut self) {
        let mut ignored = Vec::new();
        while self.requests.in_kernel > 0 {
            match self.ring.enter(1, None) {
                // The count includes entries that were pushed but not submitted before.
                Ok(taken) => {
                    self.requests.handed_over(taken);
                    self.pushed -= taken;
                }
                // Interrupted, or completions must be fetched first.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {}
                // The dropping thread does not own the ring: the kernel cannot be asked, so the memory must
                // be leaked.
                Err(_) => return self.requests.leak(),
            }
            self.reap(&mut ignored);
            ignored.clear();
        }
    }
}

fn earlier(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    one.into_iter().chain(other).min()
}

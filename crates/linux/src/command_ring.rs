//! A ring of commands to a driver (`IORING_OP_URING_CMD`), and one additional descriptor to watch.
//!
//! A driver completes a command when it has a request, so a single wait serves both requests and the
//! descriptor.

#![expect(unsafe_code, reason = "commands carry the addresses of memory")]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use io_uring::squeue::{Entry, EntryMarker};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

/// User data of the poll of the watched descriptor, which no command has.
const WATCHED: u64 = u64::MAX;

/// Time to wait for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Return pending events without waiting.
    None,
    /// Wait for at most this time.
    AtMost(Duration),
    /// Wait until there is an event.
    Endless,
}

/// A ring for the commands of one thread.
pub(crate) struct CommandRing<E: EntryMarker> {
    ring: IoUring<E, cqueue::Entry>,
    watched: Option<OwnedFd>,
    is_watching: bool,
}

impl<E: EntryMarker + From<Entry>> CommandRing<E> {
    /// Creates a ring for up to `commands` commands at a time, and an optional descriptor to
    /// [watch](Self::watch).
    ///
    /// # Errors
    /// Fails as io_uring_setup(2) does.
    pub(crate) fn new(commands: u32, watched: Option<OwnedFd>) -> io::Result<Self> {
        let ring = IoUring::builder().dontfork().build(commands + 2)?;
        Ok(Self { ring, watched, is_watching: false })
    }

    /// Queues a command; its user data identifies it. It is submitted at the next wait for events.
    ///
    /// # Errors
    /// Fails as io_uring_enter(2) does.
    ///
    /// # Safety
    /// The memory that the command refers to must stay valid and otherwise unused until the command has
    /// completed.
    pub(crate) unsafe fn push(&mut self, command: &E) -> io::Result<()> {
        // SAFETY: guaranteed by the caller.
        let mut pushed = unsafe { self.ring.submission().push(command) };
        if pushed.is_err() {
            ignore_interruption(self.ring.submit())?;
            // SAFETY: the caller guarantees it for the second attempt, too.
            pushed = unsafe { self.ring.submission().push(command) };
        }
        pushed.map_err(|full| io::Error::other(full.to_string()))
    }

    /// Starts to watch the descriptor for readability. Has no effect without a descriptor, or while it is
    /// being watched.
    ///
    /// # Errors
    /// Fails as io_uring_enter(2) does.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        let Some(watched) = self.watched.as_ref().filter(|_| !self.is_watching) else { return Ok(()) };
        let watched = watched.as_raw_fd();
        self.poll(watched, WATCHED)?;
        self.is_watching = true;
        Ok(())
    }

    /// Queues a poll with user data `number` that completes when `file` is readable.
    ///
    /// # Errors
    /// Fails as io_uring_enter(2) does.
    pub(crate) fn poll(&mut self, file: RawFd, number: u64) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(file), libc::POLLIN.cast_unsigned().into());
        // SAFETY: a poll refers to no memory.
        unsafe { self.push(&E::from(entry.build().user_data(number))) }
    }

    /// Submits queued commands, waits until a command has completed or the watched descriptor is readable,
    /// and calls `take` with the number and the result of each completed command.
    ///
    /// # Errors
    /// Fails as io_uring_enter(2) does.
    pub(crate) fn wait(&mut self, patience: Patience, mut take: impl FnMut(u64, i32)) -> io::Result<()> {
        let patience = if self.collect(&mut take) { Patience::None } else { patience };
        ignore_interruption(match patience {
            Patience::None => self.ring.submit(),
            Patience::Endless => self.ring.submit_and_wait(1),
            Patience::AtMost(limit) => {
                let limit = Timespec::from(limit);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
        })?;
        self.collect(&mut take);
        Ok(())
    }

    /// Collects completions. Returns true if there were any.
    fn collect(&mut self, take: &mut impl FnMut(u64, i32)) -> bool {
        let mut has_any = false;
        for completion in &mut self.ring.completion() {
            has_any = true;
            match completion.user_data() {
                WATCHED => self.is_watching = false,
                number => take(number, completion.result()),
            }
        }
        has_any
    }
}

fn ignore_interruption(entered: io::Result<usize>) -> io::Result<()> {
    match entered.map_err(|error| (error.raw_os_error(), error)) {
        // Completions that must be collected first (EBUSY), or the end of the wait.
        Ok(_) | Err((Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY), _)) => Ok(()),
        Err((_, error)) => Err(error),
    }
}

//! How a queue in real time sleeps and is woken: a timer of the kernel with a descriptor that others can wait on too.
//!
//! A timerfd goes off when it is set to, without the slack that the kernel allows itself for a sleeping thread.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plumb_block::{Error, Nanos, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// Goes off only when rung.
const NEVER: u64 = u64::MAX;
/// What it is set to is not known: the next setting is carried out.
const UNSET: u64 = u64::MAX - 1;
/// Has been rung.
const RUNG: u64 = 0;

/// A timer. It stays rung until it is set again.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    /// Whether somebody waits on the descriptor rather than in [`sleep`](Self::sleep).
    is_watched: AtomicBool,
    /// Whether its owner is awake and about to look.
    is_attended: AtomicBool,
    /// What it is set to, by the clock of the drive.
    due: AtomicU64,
}

impl Alarm {
    /// An alarm that is not set.
    pub(crate) fn new() -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|errno| Error::io(&errno.into(), "make a timer for", "a simulated drive"))?;
        Ok(Self {
            timer,
            is_watched: AtomicBool::new(false),
            is_attended: AtomicBool::new(false),
            due: AtomicU64::new(NEVER),
        })
    }

    /// The descriptor, which is readable when the alarm has gone off.
    pub(crate) fn watched(&self) -> BorrowedFd<'_> {
        // Nobody kept it set until now: it goes off once, so that whoever waits looks again.
        if !self.is_watched.swap(true, Ordering::Relaxed) {
            self.ring();
        }
        self.timer.as_fd()
    }

    /// Its owner is awake, and looks at the drive before it sleeps: nobody need ring. Said, and asked, while the drive is
    /// locked.
    pub(crate) fn attend(&self, is_attended: bool) {
        self.is_attended.store(is_attended, Ordering::Relaxed);
    }

    /// Whether ringing would tell its owner nothing.
    pub(crate) fn is_attended(&self) -> bool {
        self.is_attended.load(Ordering::Relaxed)
    }

    /// As [`set`](Self::set); costs nothing while nobody watches the descriptor.
    pub(crate) fn set_if_watched(&self, now: Nanos, due: Option<Nanos>) {
        if self.is_watched.load(Ordering::Relaxed) {
            self.set(now, due);
        } else {
            self.due.store(UNSET, Ordering::Relaxed);
        }
    }

    /// Goes off at `due`, or not at all.
    pub(crate) fn set(&self, now: Nanos, due: Option<Nanos>) {
        let wanted = due.map_or(NEVER, |due| due.0);
        if self.due.swap(wanted, Ordering::Relaxed) != wanted {
            // A zero would disarm it.
            self.arm(due.map_or(0, |due| due.since(now).0.max(1)));
        }
    }

    /// Goes off now.
    pub(crate) fn ring(&self) {
        self.due.store(RUNG, Ordering::Relaxed);
        self.arm(1);
    }

    fn arm(&self, nanos: u64) {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ };
        let set = timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: zero, it_value: value },
        );
        debug_assert!(set.is_ok(), "a valid timer and a valid time: {set:?}");
    }

    /// Sleeps until it goes off.
    pub(crate) fn wait(&self) -> Result<()> {
        match poll(&mut [PollFd::new(&self.timer, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::io(&errno.into(), "wait for", "a simulated drive")),
        }
    }
}

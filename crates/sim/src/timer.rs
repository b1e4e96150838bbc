//! Timer that wakes a queue in real time: a timerfd(2) that can be polled together with other descriptors.
//!
//! The timer expires without the slack that the kernel applies to sleeping threads.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Error, Nanos, Result};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A timer. Once expired it stays so until it is set again.
#[derive(Debug)]
pub(crate) struct Timer {
    descriptor: Arc<OwnedFd>,
    setting: Setting,
}

/// Setting of a timer, on the drive's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    Never,
    At(Nanos),
    Fired,
}

/// Creates the descriptor of a timer, which is readable when the timer has expired.
pub(crate) fn descriptor() -> Result<OwnedFd> {
    timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
        .map_err(|errno| Error::io(&errno.into(), "make a timer for", "a simulated drive"))
}

impl Timer {
    /// Creates a timer that is not set.
    pub(crate) fn new(descriptor: Arc<OwnedFd>) -> Self {
        Self { descriptor, setting: Setting::Never }
    }

    /// Sets the timer to `due`, or disarms it.
    pub(crate) fn set(&mut self, now: Nanos, due: Option<Nanos>) {
        let setting = due.map_or(Setting::Never, Setting::At);
        if std::mem::replace(&mut self.setting, setting) != setting {
            // Zero would disarm the timer.
            self.arm(due.map_or(0, |due| due.since(now).0.max(1)));
        }
    }

    /// Makes the timer expire now.
    pub(crate) fn fire(&mut self) {
        if std::mem::replace(&mut self.setting, Setting::Fired) != Setting::Fired {
            self.arm(1);
        }
    }

    fn arm(&self, nanos: u64) {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ };
        let time = Itimerspec { it_interval: zero, it_value };
        let set = timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &time);
        debug_assert!(set.is_ok(), "a valid timer and a valid time: {set:?}");
    }
}

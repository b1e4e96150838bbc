//! One descriptor for all reasons to poll a queue: its connection, mail from other pollers, and deadlines.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_block::Nanos;
use rustix::event::epoll::{CreateFlags, EventData, EventFlags, add, create, delete, modify};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// An epoll set, which is readable while there is a reason to poll.
pub(super) struct Wakeups {
    epoll: OwnedFd,
    /// Eventfd that signals mail.
    mail: OwnedFd,
    timer: OwnedFd,
    state: Mutex<State>,
}

struct State {
    /// The connection, and whether it is watched for room to write.
    socket: Option<(Arc<OwnedFd>, bool)>,
    has_timer: bool,
}

impl Wakeups {
    pub(super) fn new(socket: &Arc<OwnedFd>) -> io::Result<Self> {
        let epoll = create(CreateFlags::CLOEXEC)?;
        let mail = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        for watched in [mail.as_fd(), timer.as_fd(), socket.as_fd()] {
            add(&epoll, watched, EventData::new_u64(0), EventFlags::IN)?;
        }
        let state = Mutex::new(State { socket: Some((Arc::clone(socket), false)), has_timer: false });
        Ok(Self { epoll, mail, timer, state })
    }

    /// Signals that there is mail.
    pub(super) fn mail(&self) {
        // The write fails only if the counter is full, and then the counter is readable already.
        rustix::io::write(&self.mail, &1_u64.to_ne_bytes()).ok();
    }

    /// Clears the signal after the mail was collected.
    pub(super) fn mail_taken(&self) {
        // The read fails only if the counter is zero.
        rustix::io::read(&self.mail, &mut [0_u8; 8]).ok();
    }

    /// Sets the watch on the connection, also for writing if `to_write`, unless it is lost; and the timer for
    /// the next deadline, a duration from now.
    pub(super) fn update(&self, is_lost: bool, to_write: bool, deadline: Option<Nanos>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut state.socket {
            Some((socket, _)) if is_lost => {
                // If removal fails, the set only wakes up too often.
                delete(&self.epoll, &**socket).ok();
                state.socket = None;
            }
            Some((socket, was)) if *was != to_write => {
                let flags = if to_write { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
                if modify(&self.epoll, &**socket, EventData::new_u64(0), flags).is_ok() {
                    *was = to_write;
                }
            }
            _ => {}
        }
        if deadline.is_some() || state.has_timer {
            state.has_timer = deadline.is_some();
            // Zero would disarm the timer.
            let left = deadline.map_or(0, |left| left.0.max(1));
            let it_value = Timespec {
                tv_sec: i64::try_from(left / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: (left % 1_000_000_000) as i64,
            };
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let time = Itimerspec { it_interval, it_value };
            // The call cannot fail for a timer of our own and a valid time.
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time).ok();
        }
    }
}

impl AsFd for Wakeups {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

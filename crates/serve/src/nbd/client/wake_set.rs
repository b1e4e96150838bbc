//! One descriptor for everything that a queue may have to be polled for: its connection, its mail, its deadlines.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_block::Nanos;
use rustix::event::epoll::{CreateFlags, EventData, EventFlags, add, create, delete, modify};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::wake::Wake;

/// An epoll set that follows the queue from connection to connection.
pub(super) struct WakeSet {
    epoll: OwnedFd,
    timer: OwnedFd,
    followed: Mutex<Followed>,
}

#[derive(Default)]
struct Followed {
    socket: Option<(Arc<OwnedFd>, bool)>,
    has_timer: bool,
}

impl WakeSet {
    pub(super) fn new(wake: &Wake) -> io::Result<Self> {
        let epoll = create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        add(&epoll, wake, EventData::new_u64(0), EventFlags::IN)?;
        add(&epoll, &timer, EventData::new_u64(0), EventFlags::IN)?;
        Ok(Self { epoll, timer, followed: Mutex::default() })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Follows `socket`, for room to write too if told so, and the next deadline, so much from now.
    pub(super) fn tend(&self, socket: Option<(&Arc<OwnedFd>, bool)>, deadline: Option<Nanos>) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.follow(&self.epoll, socket);
        if deadline.is_some() || followed.has_timer {
            followed.has_timer = deadline.is_some();
            // Zero would disarm it.
            let left = deadline.map_or(0, |left| left.0.max(1));
            let it_value = Timespec {
                tv_sec: i64::try_from(left / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: (left % 1_000_000_000) as i64,
            };
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let time = Itimerspec { it_interval, it_value };
            // It cannot fail for a timer of one's own and a valid time.
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time).ok();
        }
    }
}

impl Followed {
    fn follow(&mut self, epoll: &OwnedFd, socket: Option<(&Arc<OwnedFd>, bool)>) {
        let flags = |to_write: bool| if to_write { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        match (&self.socket, socket) {
            (Some((old, was)), Some((new, is))) if Arc::ptr_eq(old, new) => {
                if *was == is || modify(epoll, &**new, EventData::new_u64(0), flags(is)).is_err() {
                    return;
                }
            }
            (None, None) => return,
            (old, new) => {
                if let Some((old, _)) = old {
                    // It may be closed, and is then gone from the set by itself.
                    delete(epoll, &**old).ok();
                }
                if let Some((new, to_write)) = new
                    && add(epoll, &**new, EventData::new_u64(0), flags(to_write)).is_err()
                {
                    self.socket = None;
                    return;
                }
            }
        }
        self.socket = socket.map(|(socket, to_write)| (Arc::clone(socket), to_write));
    }
}

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

/// An epoll set.
pub(super) struct WakeSet {
    epoll: OwnedFd,
    timer: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The connection, and whether it is watched for room to write.
    socket: Option<(Arc<OwnedFd>, bool)>,
    has_timer: bool,
}

impl WakeSet {
    pub(super) fn new(wake: &Wake, socket: &Arc<OwnedFd>) -> io::Result<Self> {
        let epoll = create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        add(&epoll, wake, EventData::new_u64(0), EventFlags::IN)?;
        add(&epoll, &timer, EventData::new_u64(0), EventFlags::IN)?;
        add(&epoll, socket, EventData::new_u64(0), EventFlags::IN)?;
        let state = State { socket: Some((Arc::clone(socket), false)), has_timer: false };
        Ok(Self { epoll, timer, state: Mutex::new(state) })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Watches the connection, for room to write if told so, unless it is lost; and the next deadline, so much from now.
    pub(super) fn tend(&self, is_lost: bool, to_write: bool, deadline: Option<Nanos>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut state.socket {
            Some((socket, _)) if is_lost => {
                // A set whose member cannot be removed is woken more often than need be.
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

//! Waiting for several queues at once, in real and in virtual time.
//!
//! ```text
//!   wait_any(queues, until, waiter)
//!                             ├── Poller          poll(2) on the wake_fds of the queues and on the caller's descriptors
//!                             ├── Time::Real      the same without descriptors of the caller
//!                             └── Time::Virtual   the clock moves to the next answer of a device, its next timer, or `until`
//! ```
//!
//! The owner of one queue may wait in its [`poll`](Queue::poll). With several queues, or other descriptors,
//! poll each without waiting and then call [`wait_any`]. A wait may end early for no reason: poll again, and
//! check the clock.

use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

pub use rustix::event::PollFlags;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

use crate::clock::{Clock, RealClock, Time};
use crate::device::{Queue, Wait};
use crate::error::{Error, Result};
use crate::request::Completion;
use crate::units::Nanos;

/// Interval between polls in real time of a queue that has no descriptor.
const UNSIGNALLED_WAIT: Nanos = Nanos::millis(1);

/// Interval between two attempts of [`retry_until`].
const RETRY_EVERY: Nanos = Nanos::millis(5);
/// Longest interval between checks for a request to stop, where nothing wakes the wait.
pub const LOOK_EVERY: Nanos = Nanos::millis(100);

/// Descriptors that signal completions on queues.
#[derive(Debug, Default)]
pub struct Wakeups<'q> {
    /// Descriptors that become readable when there are completions to poll.
    descriptors: Vec<BorrowedFd<'q>>,
    /// True if a queue has no descriptor.
    has_unsignalled: bool,
}

/// Source of time, and a way to wait while there is nothing to do.
pub trait Waiter {
    /// Returns the current time.
    fn now(&self) -> Nanos;

    /// Waits as described at [`wait_any`]. Call that function instead.
    ///
    /// # Errors
    /// If the system cannot wait.
    fn wait(&mut self, wakeups: &Wakeups<'_>, until: Option<Nanos>) -> Result<bool>;
}

/// Waits until one of `queues` has completions to poll, until the waiter has a reason of its own to stop, or
/// until `until`. Every queue must have requests in flight and must have been polled since its last
/// submission. Returns false if nothing will ever happen, which is possible only in virtual time, without
/// events and without `until`.
///
/// # Errors
/// If the system cannot wait.
pub fn wait_any<'q>(
    queues: impl IntoIterator<Item = &'q dyn Queue>,
    until: Option<Nanos>,
    waiter: &mut dyn Waiter,
) -> Result<bool> {
    let mut wakeups = Wakeups::default();
    for queue in queues {
        match queue.wake_fd() {
            Some(descriptor) => wakeups.descriptors.push(descriptor),
            None => wakeups.has_unsignalled = true,
        }
    }
    waiter.wait(&wakeups, until)
}

/// Implements a waiting [`poll`](Queue::poll) for a queue that can only poll without waiting and has
/// `in_flight` requests in flight.
///
/// # Errors
/// If the queue is broken, or the system cannot wait.
pub fn waiting_poll(
    queue: &mut dyn Queue,
    in_flight: usize,
    wait: Wait,
    completions: &mut Vec<Completion>,
    waiter: &mut dyn Waiter,
) -> Result<usize> {
    let mut count = queue.poll(Wait::NONE, completions)?;
    let wanted = (wait.completions as usize).min(in_flight);
    if count >= wanted {
        return Ok(count);
    }
    let patience = wait.patience.map(|patience| waiter.now().saturating_add(patience));
    while count < wanted {
        let patience = patience.filter(|_| count > 0);
        let until = [wait.deadline, patience].into_iter().flatten().min();
        let is_late = until.is_some_and(|until| until <= waiter.now());
        if is_late || !wait_any([&*queue], until, waiter)? {
            break;
        }
        count += queue.poll(Wait::NONE, completions)?;
    }
    Ok(count)
}

/// Waits until `descriptor` is readable, at most for [`LOOK_EVERY`]; returns true if it is. A signal ends the
/// wait.
///
/// # Errors
/// If the system cannot wait.
pub fn is_readable_soon(descriptor: BorrowedFd<'_>) -> Result<bool> {
    let clock = RealClock::start();
    let mut poller = Poller::new(&clock).watching(descriptor, PollFlags::IN);
    wait_any([], Some(LOOK_EVERY), &mut poller)?;
    Ok(!poller.events(0).is_empty())
}

/// Repeats `attempt` until it returns a value or `patience` has passed; tries at least once. Used where the
/// kernel has no event to wait for.
pub fn retry_until<T>(patience: Nanos, attempt: impl FnMut() -> Option<T>) -> Option<T> {
    retry(patience, RETRY_EVERY, attempt)
}

/// Sleeps for `time`, but ends within [`LOOK_EVERY`] once `is_stopped` returns true. Returns true if it slept
/// to the end.
pub fn sleep_unless(mut is_stopped: impl FnMut() -> bool, time: Nanos) -> bool {
    retry(time, LOOK_EVERY, || is_stopped().then_some(())).is_none()
}

/// Receives a value within `patience`. Once `is_stopped` returns true, fails within [`LOOK_EVERY`] as if the
/// time had run out.
///
/// # Errors
/// Fails as [`Receiver::recv_timeout`] does.
pub fn receive_unless<T>(
    receiver: &Receiver<T>,
    mut is_stopped: impl FnMut() -> bool,
    patience: Nanos,
) -> std::result::Result<T, RecvTimeoutError> {
    let clock = RealClock::start();
    loop {
        let left = patience.since(clock.now());
        match receiver.recv_timeout(left.min(LOOK_EVERY).into()) {
            Err(RecvTimeoutError::Timeout) if left > Nanos::ZERO && !is_stopped() => {}
            received => return received,
        }
    }
}

fn retry<T>(patience: Nanos, every: Nanos, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let clock = RealClock::start();
    loop {
        let found = attempt();
        let left = patience.since(clock.now());
        if found.is_some() || left == Nanos::ZERO {
            return found;
        }
        std::thread::sleep(left.min(every).into());
    }
}

/// Waiter that uses poll(2) for queues and other descriptors.
pub struct Poller<'a> {
    clock: &'a dyn Clock,
    watched: Vec<ExtraDescriptor<'a>>,
}

/// Descriptor that is polled in addition to those of queues.
struct ExtraDescriptor<'a> {
    descriptor: BorrowedFd<'a>,
    wanted: PollFlags,
    /// Events found by the last wait.
    found: PollFlags,
}

impl<'a> Poller<'a> {
    /// Creates a poller of queues only, which ends its waits at times of `clock`.
    pub fn new(clock: &'a dyn Clock) -> Self {
        Self { clock, watched: Vec::new() }
    }

    /// Adds a descriptor to watch for `events`; errors and hang-ups always count.
    #[must_use]
    pub fn watching(mut self, descriptor: BorrowedFd<'a>, events: PollFlags) -> Self {
        self.watched.push(ExtraDescriptor { descriptor, wanted: events, found: PollFlags::empty() });
        self
    }

    /// Returns the events that the last wait found on the added descriptor with this index, from 0.
    ///
    /// # Panics
    /// If there is no descriptor with this index.
    pub fn events(&self, index: usize) -> PollFlags {
        self.watched[index].found
    }
}

impl Waiter for Poller<'_> {
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn wait(&mut self, wakeups: &Wakeups<'_>, until: Option<Nanos>) -> Result<bool> {
        let left = until.map(|until| until.since(self.clock.now()));
        let limit = wakeups.has_unsignalled.then_some(UNSIGNALLED_WAIT);
        let timeout = [left, limit].into_iter().flatten().min().map(|time| Timespec {
            tv_sec: i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (time.0 % 1_000_000_000) as i64,
        });
        let own = self.watched.iter().map(|one| PollFd::from_borrowed_fd(one.descriptor, one.wanted));
        let queues = wakeups.descriptors.iter().map(|one| PollFd::from_borrowed_fd(*one, PollFlags::IN));
        let mut polled: Vec<PollFd<'_>> = own.chain(queues).collect();
        let result = poll(&mut polled, timeout.as_ref());
        for (one, polled) in self.watched.iter_mut().zip(&polled) {
            one.found = polled.revents();
        }
        match result {
            // A signal is reason enough to check again.
            Ok(_) | Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(Error::io(&errno.into(), "wait for", "completions")),
        }
    }
}

impl Waiter for &Time {
    fn now(&self) -> Nanos {
        Clock::now(*self)
    }

    fn wait(&mut self, wakeups: &Wakeups<'_>, until: Option<Nanos>) -> Result<bool> {
        match self {
            Time::Real(clock) => Poller::new(&**clock).wait(wakeups, until),
            Time::Virtual(clock) if until.is_some() || clock.has_events() => {
                clock.advance(until.unwrap_or(Nanos(u64::MAX)));
                Ok(true)
            }
            Time::Virtual(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Weak};

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;
    use crate::clock::{EventSource, RealClock, VirtualClock};

    #[test]
    fn a_descriptor_of_the_caller_ends_the_wait_and_is_told() {
        let clock = RealClock::start();
        let (quiet, loud) =
            (eventfd(0, EventfdFlags::empty()).unwrap(), eventfd(1, EventfdFlags::empty()).unwrap());
        let mut poller =
            Poller::new(&clock).watching(quiet.as_fd(), PollFlags::IN).watching(loud.as_fd(), PollFlags::IN);
        assert!(wait_any([], None, &mut poller).unwrap());
        assert_eq!((poller.events(0), poller.events(1)), (PollFlags::empty(), PollFlags::IN));
    }

    #[test]
    fn attempts_are_made_until_one_succeeds_and_one_in_any_case() {
        let mut left = 3;
        let mut attempt = || {
            left -= 1;
            (left == 0).then_some("done")
        };
        assert_eq!(retry_until(Nanos(u64::MAX), &mut attempt), Some("done"));
        assert_eq!(retry_until(Nanos::ZERO, || None::<()>), None);
        assert_eq!(retry_until(Nanos::ZERO, || Some(1)), Some(1));
    }

    #[test]
    fn a_sleep_says_whether_it_was_cut_short() {
        let mut looks = 0;
        assert!(!sleep_unless(
            || {
                looks += 1;
                looks == 2
            },
            Nanos(u64::MAX)
        ));
        assert!(sleep_unless(|| false, Nanos::millis(1)));
    }

    #[test]
    fn a_value_is_received_until_a_stop_the_end_of_the_time_or_of_the_sender() {
        let (sender, receiver) = channel();
        let forever = Nanos(u64::MAX);
        assert_eq!(receive_unless(&receiver, || true, forever), Err(RecvTimeoutError::Timeout));
        assert_eq!(receive_unless(&receiver, || false, Nanos::ZERO), Err(RecvTimeoutError::Timeout));
        sender.send(7).unwrap();
        assert_eq!(receive_unless(&receiver, || true, Nanos::ZERO), Ok(7));
        drop(sender);
        assert_eq!(receive_unless(&receiver, || false, forever), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn what_can_be_read_at_once_is_not_waited_for() {
        assert!(is_readable_soon(eventfd(1, EventfdFlags::empty()).unwrap().as_fd()).unwrap());
    }

    #[test]
    fn a_real_wait_lasts_until_its_end() {
        let time = Time::real();
        let until = Nanos::millis(2);
        while Clock::now(&time) < until {
            assert!(wait_any([], Some(until), &mut &time).unwrap());
        }
    }

    struct Timer(Nanos);

    impl EventSource for Timer {
        fn next_event(&self) -> Option<Nanos> {
            Some(self.0)
        }

        fn advance(&self, now: Nanos) -> bool {
            now >= self.0
        }
    }

    #[test]
    fn a_virtual_wait_stops_at_the_first_timer_and_says_when_there_is_none() {
        let clock = Arc::new(VirtualClock::new());
        let time = Time::Virtual(Arc::clone(&clock));
        assert!(!wait_any([], None, &mut &time).unwrap(), "nothing will ever happen");
        let timer: Arc<dyn EventSource> = Arc::new(Timer(Nanos::millis(7)));
        let weak: Weak<dyn EventSource> = Arc::downgrade(&timer);
        clock.register(weak);
        assert!(wait_any([], Some(Nanos::millis(5)), &mut &time).unwrap());
        assert_eq!(time.now(), Nanos::millis(5));
        assert!(wait_any([], None, &mut &time).unwrap());
        assert_eq!(time.now(), Nanos::millis(7));
    }
}

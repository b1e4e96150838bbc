//! A change of the log of a served cache, on a thread, because laying out files may take long and the service
//! goes on. The client repeats its order, and each answer has the progress or, at last, the outcome.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_block::{Bytes, Clock as _, Nanos, RealClock};
use plumb_guard::{Error, Result};

use crate::laying_out::LayoutObserver;
use crate::served::{CacheOrder, LaidOut};

/// Time for which an order waits for the change. Most changes take less; meanwhile no other order is
/// answered.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Time within which a repeated order asks for the outcome; a later one starts a new change.
const ASKS_AGAIN_WITHIN: Nanos = Nanos::secs(5);

/// Thread that executes a change. Dropping it stops the change and undoes what is incomplete.
pub(crate) struct Changing {
    order: CacheOrder,
    shared: Arc<SharedChange>,
    outcome: Receiver<Result<()>>,
    /// Clock that started with the latest order.
    since_order: RealClock,
    thread: Option<JoinHandle<()>>,
}

struct SharedChange {
    stop: AtomicBool,
    laid_out: Mutex<LaidOut>,
}

impl Changing {
    /// Starts the ordered `work` on the device `path`.
    pub(crate) fn begin(
        order: CacheOrder,
        path: &str,
        work: impl FnOnce(&mut LayoutObserver<'_>) -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        let failed = |error: &std::io::Error| {
            let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::AGAIN);
            Error::os(path, "start a thread for", errno)
        };
        let laid_out = LaidOut { path: path.to_owned(), done_bytes: 0, size_bytes: 0 };
        let shared = Arc::new(SharedChange { stop: AtomicBool::new(false), laid_out: Mutex::new(laid_out) });
        let (tell, outcome) = channel();
        let shared_with_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("plumb-change".to_owned()).spawn(move || {
            let mut progress = |path: &str, done: Bytes, size: Bytes| {
                let mut laid_out = shared_with_thread.laid_out.lock().unwrap_or_else(PoisonError::into_inner);
                *laid_out = LaidOut { path: path.to_owned(), done_bytes: done.0, size_bytes: size.0 };
            };
            let ended = work(&mut LayoutObserver { stop: &shared_with_thread.stop, progress: &mut progress });
            // The receiver is gone once the change was dropped.
            tell.send(ended).unwrap_or_default();
        });
        let thread = Some(thread.map_err(|error| failed(&error))?);
        Ok(Self { order, shared, outcome, since_order: RealClock::start(), thread })
    }

    /// Returns true if a client that gives this order asks about this change.
    pub(crate) fn is_meant_by(&self, order: &CacheOrder) -> bool {
        self.order == *order && self.is_untold()
    }

    /// Returns true if a client may still ask for the outcome.
    pub(crate) fn is_untold(&self) -> bool {
        self.is_running() || self.since_order.now() < ASKS_AGAIN_WITHIN
    }

    pub(crate) fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits a limited time for the end, and returns the outcome; `None` while the change goes on.
    pub(crate) fn ended(&mut self) -> Option<Result<()>> {
        let ended = self.outcome.recv_timeout(ANSWER_WITHIN);
        self.since_order = RealClock::start();
        match ended {
            Ok(outcome) => Some(outcome),
            Err(_) if self.is_running() => None,
            // The change may have ended right after the wait. A change without an outcome has panicked.
            Err(_) => Some(self.outcome.try_recv().unwrap_or_else(|_| {
                let found = "the change of its log failed because of a bug in plumb";
                Err(Error::new(
                    plumb_guard::Kind::Os(None),
                    &self.laid_out().path,
                    found,
                    "see the messages of its server",
                ))
            })),
        }
    }

    /// Returns the progress of the change.
    pub(crate) fn laid_out(&self) -> LaidOut {
        self.shared.laid_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // A panic has printed its message already.
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: CacheOrder = CacheOrder::Grow { size: 8 };

    #[test]
    fn a_change_is_waited_for_by_the_same_order_alone_and_tells_how_it_ended() {
        let (go_on, waits) = channel::<()>();
        let (tell, told) = channel();
        let mut changing = Changing::begin(ORDER, "log", move |laying_out| {
            (laying_out.progress)("log", Bytes(4), Bytes(8));
            tell.send(()).unwrap();
            waits.recv().unwrap();
            Err(Error::usage("log", "it is full", ""))
        })
        .unwrap();
        assert_eq!(changing.ended(), None);
        told.recv().unwrap();
        assert_eq!(changing.laid_out(), LaidOut { path: "log".to_owned(), done_bytes: 4, size_bytes: 8 });
        assert!(changing.is_meant_by(&ORDER) && !changing.is_meant_by(&CacheOrder::Grow { size: 9 }));
        go_on.send(()).unwrap();
        let ended = changing.ended().unwrap().unwrap_err();
        assert!(ended.to_string().contains("it is full"), "{ended}");
    }

    #[test]
    fn one_that_is_dropped_is_stopped_and_ends_before() {
        let (tell, told) = channel();
        let work = move |laying_out: &mut LayoutObserver<'_>| {
            while !laying_out.stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            tell.send("undone").unwrap();
            Ok(())
        };
        drop(Changing::begin(ORDER, "log", work).unwrap());
        assert_eq!(told.try_recv(), Ok("undone"));
    }
}

//! Tracking of the requests of one device from their arrival to their completion.
//!
//! A request is inserted into a queue of the kernel (or bypasses it), issued to the driver, and completed,
//! perhaps in parts. It is identified by its first sector and its operation. Merges change that sector, and
//! so do completions of parts. The receiver of the [`Step`]s decides which ones are counted.
//!
//! # Limitations
//! Two requests in flight with the same sector and operation are distinguished only by their order. A bio
//! that a device without requests changes on its way (splits) may not be found again; it then finishes
//! without a latency.

use std::collections::{HashMap, HashSet};

use plumb_block::Nanos;

use crate::event::{Event, EventContent, Merge, Op, Request};

/// Largest number of waiting requests, and of requests at the driver. With more, the kernel has dropped some,
/// their events were lost, or they complete under the number of another device, like those that md passes on.
const REQUESTS_MAX: usize = 1 << 16;

type Key = (u64, Op);

/// A step in the life of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The request arrived: in a queue of the kernel, or directly at the driver.
    Came,
    /// The driver received a request that had arrived at `arrived`; `waited` is its time in a queue of the
    /// kernel, `None` if it bypassed the queue.
    Issued {
        /// Time of the arrival.
        arrived: Nanos,
        /// Time in a queue of the kernel.
        waited: Option<Nanos>,
    },
    /// The driver received the request again after it had returned it.
    Reissued,
    /// The driver returned the request, to be issued again.
    Returned,
    /// The whole request is done.
    Finished(FinishedRequest),
    /// Data was merged into a request.
    Merged,
    /// A completion without data: of an empty flush, which the kernel counts among the writes, or of the end
    /// of a flush with data.
    Empty,
    /// All earlier requests at the driver are dropped: too many of them never ended.
    Forgotten,
}

/// End of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedRequest {
    /// Bytes of the whole request.
    pub bytes: u64,
    /// Thread that sent the request; `None` if its start was not seen.
    pub thread: Option<u32>,
    /// Time in a queue of the kernel; `None` if the request bypassed the queue.
    pub waited: Option<Nanos>,
    /// Time from issue to completion; `None` if the start was not seen.
    pub took: Option<Nanos>,
}

/// Receiver of each step of a request.
pub(crate) type Steps<'a> = dyn FnMut(&Request, Step) + 'a;

/// Requests of a device in flight.
#[derive(Debug)]
pub(crate) struct RequestMatcher {
    has_requests: bool,
    /// Requests that wait in the queue of the kernel.
    waiting: HashMap<Key, Arrival>,
    in_flight: HashMap<Key, Vec<InFlight>>,
    /// Number of requests at the driver.
    in_flight_count: usize,
    /// Requests that the driver returned: they are issued again without a new arrival.
    requeued: HashSet<Key>,
    /// Number of completions whose start was not seen.
    unmatched: u64,
}

/// Arrival of a request.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: Nanos,
    thread: u32,
}

/// A request at the driver.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    at: Nanos,
    thread: u32,
    waited: Option<Nanos>,
    bytes: u64,
    left: u64,
}

impl RequestMatcher {
    /// Creates a matcher for a device with a request queue, or for one that only shows its bios.
    pub(crate) fn new(has_requests: bool) -> Self {
        Self {
            has_requests,
            waiting: HashMap::new(),
            in_flight: HashMap::new(),
            in_flight_count: 0,
            requeued: HashSet::new(),
            unmatched: 0,
        }
    }

    /// Handles an event of a request of this device.
    pub(crate) fn take(&mut self, event: &Event, steps: &mut Steps<'_>) {
        match &event.what {
            EventContent::Inserted(request) => self.inserted(event, request, steps),
            EventContent::Issued(request) => self.issued(event, request, steps),
            EventContent::Requeued(request) => self.requeued(request, steps),
            EventContent::Completed(request) => self.completed(event.at, request, steps),
            EventContent::Merged(merge, request) => {
                self.merged(*merge, request);
                steps(request, Step::Merged);
            }
            _ => {}
        }
    }

    /// Clears the requests in flight, after events were lost.
    pub(crate) fn forget(&mut self) {
        self.waiting.clear();
        self.in_flight.clear();
        self.in_flight_count = 0;
        self.requeued.clear();
    }

    /// Returns true if no request is in flight, and every start was seen.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.unmatched == 0
    }

    fn inserted(&mut self, event: &Event, request: &Request, steps: &mut Steps<'_>) {
        if self.waiting.len() >= REQUESTS_MAX {
            self.waiting.clear();
        }
        let key = (request.sector, request.op);
        let arrival = Arrival { at: event.at, thread: event.thread };
        if self.waiting.insert(key, arrival).is_none() && !self.requeued.contains(&key) {
            steps(request, Step::Came);
        }
    }

    /// Records that a request was issued: its form after merges is known then.
    fn issued(&mut self, event: &Event, request: &Request, steps: &mut Steps<'_>) {
        let (at, key) = (event.at, (request.sector, request.op));
        let inserted = self.waiting.remove(&key);
        let is_again = self.requeued.remove(&key);
        if inserted.is_none() && !is_again {
            steps(request, Step::Came);
        }
        let waited = inserted.map(|arrival| at.since(arrival.at));
        if self.in_flight_count >= REQUESTS_MAX {
            self.unmatched += self.in_flight_count as u64;
            self.forget();
            steps(request, Step::Forgotten);
        }
        let begun = InFlight {
            at,
            // The thread that issues a waiting request may be one of the kernel.
            thread: inserted.map_or(event.thread, |arrival| arrival.thread),
            waited,
            bytes: request.bytes,
            left: request.bytes,
        };
        self.begin(key, begun);
        let arrived = inserted.map_or(at, |arrival| arrival.at);
        steps(request, if is_again { Step::Reissued } else { Step::Issued { arrived, waited } });
    }

    fn requeued(&mut self, request: &Request, steps: &mut Steps<'_>) {
        if self.end(request, u64::MAX).is_some() {
            self.requeued.insert((request.sector, request.op));
            steps(request, Step::Returned);
        }
    }

    fn completed(&mut self, at: Nanos, request: &Request, steps: &mut Steps<'_>) {
        if request.bytes == 0 && self.has_requests && request.op != Op::Flush {
            return steps(request, Step::Empty);
        }
        let Some(ended) = self.end(request, request.bytes) else {
            // A completed flush that was never issued is an empty flush.
            if request.op == Op::Flush && self.has_requests {
                return steps(request, Step::Empty);
            }
            // The request was issued before the first event, or changed on its way.
            self.unmatched += 1;
            let finished = FinishedRequest { bytes: request.bytes, thread: None, waited: None, took: None };
            return steps(request, Step::Finished(finished));
        };
        if ended.left > 0 {
            // The rest of the request continues at the next sector.
            return self.begin((request.end(), request.op), ended);
        }
        let finished = FinishedRequest {
            bytes: ended.bytes,
            thread: Some(ended.thread),
            waited: ended.waited,
            took: Some(at.since(ended.at)),
        };
        steps(request, Step::Finished(finished));
    }

    /// Adds a request to those in flight.
    fn begin(&mut self, key: Key, begun: InFlight) {
        self.in_flight.entry(key).or_default().push(begun);
        self.in_flight_count += 1;
    }

    /// Removes a request from those in flight, with `bytes` of it done.
    fn end(&mut self, request: &Request, bytes: u64) -> Option<InFlight> {
        let mut key = (request.sector, request.op);
        if request.bytes == 0 && !self.has_requests && !self.in_flight.contains_key(&key) {
            // A bio that completes piece by piece ends here.
            let ends_here = |(known, of): (&Key, &Vec<InFlight>)| {
                let is_it =
                    known.1 == request.op && of.iter().any(|of| known.0 + of.bytes / 512 == request.sector);
                is_it.then_some(*known)
            };
            key = self.in_flight.iter().find_map(ends_here)?;
        }
        let of = self.in_flight.get_mut(&key)?;
        // The first issued request is taken, since the others may be of a later client.
        let mut ended = if of.is_empty() { return None } else { of.remove(0) };
        if of.is_empty() {
            self.in_flight.remove(&key);
        }
        self.in_flight_count -= 1;
        let bytes = if self.has_requests { bytes } else { u64::MAX };
        ended.left = ended.left.saturating_sub(bytes);
        Some(ended)
    }

    fn merged(&mut self, merge: Merge, request: &Request) {
        match merge {
            Merge::Back => {}
            Merge::Front => {
                // The waiting request now begins with the part that was merged in front of it.
                if let Some(arrival) = self.waiting.remove(&(request.end(), request.op)) {
                    self.waiting.insert((request.sector, request.op), arrival);
                }
            }
            Merge::Request => {
                self.waiting.remove(&(request.sector, request.op));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_never_end_take_bounded_memory_and_are_forgotten_aloud() {
        let mut matcher = RequestMatcher::new(false);
        let mut forgotten = 0;
        for number in 0..3 * REQUESTS_MAX as u64 {
            // Flushes have one place, and reads one each.
            let of = Request { op: [Op::Flush, Op::Read][number as usize % 2], ..Request::default() };
            let request =
                Request { sector: if of.op == Op::Read { number * 8 } else { 0 }, bytes: 4096, ..of };
            let event = Event { at: Nanos(number), thread: 1, what: EventContent::Issued(request) };
            matcher.take(&event, &mut |_, step| forgotten += u64::from(step == Step::Forgotten));
        }
        let held: usize = matcher.in_flight.values().map(Vec::len).sum();
        assert_eq!((forgotten, held, matcher.in_flight_count), (2, REQUESTS_MAX, REQUESTS_MAX));
        assert!(!matcher.is_idle());
        // The last one is still found.
        let last = Request {
            sector: (3 * REQUESTS_MAX as u64 - 1) * 8,
            bytes: 4096,
            op: Op::Read,
            ..Request::default()
        };
        let event = Event { at: Nanos::secs(1), thread: 1, what: EventContent::Completed(last) };
        matcher.take(&event, &mut |_, step| assert!(matches!(step, Step::Finished(of) if of.took.is_some())));
        assert_eq!(matcher.in_flight_count, REQUESTS_MAX - 1);
    }
}

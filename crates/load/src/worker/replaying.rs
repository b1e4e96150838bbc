//! A trace instead of a generator: the choice of the next event, and of its time.
//!
//! Events start in their order, none is left out, and each starts at its own time if the trace is paced. An
//! event without room is late, and may delay later ones. A flush waits for the writes before it, as in any
//! workload.

use plumb_block::{Bytes, DeviceInfo, Nanos};
use plumb_workload::{Operation, RecordedEvents};

use super::stream::Next;
use crate::fault::{Error, UnsupportedRequest};

/// Remaining events of a trace. Times are since the start of the worker.
#[derive(Debug)]
pub(crate) struct Replaying {
    recorded: RecordedEvents,
    next: usize,
}

impl Replaying {
    /// Creates a replay of all recorded events.
    pub(crate) fn new(recorded: RecordedEvents) -> Self {
        Self { recorded, next: 0 }
    }

    /// Returns the next action at `elapsed`; nothing starts from `end` on.
    pub(crate) fn take(&mut self, elapsed: Nanos, end: Option<Nanos>, writes_in_flight: bool) -> Next {
        let is_over = end.is_some_and(|end| elapsed >= end);
        let Some(event) = self.recorded.events().get(self.next).filter(|_| !is_over) else {
            return Next::End;
        };
        let intended = self.recorded.is_paced().then_some(event.at);
        if let Some(at) = intended.filter(|at| *at > elapsed) {
            return Next::At(end.map_or(at, |end| at.min(end)));
        }
        let Some(operation) = self.recorded.operation(self.next) else { return Next::End };
        if operation == Operation::Flush && writes_in_flight {
            return Next::AfterWrites;
        }
        self.next += 1;
        Next::Start { operation, intended }
    }

    /// Returns the number of events with an intended start before `until` that have not started; none if they
    /// have no times.
    pub(crate) fn unstarted(&self, until: Nanos) -> u64 {
        if !self.recorded.is_paced() {
            return 0;
        }
        let left = &self.recorded.events()[self.next..];
        left.partition_point(|event| event.at < until) as u64
    }
}

/// Checks that every event is aligned to the blocks of a device. A worker also checks this; callers use it to
/// check before they prepare anything.
///
/// # Errors
/// Fails with the first event that is not aligned.
pub fn check(recorded: &RecordedEvents, info: &DeviceInfo) -> Result<(), Error> {
    let block = info.logical_block.0;
    let off_grid = |bytes: Bytes| !bytes.0.is_multiple_of(block);
    let mut events = recorded.events().iter();
    let Some(index) = events.position(|event| off_grid(event.offset) || off_grid(event.length())) else {
        return Ok(());
    };
    let event = recorded.events()[index];
    Err(Error::Unfit {
        device: info.name.clone(),
        refused: UnsupportedRequest::EventOffGrid {
            number: index as u64 + 1,
            offset: event.offset.0,
            length: event.length().0,
            logical_block: info.logical_block,
        },
    })
}

#[cfg(test)]
mod tests;

//! Choice of the next operation, and of its time.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Burst, Cursor, Generator, Invalid, Operation, RecordedEvents, Schedule, Share, Workload,
};

use super::replaying::Replaying;

/// Remaining operations of a worker. All times are since its start.
#[derive(Debug)]
pub(crate) struct Stream {
    generator: Generator,
    schedule: Option<Schedule>,
    /// Operation taken from the generator and not yet started.
    next: Option<Operation>,
    burst: Option<Bursting>,
    flush_at_end: bool,
    /// True if there were writes since the last flush.
    is_dirty: bool,
    pub(crate) is_ended: bool,
    /// True if all operations were taken.
    is_exhausted: bool,
    /// Replay that replaces the generated operations.
    replaying: Option<Replaying>,
}

/// Position of a worker in its burst.
#[derive(Debug, Clone, Copy)]
struct Bursting {
    burst: Burst,
    left: u32,
    not_before: Nanos,
}

/// Next action of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start this operation now. `intended` is its intended start, if it has a schedule; never within a
    /// pause.
    Start { operation: Operation, intended: Option<Nanos> },
    /// Start nothing before this time.
    At(Nanos),
    /// Start a flush as soon as no write is in flight.
    AfterWrites,
    /// Start nothing more.
    End,
}

impl Stream {
    pub(crate) fn new(workload: &Workload, share: Share, cursor: &Cursor) -> Result<Self, Invalid> {
        Ok(Self {
            generator: Generator::new(workload, share, cursor)?,
            schedule: Schedule::new(workload, share),
            next: None,
            burst: workload.burst.map(|burst| Bursting {
                burst,
                left: burst.operations,
                not_before: Nanos::ZERO,
            }),
            flush_at_end: workload.durability.flush_at_end,
            is_dirty: false,
            is_ended: false,
            is_exhausted: false,
            replaying: None,
        })
    }

    /// Replaces the generated operations by these events.
    pub(crate) fn replay(&mut self, recorded: RecordedEvents) {
        self.replaying = Some(Replaying::new(recorded));
        self.flush_at_end = false;
    }

    pub(crate) fn is_scheduled(&self) -> bool {
        self.schedule.is_some()
    }

    /// Returns the mean time between two intended starts.
    pub(crate) fn interval(&self) -> Option<Nanos> {
        self.schedule.as_ref().map(Schedule::interval)
    }

    /// Ends the stream here. Returns true if operations were left.
    pub(crate) fn cut(&mut self) -> bool {
        self.flush_at_end = false;
        !std::mem::replace(&mut self.is_ended, true)
    }

    /// Returns the number of operations with an intended start before `elapsed`, or before `end` if that is
    /// earlier, that have not started. Operations that a pause puts off do not count.
    pub(crate) fn unstarted(&self, elapsed: Nanos, end: Option<Nanos>) -> u64 {
        let Some(schedule) = self.schedule.as_ref().filter(|_| !self.is_exhausted) else { return 0 };
        let until = end.map_or(elapsed, |end| elapsed.min(end));
        if let Some(replaying) = &self.replaying {
            return replaying.unstarted(until);
        }
        let is_waiting = matches!(self.next, Some(operation) if operation != Operation::Flush);
        let handed_out = self.generator.ordinal() - u64::from(is_waiting);
        let left = self.generator.limit().map_or(u64::MAX, |limit| limit.saturating_sub(handed_out));
        let without_pause = match self.burst {
            Some(bursting) if bursting.not_before >= until => 0,
            Some(bursting) => u64::from(bursting.left),
            None => u64::MAX,
        };
        schedule.due_before(until, left.min(without_pause))
    }

    /// Returns the next action at `elapsed`; only a due flush starts from `end` on.
    ///
    /// A due flush starts even after the end, so that no group of writes lacks its flush. With a schedule the
    /// workload ends with its last interval, so that rates match the request.
    #[inline]
    pub(crate) fn take(&mut self, elapsed: Nanos, end: Option<Nanos>, writes_in_flight: bool) -> Next {
        if self.is_ended {
            return self.close(writes_in_flight);
        }
        if let Some(replaying) = &mut self.replaying {
            let next = replaying.take(elapsed, end, writes_in_flight);
            self.is_ended = next == Next::End;
            return next;
        }
        let operation = if self.next.is_some() { self.next.take() } else { self.generator.next() };
        let Some(operation) = operation else {
            self.is_exhausted = true;
            return self.end_of_count(elapsed, end, writes_in_flight);
        };
        if operation == Operation::Flush {
            return self.flush(writes_in_flight);
        }
        if end.is_some_and(|end| elapsed >= end) {
            self.next = Some(operation);
            self.is_ended = true;
            return self.close(writes_in_flight);
        }
        // The schedule does not move: what a pause put off is made up for after it, as fio does.
        let after_pause = self.burst.map_or(Nanos::ZERO, |bursting| bursting.not_before);
        let intended = self.schedule.as_ref().map(|schedule| schedule.intended().max(after_pause));
        let earliest = intended.unwrap_or(after_pause);
        if earliest > elapsed {
            self.next = Some(operation);
            return Next::At(end.map_or(earliest, |end| earliest.min(end)));
        }
        self.started(operation, elapsed);
        Next::Start { operation, intended }
    }

    /// Returns a due flush, to be sent once the writes before it have completed.
    fn flush(&mut self, writes_in_flight: bool) -> Next {
        if writes_in_flight {
            self.next = Some(Operation::Flush);
            return Next::AfterWrites;
        }
        self.is_dirty = false;
        Next::Start { operation: Operation::Flush, intended: None }
    }

    /// Returns the end, or the flush before it.
    #[cold]
    fn close(&mut self, writes_in_flight: bool) -> Next {
        match (self.flush_at_end && self.is_dirty, writes_in_flight) {
            (false, _) => Next::End,
            (true, true) => Next::AfterWrites,
            (true, false) => {
                self.is_dirty = false;
                Next::Start { operation: Operation::Flush, intended: None }
            }
        }
    }

    #[inline]
    fn started(&mut self, operation: Operation, elapsed: Nanos) {
        self.is_dirty |= matches!(operation, Operation::Write { .. });
        if let Some(schedule) = &mut self.schedule {
            schedule.advance(length_of(operation));
        }
        if let Some(bursting) = &mut self.burst {
            bursting.left -= 1;
            if bursting.left == 0 {
                bursting.left = bursting.burst.operations;
                bursting.not_before = elapsed + bursting.burst.pause;
            }
        }
    }

    /// Returns the end of a counted workload: now, or at the end of its last interval.
    #[cold]
    fn end_of_count(&mut self, elapsed: Nanos, end: Option<Nanos>, writes_in_flight: bool) -> Next {
        if let Some(schedule) = &self.schedule {
            let last = schedule.intended();
            let last = end.map_or(last, |end| last.min(end));
            if last > elapsed {
                return Next::At(last);
            }
        }
        self.is_ended = true;
        self.close(writes_in_flight)
    }
}

fn length_of(operation: Operation) -> Bytes {
    match operation {
        Operation::Read { length, .. } | Operation::Write { length, .. } | Operation::Trim { length, .. } => {
            length
        }
        Operation::Flush => Bytes(0),
    }
}

//! Which operation may start next, and when.

use plumb_block::Nanos;
use plumb_workload::{Generator, Invalid, Operation, Schedule, Share, Stop, Workload};

/// The operations of a worker that are still to come. All times are since the start of the run.
#[derive(Debug)]
pub(crate) struct Stream {
    generator: Generator,
    schedule: Option<Schedule>,
    /// Taken from the generator, not yet started.
    next: Option<Operation>,
    /// When it ends, if time ends it.
    duration: Option<Nanos>,
    ended: bool,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// This, now. `intended` is when it was meant to start, if it is on a schedule.
    Start { operation: Operation, intended: Option<Nanos> },
    /// Nothing before this time.
    At(Nanos),
    /// A flush, as soon as no write is in flight.
    AfterWrites,
    /// Nothing more.
    End,
}

impl Stream {
    pub(crate) fn new(workload: &Workload, share: Share) -> Result<Self, Invalid> {
        Ok(Self {
            generator: Generator::new(workload, share)?,
            schedule: Schedule::new(workload.rate, share),
            next: None,
            duration: match workload.stop {
                Stop::Duration(duration) => Some(duration),
                Stop::Operations(_) => None,
            },
            ended: false,
        })
    }

    pub(crate) fn is_scheduled(&self) -> bool {
        self.schedule.is_some()
    }

    /// The time between two intended starts.
    pub(crate) fn interval(&self) -> Option<Nanos> {
        self.schedule.map(|schedule| schedule.interval())
    }

    /// How long it will take, zero if that is not known.
    pub(crate) fn expected(&self) -> Nanos {
        self.duration.unwrap_or(Nanos::ZERO)
    }

    /// Ends it here. Says whether there was anything left.
    pub(crate) fn cut(&mut self) -> bool {
        !std::mem::replace(&mut self.ended, true)
    }

    /// How many operations were meant to start before `elapsed`, or before the end if that was earlier, and have not.
    pub(crate) fn unstarted(&self, elapsed: Nanos) -> u64 {
        let Some(schedule) = self.schedule else { return 0 };
        let until = self.duration.map_or(elapsed, |duration| elapsed.min(duration));
        let is_waiting = matches!(self.next, Some(Operation::Read { .. } | Operation::Write { .. }));
        let started = self.generator.ordinal() - u64::from(is_waiting);
        let due = schedule.starts_before(until);
        let due = self.generator.limit().map_or(due, |limit| due.min(limit));
        due.saturating_sub(started)
    }

    /// What comes next at `elapsed`.
    ///
    /// A flush that is due is carried out even when the time is over, so that no group of writes is left without it.
    /// On a schedule the end comes with the end of the last interval, so that rates come out as asked for.
    pub(crate) fn take(&mut self, elapsed: Nanos, writes_in_flight: bool) -> Next {
        if self.ended {
            return Next::End;
        }
        let Some(operation) = self.next.take().or_else(|| self.generator.next()) else {
            return self.end_of_count(elapsed);
        };
        let until = match operation {
            Operation::Flush if writes_in_flight => {
                self.next = Some(operation);
                return Next::AfterWrites;
            }
            Operation::Flush => return Next::Start { operation, intended: None },
            Operation::Read { .. } | Operation::Write { .. } => {
                if self.duration.is_some_and(|duration| elapsed >= duration) {
                    self.next = Some(operation);
                    self.ended = true;
                    return Next::End;
                }
                // The generator has handed this operation out already, so its ordinal is one less.
                self.schedule.map(|schedule| schedule.intended(self.generator.ordinal() - 1))
            }
        };
        match until {
            Some(start) if start > elapsed => {
                self.next = Some(operation);
                Next::At(self.duration.map_or(start, |duration| start.min(duration)))
            }
            intended => Next::Start { operation, intended },
        }
    }

    /// The end of a counted workload: now, or at the end of its last interval.
    fn end_of_count(&mut self, elapsed: Nanos) -> Next {
        if let Some(schedule) = self.schedule {
            let end = schedule.intended(self.generator.ordinal());
            if end > elapsed {
                return Next::At(end);
            }
        }
        self.ended = true;
        Next::End
    }
}

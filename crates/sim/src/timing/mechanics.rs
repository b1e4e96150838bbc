//! The back side of a drive: what moves when the medium itself is read or written.

use plumb_block::Nanos;

use crate::command::Sectors;

/// Chosen by whoever submits a job, and given back when it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// Operation on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// Read it.
    Read,
    /// Write it.
    Write,
    /// Mark it as unused.
    Trim,
}

/// Whom a job serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// A command waits for it.
    Foreground,
    /// Destaging that nobody waits for.
    Background,
}

/// One access to the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Given back when it is done.
    pub id: JobId,
    /// Operation on the medium.
    pub kind: JobKind,
    /// Where.
    pub sectors: Sectors,
    /// For whom.
    pub urgency: Urgency,
}

/// The medium with what moves it, as a state machine.
pub trait Mechanics: Send {
    /// Takes a job at `now`. Jobs may be done in any order; never refuses.
    fn submit(&mut self, now: Nanos, job: Job);

    /// Raises the urgency of a job that was submitted as background: a flush waits for it now.
    fn hurry(&mut self, now: Nanos, job: JobId);

    /// Returns when something happens next by itself.
    fn next_event(&self) -> Option<Nanos>;

    /// Appends what is done by `now`, with the time at which it was done, in the order of time.
    fn advance(&mut self, now: Nanos, done: &mut Vec<(JobId, Nanos)>);

    /// Returns the number of jobs that it makes use of at the same time: how deep a queue helps to reorder,
    /// or how many run in parallel.
    fn parallelism(&self) -> usize;

    /// Forgets all jobs; the power is gone. Heads are parked, buffers empty.
    fn power_cut(&mut self, now: Nanos);
}

//! Back end of a drive: the moving parts used when the medium is read or written.

use plumb_block::Nanos;

use crate::command::Sectors;

/// Identifier chosen by the submitter of a job and returned at its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// Operation on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Mark as unused.
    Trim,
}

/// Urgency of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// A command waits for the job.
    Foreground,
    /// Destaging without a waiting command.
    Background,
}

/// One access to the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Identifier returned at completion.
    pub id: JobId,
    /// Operation on the medium.
    pub kind: JobKind,
    /// Sectors to access.
    pub sectors: Sectors,
    /// Urgency of the job.
    pub urgency: Urgency,
}

/// The medium and its moving parts as a state machine.
pub trait Mechanics: Send {
    /// Accepts a job at `now`; never refuses. Jobs may be executed in any order.
    fn submit(&mut self, now: Nanos, job: Job);

    /// Raises the urgency of a background job because a flush waits for it.
    fn hurry(&mut self, now: Nanos, job: JobId);

    /// Returns the time of the next event.
    fn next_event(&self) -> Option<Nanos>;

    /// Appends the jobs completed by `now` with their times, in order.
    fn advance(&mut self, now: Nanos, done: &mut Vec<(JobId, Nanos)>);

    /// Returns the useful number of concurrent jobs: the queue depth for reordering, or the degree of
    /// parallelism.
    fn parallelism(&self) -> usize;

    /// Drops all jobs after a power cut: heads are parked, buffers empty.
    fn power_cut(&mut self, now: Nanos);
}

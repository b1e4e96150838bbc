//! Measurements of a span: threads, targets, processors.
//!
//! Reports and the outputs of every dialect use only the measurements and the scenario. Measurements can be
//! sent: a histogram is encoded as HDR V2.

use plumb_block::{Bytes, Nanos};
use plumb_measure::{StorageSide, storage};
use serde::Serialize;

use crate::outcome::LoadOutcome;

/// Measurements of one span.
#[derive(Debug, Clone, Serialize)]
pub struct SpanResult {
    /// Length of the warm-up of the jobs.
    pub warmup: Nanos,
    /// Length of the measurement.
    pub window: Nanos,
    /// Threads, those of the first job first.
    pub threads: Vec<ThreadResult>,
    /// Targets, those of the first job first, in the order of the job.
    pub targets: Vec<TargetResult>,
    /// Use of the processors during the window, by number; empty if unknown.
    pub processors: Vec<ProcessorUse>,
}

/// Result of one thread.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadResult {
    /// First job of the thread: its index in the span.
    pub job: usize,
    /// Processor time of the thread during the window; `None` if it is not recorded.
    pub cpu: Option<CpuUse>,
    /// Results of the thread on each of its targets.
    pub parts: Vec<Part>,
}

/// Result of one thread on one target.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Target of this part: its index in [`SpanResult::targets`].
    pub target: usize,
    /// Measurements of this part.
    pub outcome: LoadOutcome,
}

/// One target of one job.
#[derive(Debug, Clone, Serialize)]
pub struct TargetResult {
    /// Job of the target: its index in the span.
    pub job: usize,
    /// Name as typed.
    pub name: String,
    /// Name of the opened object: an absolute path, or a scheme.
    pub opened: String,
    /// Size of the target.
    pub size: Bytes,
    /// Interface used for requests to the kernel: `io_uring`, `pread/pwrite`, `mmap`.
    pub engine: String,
    /// Work of the devices below during the window, or the reason why it is unknown. Jobs on one device have
    /// the same value.
    pub storage: Result<StorageSide, String>,
}

/// Processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CpuUse {
    /// Time in the program.
    pub user: Nanos,
    /// Time in the kernel on the program's behalf.
    pub system: Nanos,
}

/// Use of one processor during the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ProcessorUse {
    /// Number of the processor.
    pub number: u32,
    /// Time in programs.
    pub user: Nanos,
    /// Time in the kernel, interrupts included.
    pub kernel: Nanos,
    /// Idle time, with waits for I/O.
    pub idle: Nanos,
}

impl CpuUse {
    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }
}

impl SpanResult {
    /// Adds the next round of the same span, as if the two were one window.
    pub fn append(&mut self, next: Self) {
        let seconds = self.window.as_secs_f64() + next.window.as_secs_f64();
        self.window += next.window;
        for (mine, theirs) in self.threads.iter_mut().zip(&next.threads) {
            mine.cpu = mine.cpu.zip(theirs.cpu).map(|(mine, theirs)| mine.plus(theirs));
            for (mine, theirs) in mine.parts.iter_mut().zip(&theirs.parts) {
                mine.outcome.append(&theirs.outcome);
            }
        }
        for (mine, theirs) in self.targets.iter_mut().zip(next.targets) {
            mine.storage = match (mine.storage.clone(), theirs.storage) {
                (Ok(first), Ok(second)) => Ok(storage::one_after_the_other(first, &second, seconds)),
                (Err(why), _) | (_, Err(why)) => Err(why),
            };
        }
        for (mine, theirs) in self.processors.iter_mut().zip(&next.processors) {
            mine.user += theirs.user;
            mine.kernel += theirs.kernel;
            mine.idle += theirs.idle;
        }
    }

    /// Returns the outcome over all threads.
    pub fn total(&self) -> LoadOutcome {
        Self::merged(self.threads.iter().flat_map(|thread| &thread.parts))
    }

    /// Returns the outcome of one job.
    pub fn of_job(&self, job: usize) -> LoadOutcome {
        let job_of = |thread: &ThreadResult, part: &Part| {
            self.targets.get(part.target).map_or(thread.job, |target| target.job)
        };
        let parts =
            self.threads.iter().flat_map(|thread| thread.parts.iter().map(move |part| (thread, part)));
        Self::merged(parts.filter(|(thread, part)| job_of(thread, part) == job).map(|(_, part)| part))
    }

    /// Returns the outcome of one target, by its index in [`targets`](Self::targets).
    pub fn of_target(&self, target: usize) -> LoadOutcome {
        let parts = self.threads.iter().flat_map(|thread| &thread.parts);
        Self::merged(parts.filter(|part| part.target == target))
    }

    /// Returns the processor time of the threads of one job, and of the following jobs with the same threads.
    pub fn cpu_of_job(&self, job: usize) -> CpuUse {
        let threads = self.threads.iter().filter(|thread| thread.job == job);
        threads.filter_map(|thread| thread.cpu).fold(CpuUse::default(), CpuUse::plus)
    }

    fn merged<'a>(parts: impl Iterator<Item = &'a Part>) -> LoadOutcome {
        LoadOutcome::together(parts.map(|part| &part.outcome))
    }
}

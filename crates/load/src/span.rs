//! All that a span measured: threads, targets, processors.
//!
//! Reports and the outputs of every dialect are made from this and the scenario alone. It can be sent: a
//! histogram travels as HDR V2.

use plumb_block::{Bytes, Nanos};
use plumb_measure::{StorageSide, storage};
use serde::Serialize;

use crate::outcome::LoadOutcome;

/// Measurements of one span.
#[derive(Debug, Clone, Serialize)]
pub struct SpanResult {
    /// Time that the jobs ran before they were measured.
    pub warmup: Nanos,
    /// How long they were measured.
    pub window: Nanos,
    /// The threads, those of the first job first.
    pub threads: Vec<ThreadResult>,
    /// The targets, those of the first job first, in the order of the job.
    pub targets: Vec<TargetResult>,
    /// The processors during the window, by number; empty if that is not known.
    pub processors: Vec<ProcessorUse>,
}

/// One thread.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadResult {
    /// First of the jobs that the thread works for: its place in the span.
    pub job: usize,
    /// Returns the processor time of the thread during the window; `None` where it is not kept.
    pub cpu: Option<CpuUse>,
    /// Results of the thread on each of its targets.
    pub parts: Vec<Part>,
}

/// Result of one thread on one target.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Target of this part: its place in [`SpanResult::targets`].
    pub target: usize,
    /// Measurements of this part.
    pub outcome: LoadOutcome,
}

/// One target of one job.
#[derive(Debug, Clone, Serialize)]
pub struct TargetResult {
    /// Job of the target: its place in the span.
    pub job: usize,
    /// Name as typed.
    pub name: String,
    /// Name of what was opened: an absolute path, or a scheme.
    pub opened: String,
    /// How large it is.
    pub size: Bytes,
    /// How requests reached the kernel: `io_uring`, `pread/pwrite`, `mmap`.
    pub engine: String,
    /// Work that the devices beneath were handed during the window, or why that is not known. Jobs on one
    /// device share it.
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
    /// Nothing, waiting for I/O too.
    pub idle: Nanos,
}

impl CpuUse {
    /// Returns both together.
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

    /// Returns everything together.
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

    /// Returns the outcome of one target, by its place in [`targets`](Self::targets).
    pub fn of_target(&self, target: usize) -> LoadOutcome {
        let parts = self.threads.iter().flat_map(|thread| &thread.parts);
        Self::merged(parts.filter(|part| part.target == target))
    }

    /// Returns the processor time of the threads of one job, and of the jobs with the same threads that
    /// follow it.
    pub fn cpu_of_job(&self, job: usize) -> CpuUse {
        let threads = self.threads.iter().filter(|thread| thread.job == job);
        threads.filter_map(|thread| thread.cpu).fold(CpuUse::default(), CpuUse::plus)
    }

    fn merged<'a>(parts: impl Iterator<Item = &'a Part>) -> LoadOutcome {
        LoadOutcome::together(parts.map(|part| &part.outcome))
    }
}

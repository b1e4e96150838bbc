//! Reasons why a trial did not run, or not to its end.

use plumb_application::Error as Application;
use plumb_block::{FailureKind, in_one_line};

/// Reason why a trial was not run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The scenario is invalid.
    #[error("the workload cannot be run")]
    Scenario(#[from] plumb_workload::Invalid),
    /// A target cannot be used.
    #[error(transparent)]
    Target(#[from] plumb_targets::Error),
    /// The workload does not fit a target.
    #[error("{target}")]
    Unfit {
        /// Name of the target.
        target: String,
        /// Error that describes the misfit.
        source: plumb_load::Error,
    },
    /// The run was interrupted before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A flush before the run failed.
    #[error("cannot flush {target}")]
    Flush {
        /// Name of the target.
        target: String,
        /// Error of the flush.
        source: plumb_load::FlushError,
    },
    /// A target could not be read into the page cache.
    #[error("cannot read {target} into the page cache")]
    PageCache {
        /// Name of the target.
        target: String,
        /// Error of the read.
        source: plumb_load::Fault,
    },
    /// An application profile could not be run, or had to stop.
    #[error(transparent)]
    Application(#[from] plumb_application::Error),
    /// The request does not fit the targets or the machine, a check could not begin, or a setting for a span
    /// could not be made or restored.
    #[error("{problem}")]
    Problem {
        /// Problem, its cause, and the remedy.
        problem: String,
        /// Kind of the failure.
        kind: FailureKind,
    },
    /// The recording cannot be written.
    #[error("cannot record the run")]
    Recording(#[from] plumb_measure::Error),
}

impl TrialError {
    /// Creates a failure of this kind. `problem` states what failed, the cause and the remedy.
    pub fn new(kind: FailureKind, problem: impl Into<String>) -> Self {
        Self::Problem { problem: problem.into(), kind }
    }

    /// Creates the failure for an invalid request. `problem` states what to type instead.
    pub fn usage(problem: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, problem)
    }

    /// Returns both as one failure: the original one, and the failure to restore.
    #[must_use]
    pub fn and(&self, left: &Self) -> Self {
        let problem = format!("{}; {}", in_one_line(self), in_one_line(left));
        Self::new(FailureKind::Failed, problem)
    }

    /// Returns the way in which a command that ends with this error fails.
    pub fn failure(&self) -> FailureKind {
        match self {
            Self::Scenario(_) | Self::Unfit { .. } => FailureKind::Usage,
            Self::Target(error) => error.kind().failure(),
            Self::Interrupted => FailureKind::NotMeasured,
            Self::Problem { kind, .. } => *kind,
            Self::Application(
                Application::SyncFailed { .. } | Application::Full { .. } | Application::Call { .. },
            ) => FailureKind::Failed,
            Self::Application(_) => FailureKind::Usage,
            Self::Recording(error) => error.failure(),
            Self::Flush { .. } | Self::PageCache { .. } => FailureKind::Failed,
        }
    }
}

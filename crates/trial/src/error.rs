//! Reasons why a trial was not run, or not to its end.

use plumb_application::Error as Application;
use plumb_block::{FailureKind, in_one_line};

/// Reason why a trial was not run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The scenario makes no sense.
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
        /// Error that says what does not fit.
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
        /// Reason why not.
        source: plumb_load::FlushError,
    },
    /// A target could not be read into the page cache.
    #[error("cannot read {target} into the page cache")]
    PageCache {
        /// Name of the target.
        target: String,
        /// Reason why not.
        source: plumb_load::Fault,
    },
    /// An application profile could not be run, or had to stop.
    #[error(transparent)]
    Application(#[from] plumb_application::Error),
    /// The request does not fit the targets or the machine, a check could not begin, or what a span needs
    /// could not be set on the machine, or not be put back.
    #[error("{problem}")]
    Problem {
        /// Problem, its cause, and what to do.
        problem: String,
        /// Kind of the failure.
        kind: FailureKind,
    },
    /// The recording cannot be written.
    #[error("cannot record the run")]
    Recording(#[from] plumb_measure::Error),
}

impl TrialError {
    /// Creates a failure of this kind; `problem` says what, why, and what to do.
    pub fn new(kind: FailureKind, problem: impl Into<String>) -> Self {
        Self::Problem { problem: problem.into(), kind }
    }

    /// Creates the failure that the request makes no sense; `problem` says what to type instead.
    pub fn usage(problem: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, problem)
    }

    /// Returns both as one: what failed, and what could not be put back then.
    #[must_use]
    pub fn and(&self, left: &Self) -> Self {
        let problem = format!("{}; {}", in_one_line(self), in_one_line(left));
        Self::new(FailureKind::Failed, problem)
    }

    /// Returns the way in which a command fails that ends with it.
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

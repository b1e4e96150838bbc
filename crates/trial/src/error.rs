//! Why a trial was not run, or not to its end.

use plumb_block::{Bytes, in_one_line};

use crate::check::{CheckError, SizeError};

/// Why a trial was not run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The scenario makes no sense.
    #[error("the workload cannot be run")]
    Scenario(#[from] plumb_workload::Invalid),
    /// A target cannot be used.
    #[error(transparent)]
    Target(#[from] plumb_target::Error),
    /// The workload does not fit a target.
    #[error("{target}")]
    Unfit {
        /// Which target.
        target: String,
        /// What does not fit.
        source: plumb_load::Error,
    },
    /// The workload's range does not fit a target.
    #[error("{target}")]
    Range {
        /// Which target.
        target: String,
        /// What does not fit.
        source: plumb_workload::Invalid,
    },
    /// A trace goes beyond the end of a target.
    #[error("{target} holds {size}, and the trace goes on to {end}, {} too far; {remedy}", Bytes(end.0 - size.0))]
    PastTheEnd {
        /// Which target.
        target: String,
        /// How large it is.
        size: Bytes,
        /// The end of the last request.
        end: Bytes,
        /// What to do.
        remedy: String,
    },
    /// It was interrupted before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A flush before the run failed.
    #[error("cannot flush {target}")]
    Flush {
        /// Which target.
        target: String,
        /// Why not.
        source: plumb_load::FlushError,
    },
    /// A target could not be read into the page cache.
    #[error("cannot read {target} into the page cache")]
    PageCache {
        /// Which target.
        target: String,
        /// Why not.
        source: plumb_load::Fault,
    },
    /// A check could not begin.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A processor that a thread is to run on does not exist or is not allowed.
    #[error("processor {processor} of affinity: expected one of {allowed:?}")]
    Processor {
        /// Its number.
        processor: u32,
        /// Those that there are.
        allowed: Vec<u32>,
    },
    /// An application profile could not be run, or had to stop.
    #[error(transparent)]
    Application(plumb_application::Error),
    /// What a turn needs could not be set on the machine, or not be put back.
    #[error("{problem}")]
    Setting {
        /// What, why, and what to do.
        problem: String,
        /// What kind of failure it is.
        kind: FailureKind,
    },
    /// The recording cannot be written.
    #[error("cannot record the run")]
    Recording(#[from] plumb_measure::Error),
}

/// What kind of failure it is, for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// What was typed makes no sense.
    Usage,
    /// It could not be measured.
    NotMeasured,
    /// Refused for safety.
    Refused,
    /// Something failed.
    Failed,
}

impl TrialError {
    /// Both as one: what failed, and what could not be put back then.
    #[must_use]
    pub fn and(&self, left: &Self) -> Self {
        let problem = format!("{}; {}", in_one_line(self), in_one_line(left));
        Self::Setting { problem, kind: FailureKind::Failed }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Scenario(_)
            | Self::Unfit { .. }
            | Self::Range { .. }
            | Self::PastTheEnd { .. }
            | Self::Processor { .. } => FailureKind::Usage,
            Self::Target(error) => match error.kind().exit_code() {
                2 => FailureKind::Usage,
                4 => FailureKind::Refused,
                _ => FailureKind::Failed,
            },
            Self::Interrupted => FailureKind::NotMeasured,
            Self::Setting { kind, .. } => *kind,
            Self::Application(error) => crate::profile::kind_of(error),
            Self::Recording(error) if error.is_of_the_place() => FailureKind::Usage,
            Self::Check(CheckError::RawDevice { .. }) => FailureKind::Refused,
            Self::Check(CheckError::Size { source: SizeError::NoSpace { .. }, .. }) => {
                FailureKind::NotMeasured
            }
            Self::Check(_) => FailureKind::Usage,
            Self::Flush { .. } | Self::PageCache { .. } | Self::Recording(_) => FailureKind::Failed,
        }
    }
}

//! Why a check could not be made, and how that should end.

use std::path::PathBuf;

use crate::plan::SizeError;

/// How a check that came to no whole result ended; the binary has an exit code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// What was typed makes no sense.
    Usage,
    /// It cannot be measured there.
    NotMeasured,
    /// It was refused because data could be lost.
    Refused,
    /// Something failed that should not.
    Failed,
}

/// A check that could not begin. What goes wrong later is in the document.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The path cannot be looked at.
    #[error("cannot look at {}", path.display())]
    NotThere {
        /// What was given.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A block device was named.
    #[error(
        "{0} is a block device, and a check writes: it would destroy what is on it. Check a directory on it, or look \
         at it with `plumb survey {0}`",
        path.display()
    )]
    RawDevice {
        /// What was given.
        path: PathBuf,
    },
    /// Something else was named.
    #[error("{} is neither a directory nor a file: name a directory", path.display())]
    NotADirectory {
        /// What was given.
        path: PathBuf,
    },
    /// No test file of a sensible size fits, or no such part of a drive.
    #[error("cannot measure in {place}")]
    Size {
        /// The directory, or the drive.
        place: String,
        /// Why, and what to do.
        source: SizeError,
    },
    /// The survey failed.
    #[error(transparent)]
    Survey(#[from] plumb_path::SurveyError),
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] plumb_measure::Error),
    /// The report cannot be made.
    #[error("cannot make the report: {0}")]
    Report(String),
    /// The machine refuses something that every machine should give.
    #[error(transparent)]
    Block(#[from] plumb_block::Error),
}

impl CheckError {
    /// How it should end.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::NotThere { .. } | Self::NotADirectory { .. } => FailureKind::Usage,
            Self::Size {
                source:
                    SizeError::TooSmall { .. } | SizeError::OverShare { .. } | SizeError::BeyondDrive { .. },
                ..
            } => FailureKind::Usage,
            Self::Size { .. } => FailureKind::NotMeasured,
            Self::RawDevice { .. } => FailureKind::Refused,
            Self::Survey(_) | Self::Recording(plumb_measure::Error::Occupied { .. }) => FailureKind::Usage,
            Self::Recording(_) | Self::Report(_) | Self::Block(_) => FailureKind::Failed,
        }
    }
}

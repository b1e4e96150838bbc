//! How a check ended, and what a failure of one phase means for the rest.

use plumb_block::{Errno, ErrorKind, Outcome, in_one_line};
use plumb_load::{Fault, LoadFailure};

/// How a check ended that could at least begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every phase ran.
    Complete,
    /// It was told to stop; what was measured until then is kept.
    Interrupted,
    /// Something could not be measured there; the reason.
    NotMeasured(String),
    /// Something failed that should not: a device, a flush; the reason.
    Failed(String),
}

impl Ended {
    /// Why it is not complete; `None` if it is.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some("interrupted by a signal".to_owned()),
            Self::NotMeasured(reason) | Self::Failed(reason) => Some(reason.clone()),
        }
    }
}

/// Why a phase has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mishap {
    /// This place cannot do it; the other phases may go on.
    Unsupported(String),
    /// There is no room left, or it may not be written: no phase can go on.
    Refused(String),
    /// It failed: no phase can go on.
    Failed(String),
    /// It was told to stop before there was anything to keep.
    Interrupted,
}

impl Mishap {
    /// The sentence for the document.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Unsupported(reason) | Self::Refused(reason) | Self::Failed(reason) => reason.clone(),
            Self::Interrupted => "interrupted".to_owned(),
        }
    }

    /// What an error number means: a full or read-only file system is nobody's failure.
    fn of(errno: Option<Errno>, reason: String) -> Self {
        match errno {
            Some(Errno::EINTR) => Self::Interrupted,
            Some(Errno::EROFS | Errno::EACCES | Errno::EPERM) => Self::Refused(reason),
            Some(errno) if errno.is_full() => Self::Refused(reason),
            _ => Self::Failed(reason),
        }
    }
}

impl From<plumb_block::Error> for Mishap {
    fn from(error: plumb_block::Error) -> Self {
        let reason = error.to_string();
        match error.kind {
            ErrorKind::Unsupported => Self::Unsupported(reason),
            ErrorKind::FlushLatched => Self::Failed(reason),
            _ => Self::of(error.errno(), reason),
        }
    }
}

impl From<plumb_load::Error> for Mishap {
    fn from(error: plumb_load::Error) -> Self {
        match error {
            plumb_load::Error::Device(error) => error.into(),
            other => Self::Failed(in_one_line(&other)),
        }
    }
}

impl From<plumb_load::FlushError> for Mishap {
    fn from(error: plumb_load::FlushError) -> Self {
        match error {
            plumb_load::FlushError::Device(error) => error.into(),
            plumb_load::FlushError::Failed(fault) => {
                Self::Failed(format!("a sync of the test file failed: {}", in_one_line(&fault)))
            }
        }
    }
}

impl From<LoadFailure> for Mishap {
    fn from(failure: LoadFailure) -> Self {
        let reason = in_one_line(&failure.fault);
        match &failure.fault {
            Fault::Request { outcome: Outcome::Failed(errno), .. } => Self::of(Some(*errno), reason),
            // A failed flush is a failure whatever its number says: what was written before it cannot be trusted.
            _ => Self::Failed(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::Error;

    use super::*;

    #[test]
    fn a_full_disk_is_no_failure_but_an_io_error_is() {
        let mishap = |errno| Mishap::from(Error::new(ErrorKind::Os(errno), "write", "a file"));
        assert!(matches!(mishap(Errno::ENOSPC), Mishap::Refused(_)));
        assert!(matches!(mishap(Errno::EROFS), Mishap::Refused(_)));
        assert!(matches!(mishap(Errno::EIO), Mishap::Failed(_)));
        assert_eq!(mishap(Errno::EINTR), Mishap::Interrupted);
        // A failed sync is a failure also where its number speaks of space: it cannot be repeated and trusted.
        let latched =
            Error::new(ErrorKind::FlushLatched, "sync", "a file").because("No space left on device");
        assert!(matches!(Mishap::from(latched), Mishap::Failed(_)));
        let unsupported = Error::new(ErrorKind::Unsupported, "open for direct I/O", "a file");
        assert!(matches!(Mishap::from(unsupported), Mishap::Unsupported(_)));
    }
}

//! How a run ends that something stopped.

use plumb_block::{Errno, Outcome, in_one_line};
use plumb_load::Fault;
use plumb_targets::Kind;

use crate::error::TrialError;
use crate::trial::TrialEnded;

/// How a check ends that something stopped: a full or read-only file system is nobody's failure.
pub(crate) fn ended_by(error: &TrialError) -> TrialEnded {
    let errno = match error {
        TrialError::Interrupted => return TrialEnded::Interrupted,
        TrialError::Target(error) => match error.kind() {
            Kind::Os(errno) => errno,
            Kind::Unsupported | Kind::Refused => return TrialEnded::NotMeasured(in_one_line(error)),
            _ => None,
        },
        TrialError::Flush {
            source: plumb_load::FlushError::Device(plumb_load::Error::Device(error)),
            ..
        }
        | TrialError::Unfit { source: plumb_load::Error::Device(error), .. } => error.errno(),
        TrialError::PageCache { source, .. } => return ended_by_fault(source),
        TrialError::Recording(plumb_measure::Error::Full { .. }) => {
            return TrialEnded::NotMeasured(in_one_line(error));
        }
        _ => None,
    };
    ended_by_errno(errno, in_one_line(error))
}

/// The same of a load that met a fault.
pub(crate) fn ended_by_fault(fault: &Fault) -> TrialEnded {
    match fault {
        Fault::Request { outcome: Outcome::Failed(errno), .. } => {
            ended_by_errno(Some(*errno), in_one_line(fault))
        }
        // A failed flush is a failure whatever its number says: what was written before it cannot be trusted.
        _ => TrialEnded::Failed(in_one_line(fault)),
    }
}

fn ended_by_errno(errno: Option<Errno>, reason: String) -> TrialEnded {
    match errno {
        Some(Errno::EINTR) => TrialEnded::Interrupted,
        Some(Errno::EROFS | Errno::EACCES | Errno::EPERM) => TrialEnded::NotMeasured(reason),
        Some(errno) if errno.is_full() => TrialEnded::NotMeasured(reason),
        _ => TrialEnded::Failed(reason),
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_full_disk_is_no_failure_but_an_io_error_is() {
        let ended = |errno| {
            let source = Error::new(ErrorKind::Os(errno), "write", "a file").into();
            ended_by(&TrialError::Unfit { target: "a file".to_owned(), source })
        };
        assert!(matches!(ended(Errno::ENOSPC), TrialEnded::NotMeasured(_)));
        assert!(matches!(ended(Errno::EROFS), TrialEnded::NotMeasured(_)));
        assert!(matches!(ended(Errno::EIO), TrialEnded::Failed(_)));
        assert_eq!(ended(Errno::EINTR), TrialEnded::Interrupted);
        // A failed sync is a failure also where its number speaks of space: it cannot be repeated and trusted.
        let latched =
            Error::new(ErrorKind::FlushLatched, "sync", "a file").because("No space left on device");
        let target = "a file".to_owned();
        assert!(matches!(
            ended_by(&TrialError::Flush { target, source: plumb_load::FlushError::Device(latched.into()) }),
            TrialEnded::Failed(_)
        ));
    }
}

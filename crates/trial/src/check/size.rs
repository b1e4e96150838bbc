//! How much of a place a check takes: little of what is free, and no more than can be written in its time.

use plumb_block::{Bytes, Nanos};

use super::plan::{APPEND_SHARE, IO_BLOCK};

/// The size of the test file unless the user or the free space says otherwise: large enough that a drive's read
/// cache seldom holds it, small enough to be written in a second or two.
const FILE_DEFAULT: Bytes = Bytes::mib(256);
/// Below this a random load would touch the same blocks over and over, and every figure would be of a cache.
const FILE_MIN: Bytes = Bytes::mib(1);
/// The share of the free space that a check may take: one in this many bytes.
const FREE_SHARE: u64 = 10;
/// What counts as free on a file system that has no size, such as ramfs: little, for it is somebody's memory.
pub(super) const FREE_UNSIZED: Bytes = Bytes::mib(200);

/// Why no test file can be made within the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A tenth of the free space is too little.
    #[error(
        "only {free} are free there, and a check takes at most a tenth of that: free at least {}, or check another \
         directory",
        Bytes(FILE_MIN.0 * FREE_SHARE * (APPEND_SHARE + 1) / APPEND_SHARE)
    )]
    NoSpace {
        /// What is free.
        free: Bytes,
    },
    /// More was asked for than a tenth of the free space.
    #[error(
        "--size {asked} is too much: with what grows beside it, it must stay within a tenth of the {free} that are free there: ask for at most {}",
        Bytes(free.0 / FREE_SHARE / (APPEND_SHARE + 1) * APPEND_SHARE).round_down(FILE_MIN)
    )]
    OverShare {
        /// What was asked for.
        asked: Bytes,
        /// What is free.
        free: Bytes,
    },
    /// More was asked for than the drive has.
    #[error("--size {asked} is more than the {size} of the drive: ask for at most that")]
    BeyondDrive {
        /// What was asked for.
        asked: Bytes,
        /// What the drive has.
        size: Bytes,
    },
    /// Less was asked for than is of use.
    #[error("--size {asked} is too small to measure anything but a cache: ask for at least {FILE_MIN}")]
    TooSmall {
        /// What was asked for.
        asked: Bytes,
    },
}

/// The size of the test file: as asked, else [`FILE_DEFAULT`], never over a tenth of the `free` space.
///
/// # Errors
/// [`SizeError`], with what to do about it.
pub(super) fn file_size(asked: Option<Bytes>, free: Bytes) -> Result<Bytes, SizeError> {
    // The two files together: the test file and the one that is appended to.
    let allowed = Bytes(free.0 / FREE_SHARE / (APPEND_SHARE + 1) * APPEND_SHARE);
    if allowed < FILE_MIN {
        return Err(SizeError::NoSpace { free });
    }
    match asked {
        None => Ok(FILE_DEFAULT.min(allowed).round_down(FILE_MIN)),
        Some(asked) if asked < FILE_MIN => Err(SizeError::TooSmall { asked }),
        Some(asked) if asked > allowed => Err(SizeError::OverShare { asked, free }),
        Some(asked) => Ok(asked.round_down(IO_BLOCK)),
    }
}

/// The part of a drive of `size` that is used: as asked, else [`FILE_DEFAULT`], all of a smaller drive.
///
/// # Errors
/// [`SizeError`], with what to do about it.
pub(super) fn drive_size(asked: Option<Bytes>, size: Bytes) -> Result<Bytes, SizeError> {
    match asked.unwrap_or(FILE_DEFAULT.min(size)) {
        asked if asked < FILE_MIN => Err(SizeError::TooSmall { asked }),
        asked if asked > size => Err(SizeError::BeyondDrive { asked, size }),
        asked => Ok(asked.round_down(IO_BLOCK)),
    }
}

/// What can be written in the rest of `budget`, if `written` took `took`.
pub(super) fn affordable(written: Bytes, took: Nanos, budget: Nanos) -> Bytes {
    let rate = written.0 as f64 / took.as_secs_f64().max(1e-6);
    Bytes((rate * budget.since(took).as_secs_f64()) as u64).round_down(FILE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_used_as_far_as_it_goes() {
        assert_eq!(drive_size(None, Bytes::gib(4)), Ok(FILE_DEFAULT));
        assert_eq!(drive_size(None, Bytes::mib(64)), Ok(Bytes::mib(64)));
        assert_eq!(drive_size(Some(Bytes::gib(4)), Bytes::gib(4)), Ok(Bytes::gib(4)));
        let beyond = drive_size(Some(Bytes::gib(5)), Bytes::gib(4));
        assert!(matches!(beyond, Err(SizeError::BeyondDrive { .. })), "{beyond:?}");
        assert!(matches!(drive_size(None, Bytes(4096)), Err(SizeError::TooSmall { .. })));
    }

    #[test]
    fn a_check_never_takes_more_than_a_tenth_of_the_free_space() {
        for free in [13 << 20, 14 << 20, 123_456_789, 2 << 30, 1 << 40] {
            let size = file_size(None, Bytes(free)).unwrap();
            let both = size.0 + size.0 / APPEND_SHARE;
            assert!(both * FREE_SHARE <= free && size >= FILE_MIN, "{size} of {free}");
        }
        assert_eq!(file_size(Some(Bytes::gib(1)), Bytes::gib(13)), Ok(Bytes::gib(1)));
        assert!(matches!(file_size(None, Bytes::mib(12)), Err(SizeError::NoSpace { .. })));
        assert!(matches!(file_size(Some(Bytes::gib(1)), Bytes::gib(12)), Err(SizeError::OverShare { .. })));
        assert!(matches!(file_size(Some(Bytes(4096)), Bytes::gib(9)), Err(SizeError::TooSmall { .. })));
    }

    #[test]
    fn a_slow_place_gets_a_smaller_file() {
        // 16 MiB in 1 s of 4 s: 48 MiB in the other three.
        assert_eq!(affordable(Bytes::mib(16), Nanos::secs(1), Nanos::secs(4)), Bytes::mib(48));
        assert_eq!(affordable(Bytes::mib(16), Nanos::secs(9), Nanos::secs(4)), Bytes(0));
    }
}

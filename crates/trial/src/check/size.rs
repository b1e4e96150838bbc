//! Size of the test file of a check: a small part of the free space, and no more than can be written in its
//! time.

use plumb_block::{Bytes, FailureKind, Nanos};

use super::plan::{APPEND_SHARE, IO_BLOCK};
use crate::error::TrialError;

/// Default size of the test file: large enough that a drive's read cache seldom holds it, small enough to be
/// written in a second or two.
const FILE_DEFAULT: Bytes = Bytes::mib(256);
/// Minimum size: below it a random load would hit the same blocks again and again, and every figure would be
/// that of a cache.
const FILE_MIN: Bytes = Bytes::mib(1);
/// Divisor of the free space that gives the maximum size of a check.
const FREE_SHARE: u64 = 10;
/// Free space assumed on a file system without a size, such as ramfs: little, since it occupies memory.
pub(super) const FREE_UNSIZED: Bytes = Bytes::mib(200);

/// Returns the size of the test file in `target`: as requested, otherwise [`FILE_DEFAULT`], at most a tenth
/// of the `free` space.
///
/// # Errors
/// The reason and the remedy; [`FailureKind::NotMeasured`] if a tenth is too little.
pub(super) fn file_size(target: &str, asked: Option<Bytes>, free: Bytes) -> Result<Bytes, TrialError> {
    // Limit for both files together: the test file and the appended one.
    let allowed = Bytes(free.0 / FREE_SHARE / (APPEND_SHARE + 1) * APPEND_SHARE);
    if allowed < FILE_MIN {
        let least = Bytes(FILE_MIN.0 * FREE_SHARE * (APPEND_SHARE + 1) / APPEND_SHARE);
        let why = format!(
            "only {free} are free there, and a check takes at most a tenth of that: free at least {least}, or check another \
             directory"
        );
        return Err(unfit(FailureKind::NotMeasured, target, &why));
    }
    match asked {
        None => Ok(FILE_DEFAULT.min(allowed).round_down(FILE_MIN)),
        Some(asked) if asked < FILE_MIN => Err(too_small(target, asked)),
        Some(asked) if asked > allowed => {
            let why = format!(
                "--size {asked} is too large: a check uses at most a tenth of the free space, which is {free}; the limit here is {}",
                allowed.round_down(FILE_MIN)
            );
            Err(unfit(FailureKind::Usage, target, &why))
        }
        Some(asked) => Ok(asked.round_down(IO_BLOCK)),
    }
}

/// Returns the used size of the drive `target` of `size`: as requested, otherwise [`FILE_DEFAULT`], or the
/// whole of a smaller drive.
///
/// # Errors
/// The reason and the remedy.
pub(super) fn drive_size(target: &str, asked: Option<Bytes>, size: Bytes) -> Result<Bytes, TrialError> {
    match asked.unwrap_or(FILE_DEFAULT.min(size)) {
        asked if asked < FILE_MIN => Err(too_small(target, asked)),
        asked if asked > size => {
            let why = format!("--size {asked} is more than the {size} of the drive: ask for at most that");
            Err(unfit(FailureKind::Usage, target, &why))
        }
        asked => Ok(asked.round_down(IO_BLOCK)),
    }
}

fn too_small(target: &str, asked: Bytes) -> TrialError {
    let why =
        format!("--size {asked} is too small to measure anything but a cache: ask for at least {FILE_MIN}");
    unfit(FailureKind::Usage, target, &why)
}

fn unfit(kind: FailureKind, target: &str, why: &str) -> TrialError {
    TrialError::new(kind, format!("cannot measure in {target}: {why}"))
}

/// Returns the number of bytes that can be written in the rest of `budget`, if `written` took `took`.
pub(super) fn affordable(written: Bytes, took: Nanos, budget: Nanos) -> Bytes {
    let rate = written.0 as f64 / took.as_secs_f64().max(1e-6);
    Bytes((rate * budget.since(took).as_secs_f64()) as u64).round_down(FILE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_used_as_far_as_it_goes() {
        let size = |asked, size| drive_size("sim:a", asked, size).map_err(|error| error.to_string());
        assert_eq!(size(None, Bytes::gib(4)), Ok(FILE_DEFAULT));
        assert_eq!(size(None, Bytes::mib(64)), Ok(Bytes::mib(64)));
        assert_eq!(size(Some(Bytes::gib(4)), Bytes::gib(4)), Ok(Bytes::gib(4)));
        let beyond = size(Some(Bytes::gib(5)), Bytes::gib(4)).unwrap_err();
        assert!(
            beyond.starts_with("cannot measure in sim:a: --size 5 GiB is more than the 4 GiB"),
            "{beyond}"
        );
        assert!(size(None, Bytes(4096)).unwrap_err().contains("is too small"));
    }

    #[test]
    fn a_check_never_takes_more_than_a_tenth_of_the_free_space() {
        for free in [13 << 20, 14 << 20, 123_456_789, 2 << 30, 1 << 40] {
            let size = file_size("/srv", None, Bytes(free)).unwrap();
            let both = size.0 + size.0 / APPEND_SHARE;
            assert!(both * FREE_SHARE <= free && size >= FILE_MIN, "{size} of {free}");
        }
        assert_eq!(file_size("/srv", Some(Bytes::gib(1)), Bytes::gib(13)).unwrap(), Bytes::gib(1));
        let refused = |asked, free| file_size("/srv", asked, free).unwrap_err();
        let full = refused(None, Bytes::mib(12));
        assert_eq!(full.failure(), FailureKind::NotMeasured, "{full}");
        assert!(
            refused(Some(Bytes::gib(1)), Bytes::gib(12))
                .to_string()
                .contains("a tenth of the free space, which is 12 GiB")
        );
        assert!(refused(Some(Bytes(4096)), Bytes::gib(9)).to_string().contains("is too small"));
    }

    #[test]
    fn a_slow_place_gets_a_smaller_file() {
        // 16 MiB in 1 s of 4 s: 48 MiB in the other three.
        assert_eq!(affordable(Bytes::mib(16), Nanos::secs(1), Nanos::secs(4)), Bytes::mib(48));
        assert_eq!(affordable(Bytes::mib(16), Nanos::secs(9), Nanos::secs(4)), Bytes(0));
    }
}

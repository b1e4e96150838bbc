//! What a check does and how long each part may take: decided before anything is touched, so that the time left is
//! known from the first second.

use plumb_block::{Bytes, Nanos};
use plumb_measure::SyncMethod;

/// The size of the test file unless the user or the free space says otherwise: large enough that a drive's read
/// cache seldom holds it, small enough to be written in a second or two.
pub const FILE_DEFAULT: Bytes = Bytes::mib(256);
/// Below this a random load would touch the same blocks over and over, and every figure would be of a cache.
pub const FILE_MIN: Bytes = Bytes::mib(1);
/// The share of the free space that a check may take: one in this many bytes.
pub const FREE_SHARE: u64 = 10;

/// What counts as free on a file system that has no size, such as ramfs: little, for it is somebody's memory.
pub const FREE_UNSIZED: Bytes = Bytes::mib(200);
/// The file that is appended to grows to this part of the test file at most, then starts again.
pub const APPEND_SHARE: u64 = 4;

/// The block of the durable writes.
pub const SYNC_BLOCK: Bytes = Bytes::kib(4);
/// The block of the loads: the page of PostgreSQL and SQL Server, and the block of field report B.
pub const IO_BLOCK: Bytes = Bytes::kib(8);
/// How many direct requests are kept in flight. Cached ones are served in the call, so their depth is 1.
pub const IO_DEPTH: u32 = 32;

/// A simulated drive may answer millions of requests in a second of its time: after so many all is known that a phase can
/// tell, and nobody waits longer than a disk of that speed would take.
pub const DRIVE_OPERATIONS_MAX: u64 = 1_000_000;

/// One load of the table of application against storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IoKind {
    /// Writes instead of reads.
    pub write: bool,
    /// Past the page cache (O_DIRECT).
    pub direct: bool,
}

impl IoKind {
    /// The order in which results are shown.
    pub const ALL: [Self; 4] = [
        Self { write: false, direct: false },
        Self { write: false, direct: true },
        Self { write: true, direct: false },
        Self { write: true, direct: true },
    ];

    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match (self.write, self.direct) {
            (false, false) => "read-cached",
            (false, true) => "read-direct",
            (true, false) => "write-cached",
            (true, true) => "write-direct",
        }
    }
}

/// One part of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Write the test file with random bytes, so that no read comes from nothing.
    Prepare,
    /// Sync a clean file some times, to learn how this kernel counts empty flushes.
    Calibrate,
    /// Measure one way to make a write durable.
    Sync(SyncMethod),
    /// Measure one load.
    Io(IoKind),
}

impl Phase {
    /// The name in recordings and on the progress line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Calibrate => "calibrate",
            Self::Sync(SyncMethod::OverwriteFdatasync) => "overwrite-fdatasync",
            Self::Sync(SyncMethod::AppendFdatasync) => "append-fdatasync",
            Self::Sync(SyncMethod::DirectDsync) => "direct-dsync",
            Self::Io(kind) => kind.name(),
        }
    }

    /// Its part of the whole, in hundredths.
    const fn share(self) -> u64 {
        match self {
            Self::Prepare => 12,
            Self::Calibrate => 1,
            Self::Sync(_) => 13,
            Self::Io(_) => 12,
        }
    }
}

/// The phases in the order in which they run.
///
/// Durable writes come first, on a device that nothing has warmed up yet; the cached write comes last, because what
/// it leaves dirty would disturb whatever followed.
pub const PHASES: [Phase; 9] = [
    Phase::Prepare,
    Phase::Calibrate,
    Phase::Sync(SyncMethod::OverwriteFdatasync),
    Phase::Sync(SyncMethod::AppendFdatasync),
    Phase::Sync(SyncMethod::DirectDsync),
    Phase::Io(IoKind { write: false, direct: true }),
    Phase::Io(IoKind { write: true, direct: true }),
    Phase::Io(IoKind { write: false, direct: false }),
    Phase::Io(IoKind { write: true, direct: false }),
];

/// The phases of a check of a simulated drive, which has no page cache, and counts its flushes apart.
pub const DRIVE_PHASES: [Phase; 6] = [
    Phase::Prepare,
    Phase::Sync(SyncMethod::OverwriteFdatasync),
    Phase::Sync(SyncMethod::AppendFdatasync),
    Phase::Sync(SyncMethod::DirectDsync),
    Phase::Io(IoKind { write: false, direct: true }),
    Phase::Io(IoKind { write: true, direct: true }),
];

/// How long `phase` may take of a check of these phases and of `total`.
pub fn time_for(phase: Phase, phases: &[Phase], total: Nanos) -> Nanos {
    let all: u64 = phases.iter().map(|phase| phase.share()).sum();
    Nanos(total.0 / all.max(1) * phase.share())
}

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
pub fn file_size(asked: Option<Bytes>, free: Bytes) -> Result<Bytes, SizeError> {
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
pub fn drive_size(asked: Option<Bytes>, size: Bytes) -> Result<Bytes, SizeError> {
    match asked.unwrap_or(FILE_DEFAULT.min(size)) {
        asked if asked < FILE_MIN => Err(SizeError::TooSmall { asked }),
        asked if asked > size => Err(SizeError::BeyondDrive { asked, size }),
        asked => Ok(asked.round_down(IO_BLOCK)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phases_fill_the_time_and_no_more() {
        let shares: u64 = PHASES.iter().map(|phase| phase.share()).sum();
        assert_eq!(shares, 100);
    }

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
}

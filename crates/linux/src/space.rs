//! How much room a file system has, whether it takes writes at all, and reserving room there.

use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;

use plumb_block::{Bytes, Errno, Error, ErrorKind, Result};
use rustix::fs::{FallocateFlags, StatVfsMountFlags};

/// The room of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Room that a process without privileges may still take.
    pub free: Bytes,
    /// The whole.
    pub total: Bytes,
    /// True if it is mounted read-only.
    pub read_only: bool,
}

/// Returns the room of the file system that holds `path` (statvfs(3)).
///
/// # Errors
/// If the path cannot be looked at.
pub fn space_at(path: &Path) -> Result<Space> {
    let stat = rustix::fs::statvfs(path).map_err(|errno| {
        Error::new(
            ErrorKind::Os(Errno(errno.raw_os_error())),
            "look at the file system of",
            path.display().to_string(),
        )
    })?;
    Ok(Space {
        free: Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)),
        total: Bytes(stat.f_blocks.saturating_mul(stat.f_frsize)),
        read_only: stat.f_flag.contains(StatVfsMountFlags::RDONLY),
    })
}

/// Returns the bytes that the file system of an open file has left for a process without privileges
/// (fstatvfs(3)); `None` if it has no size of its own (ramfs).
///
/// # Errors
/// As fstatvfs(3).
pub fn free_beside(file: impl AsFd) -> rustix::io::Result<Option<Bytes>> {
    let system = rustix::fs::fstatvfs(file)?;
    Ok((system.f_blocks > 0).then_some(Bytes(system.f_bavail.saturating_mul(system.f_frsize))))
}

/// Reserves room for a range of a file, which then is at least as long as the range reaches (fallocate(2)).
/// Nothing is taken if the room is not there: ext4 would take all that is left before it says so, and for
/// that time whoever else writes there would find a full disk.
///
/// # Errors
/// NOSPC without the room; OPNOTSUPP or NOSYS if the file system cannot reserve any.
pub fn reserve(file: impl AsFd, range: Range<Bytes>) -> rustix::io::Result<()> {
    let length = range.end - range.start;
    let allocated = rustix::fs::fstat(&file)?.st_blocks.unsigned_abs() * 512;
    let missing = length.0.saturating_sub(allocated);
    if free_beside(&file)?.is_some_and(|free| free.0 < missing) {
        return Err(rustix::io::Errno::NOSPC);
    }
    rustix::fs::fallocate(file, FallocateFlags::empty(), range.start.0, length.0)
}

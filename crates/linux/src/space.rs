//! Free space of a file system, whether it is writable, and reservation of space.

use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;

use plumb_block::{Bytes, Errno, Error, ErrorKind, Result};
use rustix::fs::{FallocateFlags, StatVfsMountFlags};

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes available to unprivileged processes.
    pub free: Bytes,
    /// Total size in bytes.
    pub total: Bytes,
    /// True if the file system is mounted read-only.
    pub read_only: bool,
}

/// Returns the space of the file system that holds `path` (statvfs(3)).
///
/// # Errors
/// If the path cannot be accessed.
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

/// Returns the bytes available to unprivileged processes in the file system of an open file (fstatvfs(3));
/// `None` if it has no size of its own (ramfs).
///
/// # Errors
/// Fails as fstatvfs(3) does.
pub fn free_beside(file: impl AsFd) -> rustix::io::Result<Option<Bytes>> {
    let system = rustix::fs::fstatvfs(file)?;
    Ok((system.f_blocks > 0).then_some(Bytes(system.f_bavail.saturating_mul(system.f_frsize))))
}

/// Reserves space for a range of a file and extends the file to its end if needed (fallocate(2)). The
/// available space is checked first: ext4 would allocate everything left before it fails, and meanwhile other
/// writers would find a full disk.
///
/// # Errors
/// NOSPC without enough space; OPNOTSUPP or NOSYS if the file system does not support reservation.
pub fn reserve(file: impl AsFd, range: Range<Bytes>) -> rustix::io::Result<()> {
    let length = range.end - range.start;
    let allocated = rustix::fs::fstat(&file)?.st_blocks.unsigned_abs() * 512;
    let missing = length.0.saturating_sub(allocated);
    if free_beside(&file)?.is_some_and(|free| free.0 < missing) {
        return Err(rustix::io::Errno::NOSPC);
    }
    rustix::fs::fallocate(file, FallocateFlags::empty(), range.start.0, length.0)
}

//! How much room a file system has, and whether it takes writes at all.

use std::path::Path;

use plumb_block::{Bytes, Errno, Error, ErrorKind, Result};
use rustix::fs::StatVfsMountFlags;

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

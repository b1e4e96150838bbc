//! Locks on ranges of a file or device node that belong to an open file description (`F_OFD_SETLK`, fcntl(2),
//! Linux 3.15).
//!
//! The kernel releases a lock with the last descriptor of the description, however the process ends. Two
//! nodes of one block device have separate locks.

#![expect(unsafe_code, reason = "rustix has no locks of open file descriptions")]

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd as _};

/// Kind of a lock of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockKind {
    /// Shared with other holders.
    Shared,
    /// Exclusive; the descriptor must be open for writing.
    Exclusive,
}

/// Locks the bytes of `range` for the open file description of `file`, without waiting. Returns false if
/// another holder has a conflicting lock.
///
/// # Errors
/// Fails as fcntl(2) does, also if the file system has no locks.
pub fn lock(file: impl AsFd, range: Range<u64>, kind: LockKind) -> io::Result<bool> {
    let kind = match kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
    };
    match call(file, libc::F_OFD_SETLK, range, kind) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns true if another open file description has any lock on bytes of `range`.
///
/// # Errors
/// Fails as fcntl(2) does.
pub fn is_locked(file: impl AsFd, range: Range<u64>) -> io::Result<bool> {
    Ok(call(file, libc::F_OFD_GETLK, range, libc::F_WRLCK)? != libc::F_UNLCK as libc::c_short)
}

/// Calls fcntl(2) and returns the kind of lock that the kernel writes into the request.
fn call(
    file: impl AsFd,
    command: libc::c_int,
    range: Range<u64>,
    kind: libc::c_int,
) -> io::Result<libc::c_short> {
    let offset = |byte: u64| i64::try_from(byte).unwrap_or(i64::MAX);
    let mut request = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: offset(range.start),
        l_len: offset(range.end) - offset(range.start),
        l_pid: 0,
    };
    // SAFETY: the descriptor is open while it is borrowed, and these commands read and write one struct
    // flock, which outlives the call.
    let result = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(request.l_type) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_locked_by_open_file_descriptions_until_these_are_closed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || std::fs::File::options().read(true).write(true).open(file.path()).unwrap();
        let (one, other) = (open(), open());
        assert!(lock(&one, 0..4096, LockKind::Exclusive).unwrap());
        assert!(lock(&other, 4096..8192, LockKind::Exclusive).unwrap(), "they only touch");
        assert!(!lock(&other, 4095..4096, LockKind::Shared).unwrap());
        assert!(is_locked(&other, 0..1).unwrap() && !is_locked(&one, 0..4096).unwrap());
        assert!(is_locked(open(), 8000..9000).unwrap() && !is_locked(open(), 8192..9000).unwrap());
        let second = one.try_clone().unwrap();
        drop(one);
        assert!(is_locked(&other, 0..1).unwrap(), "a copy of the descriptor keeps it");
        drop(second);
        assert!(lock(&other, 0..4096, LockKind::Shared).unwrap());
    }
}

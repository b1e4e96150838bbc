//! Locks on whole files: /proc/locks, fs/locks.c (lock_get_status).
//!
//! ```text
//! 1: FLOCK  ADVISORY  WRITE 708 fd:00:131 0 EOF
//! ```
//! Major and minor number of the file system's device are hexadecimal, the inode is decimal.
//!
//! Limitations: btrfs and overlayfs show another device here than stat(2) does, so a lock there is not found.

use super::block::FileId;

/// An exclusive flock(2) on a file: what a simulated drive has on its medium and a cache on its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock {
    /// The file.
    pub(super) file: FileId,
    /// The process that took the lock.
    pub(super) process: String,
}

/// Reads one line; `None` for locks of other kinds and for lines of another form.
pub(super) fn parse_line(line: &str) -> Option<Lock> {
    let mut words = line.split_whitespace().skip(1);
    if words.next() != Some("FLOCK") || words.nth(1) != Some("WRITE") {
        return None;
    }
    let process = words.next()?.to_owned();
    let mut place = words.next()?.split(':');
    let mut hexadecimal = || u32::from_str_radix(place.next()?, 16).ok();
    let device = rustix::fs::makedev(hexadecimal()?, hexadecimal()?);
    Some(Lock { file: FileId { device, inode: place.next()?.parse().ok()? }, process })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exclusive_locks_of_flock_are_read() {
        let lock = parse_line("1: FLOCK  ADVISORY  WRITE 708 fd:01:131 0 EOF").unwrap();
        assert_eq!(lock.file, FileId { device: rustix::fs::makedev(253, 1), inode: 131 });
        assert_eq!(lock.process, "708");
        for other in [
            "",
            "1: POSIX  ADVISORY  WRITE 708 fd:01:131 0 EOF",
            "1: FLOCK  ADVISORY  READ 708 fd:01:131 0 EOF",
            "1: -> FLOCK  ADVISORY  WRITE 708 fd:01:131 0 EOF",
            "1: FLOCK  ADVISORY  WRITE 708 fd",
            "1: FLOCK  ADVISORY  WRITE 708 fd:01:x",
        ] {
            assert_eq!(parse_line(other), None, "{other}");
        }
    }
}

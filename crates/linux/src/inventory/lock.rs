//! Locks on files and on ranges of them: /proc/locks and the fdinfo of a descriptor, fs/locks.c
//! (lock_get_status).
//!
//! ```text
//! 1: FLOCK  ADVISORY  WRITE 708 fd:00:131 0 EOF
//! 2: OFDLCK ADVISORY  WRITE -1 fd:00:131 4096 8191
//! ```
//! The major and minor number of the file system's device are hexadecimal, the inode is decimal.
//!
//! Limitations: btrfs and overlayfs report another device here than in stat(2), so a lock there is not found.

use std::ops::Range;

use super::block::FileId;

/// A lock of flock(2) or of an open file description, as a simulated drive has on its medium, and a cache on
/// its files or on the parts that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) file: FileId,
    /// Locked bytes.
    pub(crate) bytes: Range<u64>,
    /// True if the lock excludes all other locks.
    pub(crate) is_exclusive: bool,
    /// Process that took the lock; `None` if the kernel does not report it.
    pub(crate) process: Option<String>,
}

impl Lock {
    /// Parses a line; `None` for other kinds of locks, for waiting requests, and for lines in another format.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(1);
        if !matches!(words.next()?, "FLOCK" | "OFDLCK") {
            return None;
        }
        let is_exclusive = words.nth(1)? == "WRITE";
        let process = Some(words.next()?.to_owned()).filter(|process| process != "-1");
        let mut place = words.next()?.split(':');
        let mut hexadecimal = || u32::from_str_radix(place.next()?, 16).ok();
        let device = rustix::fs::makedev(hexadecimal()?, hexadecimal()?);
        let file = FileId { device, inode: place.next()?.parse().ok()? };
        let first = words.next()?.parse().ok()?;
        let behind = match words.next()? {
            "EOF" => u64::MAX,
            last => last.parse::<u64>().ok()?.saturating_add(1),
        };
        Some(Self { file, bytes: first..behind, is_exclusive, process })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_flock_and_of_open_file_descriptions_are_read() {
        let file = FileId { device: rustix::fs::makedev(253, 1), inode: 131 };
        let read = |bytes, is_exclusive, process: Option<&str>| {
            Some(Lock { file, bytes, is_exclusive, process: process.map(str::to_owned) })
        };
        for (line, lock) in [
            ("1: FLOCK  ADVISORY  WRITE 708 fd:01:131 0 EOF", read(0..u64::MAX, true, Some("708"))),
            ("1: FLOCK  ADVISORY  READ 708 fd:01:131 0 EOF", read(0..u64::MAX, false, Some("708"))),
            ("2: OFDLCK ADVISORY  WRITE -1 fd:01:131 4096 8191", read(4096..8192, true, None)),
            ("", None),
            ("1: POSIX  ADVISORY  WRITE 708 fd:01:131 0 EOF", None),
            ("1: -> FLOCK  ADVISORY  WRITE 708 fd:01:131 0 EOF", None),
            ("1: FLOCK  ADVISORY  WRITE 708 fd", None),
            ("1: FLOCK  ADVISORY  WRITE 708 fd:01:x", None),
            ("1: FLOCK  ADVISORY  WRITE 708 fd:01:131 0", None),
        ] {
            assert_eq!(Lock::parse(line), lock, "{line}");
        }
    }
}

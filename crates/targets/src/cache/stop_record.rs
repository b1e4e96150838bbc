//! State of a backing device at the stop of its cache, by which a write of somebody else is noticed within
//! one run of the machine.

use std::os::fd::{AsFd as _, OwnedFd};

use plumb_block::Bytes;
use plumb_linux::tree::{self, DeviceNumber, LiveTree, Tree as _};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

/// State of the backing device when its cache stopped, as the kernel has it until the machine starts again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRecord {
    /// Session of the log that was stopped.
    pub session: u64,
    /// `/proc/sys/kernel/random/boot_id`: if it differs, nothing else here can be compared.
    pub boot: String,
    /// State of the device.
    pub state: BackingState,
}

/// Values that change with each write to a device or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackingState {
    /// A block device: `/sys/dev/block/X/diskseq` and the sectors written and discarded of `stat` beside it.
    Device {
        /// Number of the disk, which no other gets.
        diskseq: u64,
        /// Size in units of 512 bytes.
        sectors: u64,
    },
    /// A file: stat(2).
    File {
        /// `st_dev`.
        device: u64,
        /// `st_ino`.
        inode: u64,
        /// `st_size`.
        size: u64,
        /// `st_mtime` in nanoseconds.
        modified_ns: i128,
    },
}

impl BackingState {
    /// Returns the state of what is open; `None` where the kernel counts nothing.
    pub(super) fn read(file: &OwnedFd) -> Option<Self> {
        let stat = rustix::fs::fstat(file.as_fd()).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
            let modified_ns = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
            let size = stat.st_size.cast_unsigned();
            return Some(Self::File { device: stat.st_dev, inode: stat.st_ino, size, modified_ns });
        }
        let tree = LiveTree::new();
        let device = format!("/sys/dev/block/{}", DeviceNumber::from_stat(stat.st_rdev));
        // A partition has the number of its disk, and its counters are its own.
        let diskseq = ["", "/.."].iter().find_map(|up| tree.text(&format!("{device}{up}/diskseq")).ok())?;
        let counts: Vec<u64> = tree
            .text(&format!("{device}/stat"))
            .ok()?
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        // Documentation/admin-guide/iostats.rst: fields 7 and, since Linux 4.18, 14.
        let sectors = counts.get(6)? + counts.get(13).copied().unwrap_or(0);
        Some(Self::Device { diskseq: diskseq.trim().parse().ok()?, sectors })
    }

    /// Returns what has happened between this and a later state, if that is certain.
    fn write_until(&self, now: &Self) -> Option<String> {
        match (self, now) {
            (Self::Device { diskseq, sectors }, Self::Device { diskseq: same, sectors: later })
                if diskseq == same && later > sectors =>
            {
                Some(format!("{} have been written to it since", Bytes((later - sectors) * 512)))
            }
            (
                Self::File { device, inode, size, modified_ns },
                Self::File { device: same, inode: too, size: later, modified_ns: then },
            ) if (device, inode) == (same, too) => {
                // A file system that has none keeps no part of a second once it was mounted again.
                let is_rounded = then % 1_000_000_000 == 0 && modified_ns - then < 1_000_000_000;
                if later > size {
                    let grown = Bytes(later - size);
                    return Some(format!("it has grown by {grown}, and whether that was all cannot be told"));
                }
                let is_other = size != later || (modified_ns != then && !is_rounded);
                is_other.then(|| "it has been changed since (its time of modification says so)".to_owned())
            }
            _ => None,
        }
    }
}

impl StopRecord {
    /// Returns the record of a cache that has just stopped with this session.
    pub(super) fn now(session: u64, backing: Option<&OwnedFd>) -> Option<Self> {
        Some(Self { session, boot: boot()?, state: BackingState::read(backing?)? })
    }

    /// Returns what somebody has done to the backing device, which was last marked in `session`, since it
    /// stopped; `None` if nothing is known.
    pub(super) fn write_since(&self, session: u64, backing: Option<&OwnedFd>) -> Option<String> {
        let is_comparable = self.session == session && boot().as_ref() == Some(&self.boot);
        let now = BackingState::read(backing?).filter(|_| is_comparable)?;
        self.state.write_until(&now)
    }
}

fn boot() -> Option<String> {
    tree::boot_id(&LiveTree::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_since_a_stop_is_told_where_the_kernel_knows() {
        let device = |diskseq, sectors| BackingState::Device { diskseq, sectors };
        assert_eq!(device(3, 8).write_until(&device(3, 8)), None);
        assert!(device(3, 8).write_until(&device(3, 16)).unwrap().contains("4 KiB"));
        assert_eq!(device(3, 8).write_until(&device(4, 16)), None, "another disk under the same number");
        let file = |inode, size, modified_ns| BackingState::File { device: 1, inode, size, modified_ns };
        let second = 1_000_000_000;
        assert_eq!(file(5, 8, second + 7).write_until(&file(5, 8, second + 7)), None);
        assert!(file(5, 8, second + 7).write_until(&file(5, 8, second + 8)).is_some());
        assert!(file(5, 8, second).write_until(&file(5, 9, second)).is_some());
        assert_eq!(file(5, 8, second + 7).write_until(&file(6, 8, second + 8)), None, "another file");
        assert_eq!(file(5, 8, second + 7).write_until(&file(5, 8, second)), None, "rounded to seconds");
    }
}

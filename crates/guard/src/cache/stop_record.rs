//! State of a backing device when its cache stopped, by which a later foreign write is detected until the
//! machine reboots.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use plumb_block::Bytes;
use plumb_linux::tree::{self, DeviceNumber, LiveTree, Tree as _};
use rustix::fs::FileType;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::mark::nanoseconds;

/// A second in nanoseconds.
const SECOND_NS: i128 = 1_000_000_000;
/// Upper bound of the resolution of file times, in nanoseconds: that of FAT, and a tick of the kernel's
/// clock.
const STEP_MAX_NS: i128 = 2 * SECOND_NS + 10_000_000;

/// State of a backing device when its cache stopped, valid for one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRecord {
    /// Last session of the log.
    pub session: u64,
    /// `/proc/sys/kernel/random/boot_id`. If it differs, the state cannot be compared.
    pub boot: String,
    /// State of the device.
    pub state: BackingState,
}

/// Values that change with each write to a device or file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackingState {
    /// A block device: `/sys/dev/block/X/diskseq`, and the sectors written and discarded from its `stat`.
    Device {
        /// Disk sequence number, never reused during a boot.
        diskseq: u64,
        /// Sectors of 512 bytes written and discarded.
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
        /// `st_ctime` in nanoseconds, which programs cannot set; `None` in records of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed_ns: Option<i128>,
    },
}

impl BackingState {
    /// Reads the state of an open file or device; `None` if the kernel keeps no counters.
    pub fn read(file: &OwnedFd) -> Option<Self> {
        let stat = rustix::fs::fstat(file.as_fd()).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
            return Some(Self::File {
                device: stat.st_dev,
                inode: stat.st_ino,
                size: stat.st_size.cast_unsigned(),
                modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
                changed_ns: Some(nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64)),
            });
        }
        let tree = LiveTree::new();
        let device = format!("/sys/dev/block/{}", DeviceNumber::from_stat(stat.st_rdev));
        // A partition shares the number of its disk, but has its own counters.
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

    /// Describes the write between this state and the later state `now`; `None` if none is certain.
    fn write_until(&self, now: &Self) -> Option<String> {
        match (self, now) {
            (Self::Device { diskseq, sectors }, Self::Device { diskseq: same, sectors: later })
                if diskseq == same && later > sectors =>
            {
                Some(format!("{} have been written to it since", Bytes((later - sectors) * 512)))
            }
            (
                Self::File { device, inode, size, modified_ns, changed_ns },
                Self::File { device: same, inode: too, size: later, modified_ns: then, changed_ns: changed },
            ) if (device, inode) == (same, too) => {
                // A file system without fractions of seconds loses them when it is mounted again. A program
                // that sets the modification time to a whole second also changes the ctime.
                let is_rounded = is_rounded_down(*modified_ns, *then)
                    && changed_ns.zip(*changed).is_none_or(|(before, now)| is_rounded_down(before, now));
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

    /// Returns how long after `now_ns` a write may still get the file's present modification time: zero if
    /// times have fractions of seconds.
    fn indistinct_for(&self, now_ns: i128) -> Duration {
        match self {
            Self::File { modified_ns, .. } if modified_ns % SECOND_NS == 0 => {
                let left = modified_ns + STEP_MAX_NS - now_ns;
                // Writes do not get a time in the future.
                let left = Some(left).filter(|left| (1..=STEP_MAX_NS).contains(left)).unwrap_or(0);
                Duration::from_nanos(u64::try_from(left).unwrap_or(0))
            }
            _ => Duration::ZERO,
        }
    }
}

/// Returns true if `now` equals `before` or is `before` rounded down to a second.
fn is_rounded_down(before: i128, now: i128) -> bool {
    before == now || (now % SECOND_NS == 0 && (0..SECOND_NS).contains(&(before - now)))
}

impl StopRecord {
    /// Returns the record of a cache that has just stopped. Waits until later writes get a different time.
    pub fn now(session: u64, backing: Option<&OwnedFd>) -> Option<Self> {
        let state = BackingState::read(backing?)?;
        let now = clock_gettime(ClockId::RealtimeCoarse);
        std::thread::sleep(state.indistinct_for(nanoseconds(now.tv_sec, now.tv_nsec)));
        Some(Self { session, boot: boot()?, state })
    }

    /// Describes a foreign write to the backing device since the stop, if `session` is its last marked
    /// session; `None` if none is known.
    pub fn write_since(&self, session: u64, backing: Option<&OwnedFd>) -> Option<String> {
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
        let written = |inode, size, modified_ns, changed_ns| BackingState::File {
            device: 1,
            inode,
            size,
            modified_ns,
            changed_ns,
        };
        let file = |inode, size, modified_ns| written(inode, size, modified_ns, None);
        let second = SECOND_NS;
        assert_eq!(file(5, 8, second + 7).write_until(&file(5, 8, second + 7)), None);
        assert!(file(5, 8, second + 7).write_until(&file(5, 8, second + 8)).is_some());
        assert!(file(5, 8, second).write_until(&file(5, 9, second)).is_some());
        assert_eq!(file(5, 8, second + 7).write_until(&file(6, 8, second + 8)), None, "another file");
        assert_eq!(file(5, 8, second + 7).write_until(&file(5, 8, second)), None, "rounded to seconds");
        for later in [second, second + 7] {
            assert!(file(5, 8, later).write_until(&file(5, 8, 2 * second)).is_some(), "a later whole second");
            assert!(file(5, 8, later).write_until(&file(5, 8, 0)).is_some(), "an earlier whole second");
        }
        let stopped = written(5, 8, second + 7, Some(second + 9));
        assert_eq!(stopped.write_until(&written(5, 8, second, Some(second))), None, "both rounded");
        assert_eq!(stopped.write_until(&written(5, 8, second + 7, Some(9 * second))), None, "new attributes");
        assert!(stopped.write_until(&written(5, 8, second, Some(9 * second))).is_some(), "set to its second");
        assert_eq!(stopped.write_until(&file(5, 8, second)), None, "a record of an earlier plumb");
    }

    #[test]
    fn a_stop_ends_when_a_later_write_has_another_time() {
        let stopped =
            |modified_ns| BackingState::File { device: 1, inode: 5, size: 8, modified_ns, changed_ns: None };
        let second = SECOND_NS;
        let waits = |modified_ns, now_ns| stopped(modified_ns).indistinct_for(now_ns);
        assert_eq!(waits(5 * second + 1, 5 * second + 2), Duration::ZERO, "times have parts of a second");
        assert_eq!(waits(5 * second, 5 * second), Duration::from_millis(2010));
        assert_eq!(waits(5 * second, 6 * second + 1), Duration::from_nanos(1_009_999_999));
        assert_eq!(waits(5 * second, 8 * second), Duration::ZERO);
        assert_eq!(waits(5 * second, 4 * second), Duration::ZERO, "in the future");
        assert_eq!(BackingState::Device { diskseq: 1, sectors: 8 }.indistinct_for(0), Duration::ZERO);
    }
}

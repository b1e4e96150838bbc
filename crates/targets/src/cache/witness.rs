//! Detection of writes by somebody else to the backing device of a cache that is not served: by a mount,
//! above all. What only the log holds no longer fits it then.
//!
//! | Kept | Where | Says |
//! |---|---|---|
//! | how often the kernel wrote to the device, or when the file was changed, when the cache stopped | configuration | exactly, until the machine starts again |
//! | CRC-32C of 32 blocks (*witnesses*) as the cache left them | marker, on the backing device itself | always, of these blocks, unless the cache was writing to them |
//!
//! The witnesses are where file systems and partition tables note each mount or change (the first two blocks:
//! ext4, xfs, FAT, NTFS, GPT, LVM; the block at 64 KiB: btrfs), the last block, and 28 that are spread
//! evenly. The cache itself never makes one of them wrong: see `Mark` in plumb-cache.
//!
//! # Limitations
//! After a restart of the machine, or of a server that was killed, a write that touches none of the witnesses
//! is not noticed.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_block::{Bytes, Device, Lba, LbaRange};
use plumb_cache::{Mark, WITNESSES_MAX};
use plumb_linux::tree::{LiveTree, Tree as _};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::ends::DeviceSource;
use super::marker::{BLOCK, Contents, Marker};
use super::member::{Member, Spot};
use crate::error::Result;
use crate::signature::Source as _;

/// How many witnesses are spread evenly.
const SPREAD: u64 = WITNESSES_MAX as u64 - 4;

/// Returns the byte at which each witness of a cached device of this size begins.
fn places(size: Bytes) -> Vec<u64> {
    let last = (size.0 / BLOCK.0).saturating_sub(1);
    let spread = (0..SPREAD).map(|index| last * (index + 1) / (SPREAD + 1));
    let blocks = [0, 1, (64 << 10) / BLOCK.0, last].into_iter().chain(spread);
    blocks.map(|block| block.min(last) * BLOCK.0).collect()
}

/// Returns the witnesses of a cached device, in its logical blocks.
pub(super) fn ranges(device: &dyn Device) -> Vec<LbaRange> {
    let info = device.info();
    let block = info.logical_block.0;
    let range = |at: u64| LbaRange::new(Lba(at / block), BLOCK.0 / block);
    if info.size < BLOCK { Vec::new() } else { places(info.size).into_iter().map(range).collect() }
}

/// Returns the contents of one witness; `None` if it cannot be read.
fn content(device: &dyn Device, range: LbaRange) -> Option<u32> {
    let mut bytes = vec![0; BLOCK.0 as usize];
    let read = DeviceSource(device).read_at(range.lba.0 * device.info().logical_block.0, &mut bytes);
    read.is_ok_and(|read| read == bytes.len()).then(|| crc32c::crc32c(&bytes))
}

/// Returns the byte at which the first witness begins that holds something else than `stated`.
pub(super) fn changed(device: &dyn Device, stated: &Contents) -> Option<u64> {
    let ranges = ranges(device).into_iter().zip(stated);
    let mut found = ranges.filter_map(|(range, stated)| Some((range, (*stated)?)));
    let is_other = |range: LbaRange, stated: u32| content(device, range).is_some_and(|found| found != stated);
    let other = found.find(|(range, stated)| is_other(*range, *stated));
    other.map(|(range, _)| range.lba.0 * device.info().logical_block.0)
}

/// Writes the marker of a backing device, as the cache asks.
pub(super) struct Marking {
    backing: Arc<Member>,
    spot: Spot,
    cached: Arc<dyn Device>,
    last: Mutex<Marker>,
}

impl Marking {
    /// Goes on from the marker that is there.
    pub(super) fn new(backing: Arc<Member>, spot: Spot, cached: Arc<dyn Device>, last: Marker) -> Self {
        Self { backing, spot, cached, last: Mutex::new(last) }
    }

    /// Writes `mark`, durably: of a witness that the marker before stated what that stated, of others what
    /// they hold now.
    pub(super) fn write(&self, mark: Mark) -> Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut contents = last.contents;
        for ((index, content), range) in contents.iter_mut().enumerate().zip(ranges(&*self.cached)) {
            let is_stated = mark.witnesses & 1 << index != 0;
            *content = if is_stated { content.or_else(|| self::content(&*self.cached, range)) } else { None };
        }
        let mut marker = Marker { mark, ..*last };
        marker.state(contents);
        self.backing.set_marker(self.spot, Some(&marker))?;
        *last = marker;
        Ok(())
    }
}

/// State of the backing device when its cache stopped, as the kernel has it until the machine starts again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRecord {
    /// Session of the log that was stopped.
    pub session: u64,
    /// `/proc/sys/kernel/random/boot_id`: another one, and nothing else here can be compared.
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
        /// In units of 512 bytes.
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
    pub(super) fn of(file: &OwnedFd) -> Option<Self> {
        let stat = rustix::fs::fstat(file.as_fd()).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
            let modified_ns = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
            let size = stat.st_size.cast_unsigned();
            return Some(Self::File { device: stat.st_dev, inode: stat.st_ino, size, modified_ns });
        }
        let tree = LiveTree::new();
        let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        let device = format!("/sys/dev/block/{major}:{minor}");
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
                let is_other = size != later || (modified_ns != then && !is_rounded);
                is_other.then(|| "it has been changed since (its time of modification says so)".to_owned())
            }
            _ => None,
        }
    }
}

impl StopRecord {
    /// Returns the record of a cache that has just stopped with this session.
    pub(super) fn now(session: u64, backing: &Member) -> Option<Self> {
        Some(Self { session, boot: boot()?, state: BackingState::of(backing.held()?)? })
    }

    /// Returns what somebody has done to the backing device, which was last marked in `session`, since it
    /// stopped; `None` if nothing is known.
    pub(super) fn write_since(&self, session: u64, backing: &Member) -> Option<String> {
        let is_comparable = self.session == session && boot().as_ref() == Some(&self.boot);
        let now = BackingState::of(backing.held()?).filter(|_| is_comparable)?;
        self.state.write_until(&now)
    }
}

fn boot() -> Option<String> {
    LiveTree::new().text("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
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

    #[test]
    fn every_witness_lies_within_the_cached_device() {
        for size in [4096, 8192, 1 << 20, (1 << 40) + 4096] {
            let places = places(Bytes(size));
            assert_eq!(places.len(), WITNESSES_MAX);
            assert!(places.iter().all(|at| at + 4096 <= size && at % 4096 == 0), "{size}: {places:?}");
        }
    }
}

//! A block device, and the file or device behind it.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use crate::tree::DeviceNumber;
use crate::tree::mountinfo::Mount;

/// Kind of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A disk, or a device that a controller or hypervisor presents as a disk.
    Disk,
    /// A partition of a disk.
    Partition,
    /// A device-mapper device.
    DeviceMapper,
    /// An md array.
    Md,
    /// A bcache device.
    Bcache,
    /// A loop device.
    Loop,
    /// A device in memory: zram, brd, null_blk.
    Memory,
    /// A device whose storage is elsewhere: nbd, rbd, drbd, ublk.
    Remote,
    /// Optical and floppy drives.
    Removable,
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Kernel name: `sda1`.
    pub name: String,
    /// Number of the device.
    pub number: DeviceNumber,
    /// Directory of the device in /sys, without links.
    pub sysfs: String,
    /// Kind of the device.
    pub kind: BlockKind,
    /// Disk of a partition, and the partition's number there; `None` if the device is not a partition.
    pub partition: Option<Partition>,
    /// Capacity in sectors of 512 bytes, independent of the block size; `None` if the kernel does not report
    /// it.
    pub sectors: Option<u64>,
    /// True if the kernel hides the device: one path of a multipath NVMe namespace.
    pub hidden: bool,
    /// Name of a device-mapper device: `vg-root`.
    pub mapped_name: Option<String>,
    /// Names of the devices directly below.
    pub below: BTreeSet<String>,
    /// Names of the devices directly above: partitions, holders, loop devices.
    pub above: BTreeSet<String>,
    /// Mount points and types of the file systems on the device. The mount point is empty if the mount is in
    /// another namespace.
    pub mounts: Vec<(String, String)>,
    /// True if the device is swap space.
    pub swap: bool,
    /// File or device behind a loop device.
    pub(super) backing: Option<Backing>,
    /// Locations of a device-mapper device on the devices below. Empty if its table could not be read or does
    /// not give them.
    pub(super) segments: Vec<Segment>,
}

/// Location of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Kernel name of the disk.
    pub disk: String,
    /// Partition number, as /dev/disk/by-id appends it.
    pub number: String,
    /// First sector of the partition on the disk, in sectors of 512 bytes; `None` if the kernel does not
    /// report it.
    pub start: Option<u64>,
}

/// Identity of a file, independent of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// `st_dev` of the file.
    pub device: u64,
    /// `st_ino` of the file.
    pub inode: u64,
}

impl FileId {
    /// Returns the identity of a file from its metadata.
    pub(super) fn from_metadata(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }
}

/// File or device behind a loop device or swap space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Backing {
    /// Path as the kernel names it.
    pub(super) path: String,
    /// Device number, if it is a device.
    pub(super) number: Option<DeviceNumber>,
    /// Identity of the file, if the kernel reports it, even if the path now leads elsewhere.
    pub(super) file: Option<FileId>,
    /// Start of the loop device in the file, in bytes.
    pub(super) offset: u64,
}

/// A part of a device-mapper device that is contiguous on a device below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// Start of the part, in bytes of the device-mapper device.
    pub(super) from: u64,
    /// Length of the part in bytes.
    pub(super) length: u64,
    /// Number of the device below.
    pub(super) below: DeviceNumber,
    /// Start of the part on the device below, in bytes.
    pub(super) at: u64,
}

impl Block {
    /// Returns the path of the device node in /dev. The kernel replaces a slash in the name by an exclamation
    /// mark.
    pub fn node(&self) -> String {
        format!("/dev/{}", self.name.replace('!', "/"))
    }

    /// Returns the capacity in bytes; the largest number if the kernel does not report it.
    pub(super) fn length(&self) -> u64 {
        self.sectors.map_or(u64::MAX, |sectors| sectors.saturating_mul(512))
    }

    /// Returns true if the file system of `mount` is on the device.
    pub(super) fn holds(&self, mount: &Mount) -> bool {
        let is_it = |(point, kind): &(String, String)| *point == mount.point && *kind == mount.kind;
        self.number == mount.device || self.mounts.iter().any(is_it)
    }

    /// Returns the file or device behind a loop device, by the kernel's name.
    pub fn backing_file(&self) -> Option<&str> {
        self.backing.as_ref().map(|backing| backing.path.as_str())
    }
}

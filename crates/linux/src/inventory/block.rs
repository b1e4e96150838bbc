//! One block device, and the file behind it.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use crate::tree::DeviceNumber;
use crate::tree::mountinfo::Mount;

/// Kind of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A disk, or what a controller or a hypervisor shows as one.
    Disk,
    /// A part of a disk.
    Partition,
    /// A device-mapper device.
    DeviceMapper,
    /// An md array.
    Md,
    /// A bcache device.
    Bcache,
    /// A loop device.
    Loop,
    /// zram, brd, null_blk: memory.
    Memory,
    /// nbd, rbd, drbd, ublk: what is behind is elsewhere.
    Remote,
    /// Optical and floppy drives.
    Removable,
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The kernel's name: `sda1`.
    pub name: String,
    /// Number of the device.
    pub number: DeviceNumber,
    /// Directory of the device in /sys, without links.
    pub sysfs: String,
    /// Kind of the device.
    pub kind: BlockKind,
    /// Disk of a partition, and the partition's number there; `None` if the device is not a partition.
    pub partition: Option<Partition>,
    /// Capacity in sectors of 512 bytes, whatever the device's blocks are; `None` if the kernel does not say.
    pub sectors: Option<u64>,
    /// The kernel hides it: one path of an NVMe namespace that has several.
    pub hidden: bool,
    /// The name that a device-mapper device was given: `vg-root`.
    pub mapped_name: Option<String>,
    /// The names of the devices directly below.
    pub below: BTreeSet<String>,
    /// The names of the devices directly above: partitions, holders, loop devices.
    pub above: BTreeSet<String>,
    /// Mount points and types of the file systems on it. The point is empty where the mount is not in this
    /// namespace.
    pub mounts: Vec<(String, String)>,
    /// True if it is swapped to.
    pub swap: bool,
    /// File or device that a loop device is set up over.
    pub(super) backing: Option<Backing>,
    /// Where a device-mapper device lies on those below it. Empty if its table could not be read, or does not
    /// say it.
    pub(super) segments: Vec<Segment>,
}

/// Where a partition is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The kernel's name of the disk.
    pub disk: String,
    /// The number of the partition, as /dev/disk/by-id appends it.
    pub number: String,
    /// First sector of the partition on the disk, in sectors of 512 bytes; `None` if the kernel does not say.
    pub start: Option<u64>,
}

/// Identity of a file, whatever its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// `st_dev` of the file.
    pub device: u64,
    /// `st_ino` of the file.
    pub inode: u64,
}

impl FileId {
    /// Returns the identity by which stat(2) knows a file.
    pub(super) fn from_metadata(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }
}

/// File or device that swap space or a loop device is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Backing {
    /// Path as the kernel names it.
    pub(super) path: String,
    /// The device, if it is one.
    pub(super) number: Option<DeviceNumber>,
    /// The file, where the kernel says which, whatever its name leads to now.
    pub(super) file: Option<FileId>,
    /// Where in it the loop device begins, in bytes.
    pub(super) offset: u64,
}

/// A part of a device-mapper device that lies in one piece on a device below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// Start of the part, in bytes of the device-mapper device.
    pub(super) from: u64,
    /// Length of the part in bytes.
    pub(super) length: u64,
    /// The device below.
    pub(super) below: DeviceNumber,
    /// Start of the part there, in bytes.
    pub(super) at: u64,
}

impl Block {
    /// Returns the path of the device's node in /dev. The kernel writes a slash in a name as an exclamation
    /// mark.
    pub fn node(&self) -> String {
        format!("/dev/{}", self.name.replace('!', "/"))
    }

    /// Returns the capacity in bytes; the largest number if the kernel does not say.
    pub(super) fn length(&self) -> u64 {
        self.sectors.map_or(u64::MAX, |sectors| sectors.saturating_mul(512))
    }

    /// Returns true if the file system of `mount` is on the device.
    pub(super) fn holds(&self, mount: &Mount) -> bool {
        let is_it = |(point, kind): &(String, String)| *point == mount.point && *kind == mount.kind;
        self.number == mount.device || self.mounts.iter().any(is_it)
    }

    /// Returns the file or device behind a loop device, as the kernel names it.
    pub fn backing_file(&self) -> Option<&str> {
        self.backing.as_ref().map(|backing| backing.path.as_str())
    }
}

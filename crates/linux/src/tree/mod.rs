//! Facts that the kernel tells through files: /proc, /sys and the nodes of /dev, behind one trait.
//!
//! A [`Tree`] answers four questions about absolute paths: the bytes of a file, the names in a directory, the
//! target of a link, and the device numbers of a path. [`LiveTree`] asks the running kernel, [`RecordedTree`]
//! answers from a recording, [`RecordingTree`] asks another tree and remembers what it said. An answer that
//! could not be had is a typed [`Absence`], never an abort: a survey goes on with what is left.
//!
//! The parsers beside them ([`mountinfo`], [`filesystems`]) are pure and take any bytes without panicking;
//! [`process`] and [`ProcessorTimes`] are read from any tree.

mod absence;
pub mod filesystems;
mod live;
mod machine;
pub mod mountinfo;
mod number;
pub mod process;
mod recorded;
mod recording;
mod resolve;

pub use absence::{Absence, Answer};
pub use live::LiveTree;
pub(crate) use live::WRITE_ATOMIC;
pub use machine::{ProcessorTimes, memory_bytes};
pub use number::{DeviceNumber, ParseNumberError};
pub use recorded::RecordedTree;
pub use recording::RecordingTree;

use serde::{Deserialize, Serialize};

/// Files of the kernel by absolute path. Nothing here writes.
pub trait Tree: Send + Sync {
    /// Returns all bytes of the file at `path`; links are followed.
    ///
    /// # Errors
    /// The [`Absence`] that stands in its place.
    fn read(&self, path: &str) -> Answer<Vec<u8>>;

    /// Returns the names in the directory at `path`, sorted, without `.` and `..`; links are followed.
    ///
    /// # Errors
    /// The [`Absence`] that stands in its place.
    fn list(&self, path: &str) -> Answer<Vec<String>>;

    /// Returns where the symbolic link at `path` points, as it is written in it.
    ///
    /// # Errors
    /// The [`Absence`] that stands in its place; [`Absence::NotThere`] also where there is something, but no
    /// link.
    fn link(&self, path: &str) -> Answer<String>;

    /// Returns what is at `path` and on which device; links are followed.
    ///
    /// # Errors
    /// The [`Absence`] that stands in its place.
    fn stat(&self, path: &str) -> Answer<Stat>;

    /// Returns `path` without links, `.` and `..`. Only a live tree takes a relative path, from the working
    /// directory.
    ///
    /// # Errors
    /// The [`Absence`] of the first part that is missing.
    fn canonical(&self, path: &str) -> Answer<String>;

    /// Reads the attributes of a regular file or directory (FS_IOC_GETFLAGS); links are followed. Opens it
    /// for reading.
    ///
    /// # Errors
    /// The [`Absence`] that stands in its place; [`Absence::NotRecorded`] of a tree that does not know them.
    fn attributes(&self, path: &str) -> Answer<Attributes> {
        let _ = path;
        Err(Absence::NotRecorded)
    }

    /// Reads what statx(2) says of writes to the file at `path`; links are followed.
    ///
    /// # Errors
    /// The [`Absence`] that stands in its place; [`Absence::NotRecorded`] of a tree that does not know them.
    fn write_limits(&self, path: &str) -> Answer<WriteLimits> {
        let _ = path;
        Err(Absence::NotRecorded)
    }

    /// Returns the file at `path` as text, without the white space at its end. Bytes that are not UTF-8
    /// become U+FFFD.
    ///
    /// # Errors
    /// As [`Tree::read`].
    fn text(&self, path: &str) -> Answer<String> {
        self.read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }
}

/// Data of stat(2) and statx(2) about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// Kind of file.
    pub kind: FileKind,
    /// The device that the file system reports; anonymous (major 0) for btrfs subvolumes, overlays and tmpfs.
    pub device: DeviceNumber,
    /// Device that a device node stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<DeviceNumber>,
    /// The mount it was reached through: the first field of its line in /proc/self/mountinfo. Kernels before
    /// 5.8 do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<u64>,
}

/// Attributes of an inode that chattr(1) sets, as far as they change what a write is worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// FS_SYNC_FL, `S`: each write is synced before its call returns.
    pub synchronous: bool,
    /// FS_DIRSYNC_FL, `D`: each change of the directory is.
    pub directory_synchronous: bool,
    /// FS_NOCOW_FL, `C`: btrfs overwrites the data in place.
    #[serde(default)]
    pub no_copy_on_write: bool,
}

/// Limits of writes to one file, in bytes: statx(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteLimits {
    /// `stx_blksize`: the block of the file system; of ZFS the record of the file.
    pub block: u32,
    /// STATX_WRITE_ATOMIC; `None` where the file system or the kernel does not know of untorn writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untorn: Option<UntornLimits>,
}

/// Limits of untorn writes (`RWF_ATOMIC`) to one file, in bytes; zeroes where it takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntornLimits {
    /// `stx_atomic_write_unit_min`.
    pub unit_min: u32,
    /// `stx_atomic_write_unit_max`.
    pub unit_max: u32,
    /// `stx_atomic_write_unit_max_opt`: larger ones are slower; zero where there is no such limit.
    pub unit_max_optimised: u32,
    /// `stx_atomic_write_segments_max`: the most parts of memory in one write.
    pub segments_max: u32,
}

/// Kind of file that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A block device node.
    Block,
    /// A character device node.
    Character,
    /// A socket, a pipe, or what a later kernel may add.
    Other,
}

/// Returns the random number of this boot of the machine (random(4)); `None` where the kernel does not say.
pub fn boot_id(tree: &dyn Tree) -> Option<String> {
    tree.text("/proc/sys/kernel/random/boot_id").ok()
}

/// Returns the number of processors that the machine can have: the kernel's `nr_cpu_ids`.
pub fn possible_processors(tree: &dyn Tree) -> Option<u64> {
    let possible = tree.text("/sys/devices/system/cpu/possible").ok()?;
    let last = possible.rsplit(['-', ',']).next()?.trim().parse::<u64>().ok()?;
    Some(last + 1)
}

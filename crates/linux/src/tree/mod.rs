//! Facts that the kernel presents as files: /proc, /sys and the nodes of /dev, behind one trait.
//!
//! A [`Tree`] answers questions about paths: the bytes of a file, the names in a directory, the target of a
//! link, the type and device numbers of a file, its attributes, and the limits of writes to it. [`LiveTree`]
//! queries the running kernel, [`RecordedTree`] a recording, and [`RecordingTree`] records the answers of
//! another tree. A missing answer is a typed [`Absence`] rather than an abort, so a survey continues with the
//! rest.
//!
//! The parsers ([`mountinfo`], [`filesystems`]) are pure and do not panic on any input; [`process`] and
//! [`ProcessorTimes`] read any tree.

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

/// The kernel's files by absolute path. Nothing here writes.
pub trait Tree: Send + Sync {
    /// Returns the contents of the file at `path`; follows links.
    ///
    /// # Errors
    /// The [`Absence`] if there is no answer.
    fn read(&self, path: &str) -> Answer<Vec<u8>>;

    /// Returns the names in the directory at `path`, sorted, without `.` and `..`; follows links.
    ///
    /// # Errors
    /// The [`Absence`] if there is no answer.
    fn list(&self, path: &str) -> Answer<Vec<String>>;

    /// Returns the target of the symbolic link at `path`, as stored.
    ///
    /// # Errors
    /// The [`Absence`] if there is no answer; [`Absence::NotThere`] also if the path is not a link.
    fn link(&self, path: &str) -> Answer<String>;

    /// Returns the type and device numbers of the file at `path`; follows links.
    ///
    /// # Errors
    /// The [`Absence`] if there is no answer.
    fn stat(&self, path: &str) -> Answer<Stat>;

    /// Returns `path` without links, `.` and `..`. Only a live tree accepts a relative path, from the working
    /// directory.
    ///
    /// # Errors
    /// The [`Absence`] of the first missing component.
    fn canonical(&self, path: &str) -> Answer<String>;

    /// Returns the attributes of a regular file or directory (FS_IOC_GETFLAGS); follows links. Opens it for
    /// reading.
    ///
    /// # Errors
    /// The [`Absence`] if there is no answer; [`Absence::NotRecorded`] if the tree has no attributes.
    fn attributes(&self, path: &str) -> Answer<Attributes> {
        let _ = path;
        Err(Absence::NotRecorded)
    }

    /// Returns the limits that statx(2) reports for writes to the file at `path`; follows links.
    ///
    /// # Errors
    /// The [`Absence`] if there is no answer; [`Absence::NotRecorded`] if the tree has no limits.
    fn write_limits(&self, path: &str) -> Answer<WriteLimits> {
        let _ = path;
        Err(Absence::NotRecorded)
    }

    /// Returns the file at `path` as text, without trailing white space. Bytes that are not UTF-8 become
    /// U+FFFD.
    ///
    /// # Errors
    /// Fails as [`Tree::read`] does.
    fn text(&self, path: &str) -> Answer<String> {
        self.read(path).map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }
}

/// Result of stat(2) and statx(2) for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// Type of the file.
    pub kind: FileKind,
    /// Device of the file system; anonymous (major 0) for btrfs subvolumes, overlays and tmpfs.
    pub device: DeviceNumber,
    /// Device number of a device node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<DeviceNumber>,
    /// Number of the mount through which the file was reached: the first field of its line in
    /// /proc/self/mountinfo. `None` before Linux 5.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<u64>,
}

/// Inode attributes set by chattr(1) that affect the durability of a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// FS_SYNC_FL, `S`: each write is synced before the call returns.
    pub synchronous: bool,
    /// FS_DIRSYNC_FL, `D`: each change of the directory is synced before the call returns.
    pub directory_synchronous: bool,
    /// FS_NOCOW_FL, `C`: btrfs overwrites the data in place.
    #[serde(default)]
    pub no_copy_on_write: bool,
}

/// Limits of writes to one file, in bytes: statx(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteLimits {
    /// `stx_blksize`: block size of the file system; for ZFS the record size of the file.
    pub block: u32,
    /// STATX_WRITE_ATOMIC; `None` if the file system or the kernel does not support untorn writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untorn: Option<UntornLimits>,
}

/// Limits of untorn writes (`RWF_ATOMIC`) to one file, in bytes; zero if it accepts none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntornLimits {
    /// `stx_atomic_write_unit_min`.
    pub unit_min: u32,
    /// `stx_atomic_write_unit_max`.
    pub unit_max: u32,
    /// `stx_atomic_write_unit_max_opt`: larger writes are slower; zero if there is no such limit.
    pub unit_max_optimised: u32,
    /// `stx_atomic_write_segments_max`: maximum number of memory segments in one write.
    pub segments_max: u32,
}

/// Type of a file.
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
    /// A socket, a pipe, or a type that a later kernel may add.
    Other,
}

/// Returns the random identifier of this boot (random(4)); `None` if the kernel does not report it.
pub fn boot_id(tree: &dyn Tree) -> Option<String> {
    tree.text("/proc/sys/kernel/random/boot_id").ok()
}

/// Returns the maximum number of processors of the machine: the kernel's `nr_cpu_ids`.
pub fn possible_processors(tree: &dyn Tree) -> Option<u64> {
    let possible = tree.text("/sys/devices/system/cpu/possible").ok()?;
    let last = possible.rsplit(['-', ',']).next()?.trim().parse::<u64>().ok()?;
    Some(last + 1)
}

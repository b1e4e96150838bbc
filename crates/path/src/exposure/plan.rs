//! Plan of the readings for each layer of a path that determine the loss in a power cut. The survey makes the
//! plan once, so that it need not be repeated for every reading.

use plumb_linux::tree::DeviceNumber;

use super::settled::SettledData;

/// Readings of the layers of a path.
#[derive(Debug, Clone, Default)]
pub struct ExposurePlan {
    pub(crate) sources: Vec<Source>,
}

/// Readings of one layer.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) layer: String,
    pub(crate) reading: Reading,
}

/// Method to determine the data that a layer holds.
#[derive(Debug, Clone)]
pub(crate) enum Reading {
    /// Pages of a file system, or of a block device without one.
    Memory(Memory),
    /// The journal of a file system.
    Journal(Journal),
    /// The file behind a loop device; `None` if it is unknown or on a server.
    LoopFile(Option<LoopFile>),
    /// A file system in memory at this mount point.
    Files { point: String },
    /// A block device in memory with this capacity.
    Disk { bytes: Option<u64> },
    /// A simulated drive.
    SimulatedDrive { name: String },
    /// A write-back cache of plumb.
    PlumbCache { name: String },
    /// bcache: the directory of its attributes.
    Bcache { directory: String },
    /// dm-cache or dm-writecache.
    DeviceMapper { name: String, number: DeviceNumber },
    /// A drive with a volatile cache, or a similar device.
    Drive(Drive),
    /// A layer that loses nothing in a power cut, by declaration.
    Nothing { because: &'static str },
    /// A layer without a source of information.
    Unknown { because: String },
}

/// Pages of a file system or device in memory.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    /// Name of the kernel's counts, such as `8:0`.
    pub(crate) counts: Option<String>,
    /// File system whose open files may be inspected.
    pub(crate) file_system: Option<DeviceNumber>,
    /// Block device, if it has no file system.
    pub(crate) device: Option<DeviceNumber>,
}

/// Journal of a file system.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    pub(crate) file_system: String,
    /// Interval of commits in seconds, if known.
    pub(crate) commit: Option<f64>,
    /// File with the number of completed commits, for jbd2.
    pub(crate) commits: Option<String>,
    /// Devices that the file system writes to.
    pub(crate) devices: Vec<String>,
    pub(crate) settled: SettledData,
}

/// File behind a loop device.
#[derive(Debug, Clone)]
pub(crate) struct LoopFile {
    pub(crate) path: String,
    /// Device and inode number of the file; `None` if the user may not query them.
    pub(crate) identity: Option<(DeviceNumber, u64)>,
}

/// Drive with a volatile cache.
#[derive(Debug, Clone)]
pub(crate) struct Drive {
    pub(crate) name: String,
    pub(crate) settled: SettledData,
}

//! Readings of each layer of a path to say what a power cut would take from it. The survey finds it once,
//! so that reading again costs no survey.

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

/// Way to learn what a layer holds.
#[derive(Debug, Clone)]
pub(crate) enum Reading {
    /// Pages of a file system, or of a block device without one.
    Memory(Memory),
    /// The journal of a file system.
    Journal(Journal),
    /// The file behind a loop device; `None` where it is not known or on a server.
    LoopFile(Option<LoopFile>),
    /// Files in memory, at this mount point.
    Files { point: String },
    /// A block device in memory, of so many bytes.
    Disk { bytes: Option<u64> },
    /// A simulated drive.
    SimulatedDrive { name: String },
    /// A write-back cache of plumb.
    PlumbCache { name: String },
    /// bcache: the directory of its attributes.
    Bcache { directory: String },
    /// dm-cache or dm-writecache.
    DeviceMapper { name: String, number: DeviceNumber },
    /// A drive whose cache is volatile, or what stands for one.
    Drive(Drive),
    /// Nothing that a cut takes, by what is declared.
    Nothing { because: &'static str },
    /// No source says.
    Unknown { because: String },
}

/// Pages of a file system or device.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    /// Name of the kernel's counts, such as `8:0`.
    pub(crate) counts: Option<String>,
    /// File system whose open files may be looked at.
    pub(crate) file_system: Option<DeviceNumber>,
    /// Block device, where it has no file system.
    pub(crate) device: Option<DeviceNumber>,
}

/// Journal of a file system.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    pub(crate) file_system: String,
    /// Seconds after which a change is committed, where that is known.
    pub(crate) commit: Option<f64>,
    /// File with the number of commits so far, for jbd2.
    pub(crate) commits: Option<String>,
    /// Devices that the file system writes to.
    pub(crate) devices: Vec<String>,
    pub(crate) settled: SettledData,
}

/// File behind a loop device.
#[derive(Debug, Clone)]
pub(crate) struct LoopFile {
    pub(crate) path: String,
    /// Device and number that the kernel has for it; `None` where the user may not ask.
    pub(crate) identity: Option<(DeviceNumber, u64)>,
}

/// Drive with a volatile cache.
#[derive(Debug, Clone)]
pub(crate) struct Drive {
    pub(crate) name: String,
    pub(crate) settled: SettledData,
}

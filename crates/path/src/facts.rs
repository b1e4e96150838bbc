//! Facts that a survey found about a layer, as types: the input of the rules.
//!
//! A [`Node`] records what was read and from where, without judging it. [`rules::judge`](crate::rules::judge)
//! turns a list of nodes into a [`WritePath`](crate::WritePath), in the same way for a live machine, a
//! recording and a test.

use plumb_block::DeviceInfo;

use crate::model::{Cache, Evidence, Flush, Fua, LayerKind, SYNC_ATTRIBUTE, is_synchronous};

/// Wording for an NBD server with which nothing can be made durable.
pub(crate) const NO_FLUSH_NO_FUA: &str = "neither flush nor FUA";
/// Wording for an NBD server with which only a single write can be made durable.
pub(crate) const ONLY_FUA: &str = "FUA and no flush";

/// All facts about a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Kind of the layer.
    pub kind: LayerKind,
    /// Unique name within a survey.
    pub name: String,
    /// Identity that stays the same when names change.
    pub identity: Option<String>,
    /// Names of the nodes directly below.
    pub below: Vec<String>,
    /// Cache of this layer itself: whether it holds acknowledged data that a power cut may lose. For a drive
    /// it combines the drive's answer and the kernel's last reading of it, but never the queue setting, which
    /// is only the kernel's.
    pub cache: Cache,
    /// `queue/write_cache`: whether the kernel sends flushes to this device.
    pub queue: KernelView,
    /// `queue/fua`: whether the driver accepts FUA writes.
    pub fua: KernelFua,
    /// The kernel's record of the drive's own setting: `cache_type` of SCSI and virtio disks.
    pub cache_type: KernelView,
    /// The drive's own report of its write cache.
    pub drive: DriveCache,
    /// Effect of the layer on untorn writes (writes that a power cut must not tear).
    pub untorn: Untorn,
    /// Remarkable properties of the layer.
    pub marks: Vec<Mark>,
    /// Sources of the facts.
    pub evidence: Vec<Evidence>,
}

impl Node {
    /// Creates a node without any facts.
    pub fn new(kind: LayerKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            identity: None,
            below: Vec::new(),
            cache: Cache::None,
            queue: KernelView::NoQueue,
            fua: KernelFua::Unknown,
            cache_type: KernelView::NoQueue,
            drive: DriveCache::NotAsked,
            untorn: Untorn::Passes,
            marks: Vec::new(),
            evidence: Vec::new(),
        }
    }

    /// Adds a line of evidence.
    pub fn saw(&mut self, source: impl Into<String>, value: impl Into<String>, means: impl Into<String>) {
        self.evidence.push(Evidence { source: source.into(), value: value.into(), means: means.into() });
    }

    /// Returns the mount point of a file system, or the name of another layer.
    pub fn place(&self) -> &str {
        self.name.split_once(' ').map_or(&self.name, |(_, point)| point)
    }

    /// Returns the verb for an option of the layer: a file system is mounted with it, other layers have it.
    pub(crate) fn option_verb(&self) -> &'static str {
        if self.is_zfs() { "run with" } else { "mounted" }
    }

    /// Returns true for a file system, volume or pool of ZFS.
    pub(crate) fn is_zfs(&self) -> bool {
        matches!(self.kind, LayerKind::Zfs | LayerKind::Zvol)
    }

    /// Returns true if synced data goes to separate log devices.
    pub(crate) fn has_log(&self) -> bool {
        self.marks.iter().any(|mark| matches!(mark, Mark::SyncLog { .. }))
    }

    /// Returns the setting that syncs every write before write() returns: [`crate::SYNC_OPTION`] or
    /// [`crate::SYNC_ATTRIBUTE`].
    pub fn synchronous(&self) -> Option<&str> {
        self.marks.iter().find_map(|mark| match mark {
            Mark::Synchronous { option } if is_synchronous(option) => Some(option.as_str()),
            Mark::SynchronousFile { .. } => Some(SYNC_ATTRIBUTE),
            _ => None,
        })
    }

    /// Returns true if the layer acknowledges a direct write only after all layers below have, and needs no
    /// further metadata to find the data again. False for layers with their own mapping, which is written at
    /// a flush (thin, cache, writecache, snapshot, integrity, bcache), for loop devices, since their file has
    /// one, and for unknown layers.
    pub(crate) fn writes_in_place(&self) -> bool {
        use LayerKind as K;
        let is_device = matches!(
            self.kind,
            K::Partition
                | K::DmLinear
                | K::DmStriped
                | K::DmCrypt
                | K::DmMultipath
                | K::DmMirror
                | K::DmRaid
                | K::Md
                | K::ScsiDisk
                | K::AtaDisk
                | K::UsbDisk
                | K::NvmeNamespace
                | K::VirtioDisk
                | K::MmcDisk
                | K::XenDisk
                | K::Pmem
                | K::Controller
        );
        is_device || self.marks.iter().any(|mark| matches!(mark, Mark::DirectInPlace | Mark::Log(_)))
    }

    /// Returns true if the layer is read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.marks.contains(&Mark::ReadOnly)
    }

    /// Returns the log if the layer is a write-back cache.
    pub fn log(&self) -> Option<&Log> {
        self.marks.iter().find_map(|mark| match mark {
            Mark::Log(log) => Some(log),
            _ => None,
        })
    }

    /// Adds a mark.
    pub fn mark(&mut self, mark: Mark) {
        self.marks.push(mark);
    }
}

/// Effect of a layer on untorn writes (writes that a power cut must not tear).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untorn {
    /// None: the layers below decide.
    Passes,
    /// A block device accepts writes within these limits as untorn (`RWF_ATOMIC`).
    Units(Units),
    /// The kernel accepts writes to the named file within these limits as untorn.
    File {
        /// The limits.
        units: Units,
        /// True if the file system uses a copy for writes that the devices do not accept.
        by_copy: bool,
    },
    /// A file system that has such limits for each file, although no file was named.
    Directory {
        /// Size in bytes that the file system accepts for every file if the devices do.
        least: Option<u64>,
        /// Size in bytes up to which the file system accepts writes to every file, by a copy if the devices
        /// do not; `None` if unknown.
        most: Option<u64>,
        /// Reason why nothing is known about larger writes.
        why: String,
        /// True if the file system may use a copy for writes that the devices do not accept.
        by_copy: bool,
    },
    /// A copy-on-write file system that writes blocks of this size elsewhere and then switches to them.
    CopyOnWrite {
        /// Size of a block, or of a record of ZFS, in bytes.
        block: u64,
    },
    /// The layer does not accept untorn writes.
    Torn {
        /// Reason, as a clause.
        why: String,
    },
    /// No source says.
    Unknown {
        /// Reason, as a clause.
        why: String,
        /// True if naming a file instead of its directory would answer the question.
        is_told_of_files: bool,
    },
}

impl Untorn {
    /// Creates the unknown effect of a layer where naming a file would not help.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into(), is_told_of_files: false }
    }
}

/// Limits of untorn writes, in bytes. The length of such a write is a power of two, and its offset a multiple
/// of the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// Smallest size.
    pub min: u64,
    /// Largest size; zero if untorn writes are not supported.
    pub max: u64,
    /// A write must not cross a multiple of this size; zero if there are no such boundaries.
    pub boundary: u64,
}

impl Units {
    /// Limits that an open device reports.
    pub fn of_device(info: &DeviceInfo) -> Self {
        Self { min: info.atomic_unit_min.0, max: info.atomic_unit.0, boundary: info.atomic_boundary.0 }
    }

    /// Returns true if an aligned write of `bytes` is untorn.
    pub fn takes(&self, bytes: u64) -> bool {
        bytes.is_power_of_two()
            && (self.min..=self.max).contains(&bytes)
            && (self.boundary == 0 || self.boundary.is_multiple_of(bytes))
    }
}

/// The kernel's view of a write cache. Documentation/ABI/stable/sysfs-block (write_cache), drivers/scsi/sd.c
/// (cache_type).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelView {
    /// Flushes are sent.
    WriteBack,
    /// Flushes and FUA are removed before the driver sees them.
    WriteThrough,
    /// The layer has no such setting: a file system, a partition.
    NoQueue,
    /// The setting could not be read.
    Unknown,
}

impl KernelView {
    /// Parses `write back` and `write through`; drivers/scsi/sd.c adds `none` (no caching, hence
    /// write-through) and `write back, no read (daft)`.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "write back" | "write back, no read (daft)" => Self::WriteBack,
            "write through" | "none" => Self::WriteThrough,
            _ => Self::Unknown,
        }
    }
}

/// The driver's support for FUA writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelFua {
    /// `queue/fua` is 1.
    Yes,
    /// `queue/fua` is 0: the block layer turns FUA into a write and a flush.
    No,
    /// The attribute could not be read, or there is no queue.
    Unknown,
}

/// A drive's report of its volatile write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveCache {
    /// The write cache is enabled.
    On,
    /// The write cache is disabled but could be enabled.
    Off,
    /// The drive reports no volatile cache: NVMe VWC 0, or SCSI NV_SUP 1 with V_SUP 0. A declared protection.
    Protected,
    /// The drive reports no switchable write cache: ATA word 82 bit 5 is 0.
    Absent,
    /// The drive was queried and did not report its cache.
    Silent,
    /// The drive was not queried, or this user may not query it.
    NotAsked,
}

/// The log of a write-back cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The name of the cache.
    pub cache: String,
    /// Names of the layers below the log.
    pub on: Vec<String>,
    /// True if some devices of the log cannot be seen, so that their durability is unknown.
    pub is_hidden: bool,
    /// True if the log is flushed; false if the user vouches that its devices keep what they acknowledge.
    pub is_flushed: bool,
}

/// Remarkable property of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The data is only in this machine's memory.
    InMemory,
    /// The device discards everything written.
    KeepsNothing,
    /// A mount option or a module parameter that suppresses flushes.
    BarriersOff {
        /// Option as set: `nobarrier`.
        option: String,
        /// Command that enables flushes again.
        restore: String,
    },
    /// All syncs of applications are ignored (overlayfs `volatile`, ZFS `sync=disabled`).
    SyncsOmitted {
        /// Option as set.
        option: String,
    },
    /// An option that weakens the order between data and metadata, but omits no flush.
    LaxOrder {
        /// Option as set: `data=writeback`.
        option: String,
    },
    /// The mount option `sync`, which syncs every write before write() returns, or `dirsync`, which does so
    /// for every change of a directory.
    Synchronous {
        /// Option as set.
        option: String,
    },
    /// The attribute `S` ([`SYNC_ATTRIBUTE`]) of the named file or directory, which syncs every write to a
    /// file before write() returns.
    SynchronousFile {
        /// File or directory with the attribute.
        place: String,
    },
    /// A hypervisor that flushes each write of its guest before it acknowledges it.
    FlushesWrites,
    /// A layer of this machine's host; the host's survey gives the fate of FLUSH and FUA.
    OfHost {
        /// Fate of a FLUSH.
        flush: Flush,
        /// Fate of FUA.
        fua: Fua,
    },
    /// O_DIRECT bypasses the page cache and overwrites the blocks of the file in place: ext2, ext3 and ext4
    /// without `data=journal`, xfs.
    DirectInPlace,
    /// A preloaded library replaces the syncs of programs by no-ops.
    SyncsPreloaded {
        /// Name of the library, and the file that requests it.
        library: String,
    },
    /// A file that replaces another by rename or truncation without a sync may be empty after a crash.
    ReplacesUnsynced {
        /// Option that causes this.
        option: String,
    },
    /// One or more log devices of a ZFS pool, which receive synced data.
    SyncLog {
        /// The device if it is a single one.
        single: Option<String>,
    },
    /// A ZFS file system whose synced data bypasses the log devices of its pool.
    LogBypassed,
    /// A version of ZFS that does not report failed flushes.
    FlushErrorsIgnored {
        /// Version of ZFS.
        version: String,
    },
    /// A btrfs with block groups on parity profiles.
    BtrfsParity {
        /// Kinds of blocks with their profiles.
        what: String,
    },
    /// Errors recorded by the kernel: data may have been lost.
    ErrorsRecorded {
        /// Number and kind of the errors.
        what: String,
    },
    /// A disk with zones that must be written sequentially.
    Shingled {
        /// Model of the zones: `drive-managed`, `host-aware`, `host-managed`.
        what: String,
    },
    /// An ext4 journal on a separate device.
    ExternalJournal {
        /// The device that holds the journal.
        device: String,
    },
    /// A read-only mount, file system or device.
    ReadOnly,
    /// The medium is write-protected (trap H8).
    WriteProtected,
    /// The drive has no caching mode page, so the kernel assumes write-through.
    NoCachingPage,
    /// An NVMe drive with a disabled volatile cache, a state that the kernel never reads (trap H7).
    FeatureOff,
    /// The driver completes SYNCHRONIZE CACHE itself (trap H9).
    SwallowsFlush {
        /// Evidence for the mark.
        why: String,
    },
    /// The driver may complete SYNCHRONIZE CACHE itself; the deciding fact could not be read.
    MaySwallowFlush {
        /// The deciding fact.
        why: String,
    },
    /// A layer that completes a flush without sending it to the devices below.
    SendsNoFlush {
        /// Evidence for the mark.
        why: String,
    },
    /// A disk of a ZFS pool that has a cache but was never flushed (trap H10).
    NeverFlushed {
        /// Evidence for the mark.
        why: String,
    },
    /// The disks behind this one and their caches are not visible.
    HidesMembers {
        /// Evidence for the mark.
        why: String,
    },
    /// A parity array without a journal.
    WriteHole {
        /// Level and consistency policy.
        what: String,
        /// True if members are missing now.
        degraded: bool,
    },
    /// Acknowledged data is only on a cache device.
    Dirty {
        /// Amount, as the kernel prints it.
        what: String,
    },
    /// The drive declares that a power cut does not tear writes within these limits.
    DeclaresUntorn {
        /// The limits.
        units: Units,
    },
    /// The disk has no flush command at all.
    NoFlushCommand,
    /// A server without flush support, so that its client cannot carry out a sync.
    NoFlushOffered {
        /// Wording of the server's offer: [`NO_FLUSH_NO_FUA`] or [`ONLY_FUA`].
        offered: &'static str,
    },
    /// A hypervisor.
    Guest {
        /// Name of the hypervisor, if known.
        name: String,
    },
    /// A write-back cache of plumb, which acknowledges a write once it is in the log.
    Log(Log),
    /// A simulated drive in this process: its reported properties are known, and its model decides about
    /// flushes.
    Simulated,
    /// A simulated drive served by a process of plumb: its real durability is known, whatever it reports.
    ServedDrive {
        /// Model of the drive.
        model: String,
    },
    /// Drive or driver that completes flushes without executing them.
    IgnoresFlush,
    /// The remote end of a network.
    RemoteEnd {
        /// Description of the other end.
        what: String,
    },
    /// The survey cannot see below this layer.
    Unseen {
        /// Description of the invisible part, and the reason.
        what: String,
    },
    /// The file system exposes kernel state and stores nothing.
    KernelState {
        /// Sentence for the finding.
        what: String,
    },
    /// A query that only root may make.
    NeedsRoot {
        /// The query, with the device.
        question: String,
    },
    /// A query that is refused even to root, as in a container.
    RefusedToRoot {
        /// The query, with the device.
        question: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documentation/ABI/stable/sysfs-block, `atomic_write_*`: powers of two between the units, of which none
    /// crosses a boundary.
    #[test]
    fn units_take_powers_of_two_within_their_limits() {
        let units = Units { min: 4096, max: 65536, boundary: 32768 };
        for (bytes, is_taken) in
            [(2048, false), (4096, true), (12288, false), (32768, true), (65536, false), (0, false)]
        {
            assert_eq!(units.takes(bytes), is_taken, "{bytes}");
        }
        assert!(!Units { min: 0, max: 0, boundary: 0 }.takes(0));
    }

    #[test]
    fn the_words_of_the_kernel_are_read() {
        assert_eq!(KernelView::parse("write back\n"), KernelView::WriteBack);
        assert_eq!(KernelView::parse("write back, no read (daft)"), KernelView::WriteBack);
        assert_eq!(KernelView::parse("none"), KernelView::WriteThrough);
        assert_eq!(KernelView::parse(""), KernelView::Unknown);
    }
}

//! Facts that a survey found out about one layer, as types: the input of the rules.
//!
//! A [`Node`] says what was read and from where; it does not judge. [`rules::judge`](crate::rules::judge)
//! turns a list of nodes into a [`WritePath`](crate::WritePath), the same way for a live machine, a recording
//! and a test.

use plumb_block::DeviceInfo;

use crate::model::{Cache, Evidence, Flush, Fua, LayerKind, SYNC_ATTRIBUTE, is_synchronous};

/// Offer of an NBD server by which nothing can be made durable.
pub(crate) const NO_FLUSH_NO_FUA: &str = "neither flush nor FUA";
/// Offer of an NBD server by which only a write can be durable by itself.
pub(crate) const ONLY_FUA: &str = "FUA and no flush";

/// One layer with all that is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Kind of the layer.
    pub kind: LayerKind,
    /// Unique among the nodes of a survey.
    pub name: String,
    /// Identity that stays the same when names change.
    pub identity: Option<String>,
    /// The names of the nodes directly below.
    pub below: Vec<String>,
    /// Cache of this layer itself: whether it holds acknowledged data that a power cut may erase. For a
    /// drive: what the drive and the kernel's last reading of it say together; never the queue setting, which
    /// is the kernel's alone.
    pub cache: Cache,
    /// `queue/write_cache`: whether the kernel sends flushes to this device.
    pub queue: KernelView,
    /// `queue/fua`: whether the driver takes FUA writes.
    pub fua: KernelFua,
    /// The kernel's record of the drive's own setting: `cache_type` of SCSI and virtio disks.
    pub cache_type: KernelView,
    /// The drive's own answer about its write cache.
    pub drive: DriveCache,
    /// Effect of the layer on a write that must not be torn by a power cut.
    pub untorn: Untorn,
    /// Remarkable properties of the layer.
    pub marks: Vec<Mark>,
    /// Sources that the statements rest on.
    pub evidence: Vec<Evidence>,
}

impl Node {
    /// Creates a node of which nothing is known yet.
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

    /// Adds one line of evidence.
    pub fn saw(&mut self, source: impl Into<String>, value: impl Into<String>, means: impl Into<String>) {
        self.evidence.push(Evidence { source: source.into(), value: value.into(), means: means.into() });
    }

    /// Returns where a file system is mounted; of other layers the name.
    pub fn place(&self) -> &str {
        self.name.split_once(' ').map_or(&self.name, |(_, point)| point)
    }

    /// Returns whether the layer has an option because it is mounted with it, or otherwise.
    pub(crate) fn option_verb(&self) -> &'static str {
        if self.is_zfs() { "run with" } else { "mounted" }
    }

    /// Returns true for a file system, volume or pool of ZFS.
    pub(crate) fn is_zfs(&self) -> bool {
        matches!(self.kind, LayerKind::Zfs | LayerKind::Zvol)
    }

    /// Returns true if synced data is written to devices of its own.
    pub(crate) fn has_log(&self) -> bool {
        self.marks.iter().any(|mark| matches!(mark, Mark::SyncLog { .. }))
    }

    /// Returns what makes every write synced before write() returns: [`crate::SYNC_OPTION`] or
    /// [`crate::SYNC_ATTRIBUTE`].
    pub fn synchronous(&self) -> Option<&str> {
        self.marks.iter().find_map(|mark| match mark {
            Mark::Synchronous { option } if is_synchronous(option) => Some(option.as_str()),
            Mark::SynchronousFile { .. } => Some(SYNC_ATTRIBUTE),
            _ => None,
        })
    }

    /// Returns true if it acknowledges a write past the page cache once all below it have, and can find it
    /// again without having written anything else. Left out: layers with a mapping of their own that is
    /// written out at a flush (thin, cache, writecache, snapshot, integrity, bcache), loop devices, since
    /// their file has one, and what is not known.
    pub fn writes_in_place(&self) -> bool {
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

    /// Returns true if nothing can be written to it.
    pub(crate) fn is_read_only(&self) -> bool {
        self.marks.contains(&Mark::ReadOnly)
    }

    /// Returns the log, if it is a write-back cache.
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

/// Effect of a layer on a write that must not be torn by a power cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untorn {
    /// The layer has no say: what is below decides.
    Passes,
    /// A block device takes writes within these limits as one (`RWF_ATOMIC`).
    Units(Units),
    /// The kernel takes writes within these limits to the file that was named.
    File {
        /// The limits.
        units: Units,
        /// True if the file system makes a copy of what the devices do not take.
        by_copy: bool,
    },
    /// A file system that has such limits for each file, of which none was named.
    Directory {
        /// The size in bytes that it takes for every file if the devices do.
        least: Option<u64>,
        /// The size in bytes up to which it takes writes to every file, by a copy where the devices do not;
        /// `None` where nothing says.
        most: Option<u64>,
        /// Reason why nothing is known of larger writes.
        why: String,
        /// True if it may make a copy of what the devices do not take.
        by_copy: bool,
    },
    /// A file system that writes each block of so many bytes elsewhere, and then switches to it.
    CopyOnWrite {
        /// Bytes of a block, or of a record of ZFS.
        block: u64,
    },
    /// The layer takes no untorn writes.
    Torn {
        /// Reason, as a clause.
        why: String,
    },
    /// No source says.
    Unknown {
        /// Reason, as a clause.
        why: String,
        /// True if the name of a file in place of its directory would tell.
        is_told_of_files: bool,
    },
}

impl Untorn {
    /// Nothing says, and the name of a file would not help.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into(), is_told_of_files: false }
    }
}

/// Limits of untorn writes, in bytes. Each write has a power of two for its length, and lies on a multiple of
/// that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// The smallest.
    pub min: u64,
    /// The largest; zero if there are none.
    pub max: u64,
    /// Multiples of this must not lie inside one; zero if there are no such boundaries.
    pub boundary: u64,
}

impl Units {
    /// Limits that an open device reports.
    pub fn of_device(info: &DeviceInfo) -> Self {
        Self { min: info.atomic_unit_min.0, max: info.atomic_unit.0, boundary: info.atomic_boundary.0 }
    }

    /// Returns true if a write of `bytes` on a multiple of its length is not torn.
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
    /// Flushes and FUA are stripped before the driver sees them.
    WriteThrough,
    /// The layer has no such setting: a file system, a partition.
    NoQueue,
    /// The setting could not be read.
    Unknown,
}

impl KernelView {
    /// Reads `write back` and `write through`; drivers/scsi/sd.c adds `none` (no caching at all, so a
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
    /// `queue/fua` is 0: the block layer makes a write and a flush of it.
    No,
    /// The attribute could not be read, or there is no queue.
    Unknown,
}

/// A drive's answer about its volatile write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveCache {
    /// The write cache is on.
    On,
    /// The write cache is off, and could be on.
    Off,
    /// The drive says that it has none: NVMe VWC 0, SCSI NV_SUP 1 with V_SUP 0. A declared protection.
    Protected,
    /// The drive has no write cache that could be switched: ATA word 82 bit 5 is 0.
    Absent,
    /// The drive was asked and did not say.
    Silent,
    /// The drive was not asked, or this user may not ask.
    NotAsked,
}

/// The log of a write-back cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The name of the cache.
    pub cache: String,
    /// Names of the layers below it.
    pub on: Vec<String>,
    /// True if devices of it cannot be seen: nobody knows what they keep.
    pub is_hidden: bool,
    /// True if it is flushed; it is not where somebody vouches that it keeps what it acknowledges.
    pub is_flushed: bool,
}

/// Remarkable property of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The data is in this machine's memory and nowhere else.
    InMemory,
    /// Everything written is dropped.
    KeepsNothing,
    /// A mount option or a module parameter that keeps flushes from being issued.
    BarriersOff {
        /// The option as it is set: `nobarrier`.
        option: String,
        /// The command that makes it issue them again.
        restore: String,
    },
    /// All syncs of applications are omitted (overlayfs `volatile`, ZFS `sync=disabled`).
    SyncsOmitted {
        /// The option as it is set.
        option: String,
    },
    /// An option that gives up some order between data and metadata, but no flush.
    LaxOrder {
        /// The option as it is set: `data=writeback`.
        option: String,
    },
    /// The mount option `sync`, with which every write is synced before write() returns, or `dirsync`, with
    /// which every change of a directory is.
    Synchronous {
        /// The option as it is set.
        option: String,
    },
    /// The attribute `S` ([`SYNC_ATTRIBUTE`](crate::SYNC_ATTRIBUTE)) of what was named, with which every
    /// write to a file is synced before write() returns.
    SynchronousFile {
        /// The file or directory.
        place: String,
    },
    /// A hypervisor that flushes each write of its guest before it acknowledges it.
    FlushesWrites,
    /// A layer of the host of this machine, of which the host's survey says what becomes of FLUSH and FUA.
    OfHost {
        /// Fate of a flush.
        flush: Flush,
        /// Fate of FUA.
        fua: Fua,
    },
    /// O_DIRECT goes past the page cache to the blocks of the file, and overwrites them where they are: ext2,
    /// ext3 and ext4 without `data=journal`, xfs.
    DirectInPlace,
    /// A library that is loaded into programs answers their syncs itself.
    SyncsPreloaded {
        /// The library, and where it is said that it is loaded.
        library: String,
    },
    /// A file that replaces another by rename or truncation without a sync may be empty after a crash.
    ReplacesUnsynced {
        /// Option that does so.
        option: String,
    },
    /// A device of a pool of ZFS, or several that mirror each other, to which synced data is written.
    SyncLog {
        /// The device, if there is only one.
        single: Option<String>,
    },
    /// A file system of ZFS whose synced data is written past the log devices of its pool.
    LogBypassed,
    /// A version of ZFS that tells nobody of a flush that failed.
    FlushErrorsIgnored {
        /// The version.
        version: String,
    },
    /// A btrfs whose blocks are on parity profiles.
    BtrfsParity {
        /// Kinds of blocks with their profiles.
        what: String,
    },
    /// Errors that the kernel has recorded and keeps: data may have been lost.
    ErrorsRecorded {
        /// Number and kind of the errors.
        what: String,
    },
    /// A disk with zones that are written in order.
    Shingled {
        /// Model of the zones: `drive-managed`, `host-aware`, `host-managed`.
        what: String,
    },
    /// An ext4 journal on a device of its own.
    ExternalJournal {
        /// The device that holds the journal.
        device: String,
    },
    /// Nothing can be written to it: a read-only mount, file system or device.
    ReadOnly,
    /// The medium is write-protected (trap H8).
    WriteProtected,
    /// The drive has no caching mode page, so the kernel assumes write-through.
    NoCachingPage,
    /// An NVMe drive with a volatile cache that is switched off, which the kernel never looks at (trap H7).
    FeatureOff,
    /// The driver answers SYNCHRONIZE CACHE itself (trap H9).
    SwallowsFlush {
        /// Evidence for it.
        why: String,
    },
    /// The driver may do so; what would tell could not be read.
    MaySwallowFlush {
        /// Fact that would tell.
        why: String,
    },
    /// A layer that answers a flush without sending any to the devices below.
    SendsNoFlush {
        /// Evidence for it.
        why: String,
    },
    /// A disk of a pool of ZFS that has a cache and was never flushed (trap H10).
    NeverFlushed {
        /// Evidence for it.
        why: String,
    },
    /// Disks behind this one are not visible, nor are their caches.
    HidesMembers {
        /// Evidence for it.
        why: String,
    },
    /// A parity array without a journal.
    WriteHole {
        /// Level and consistency policy.
        what: String,
        /// Members are missing now.
        degraded: bool,
    },
    /// Acknowledged data lives on a cache device only.
    Dirty {
        /// How much, as the kernel says it.
        what: String,
    },
    /// The drive declares that a power cut tears no write within these limits.
    DeclaresUntorn {
        /// The limits.
        units: Units,
    },
    /// The disk offers no flush command at all.
    NoFlushCommand,
    /// A server that offers no flush: its client cannot have a sync carried out.
    NoFlushOffered {
        /// Offer of the server, in words: [`NO_FLUSH_NO_FUA`] or [`ONLY_FUA`].
        offered: &'static str,
    },
    /// The hypervisor that this layer stands for.
    Guest {
        /// Name of the hypervisor as far as it is known.
        name: String,
    },
    /// A write-back cache of plumb, which acknowledges what its log has.
    Log(Log),
    /// A model of a drive, in this process: what it reports is known, what it does with a flush is the
    /// model's.
    Simulated,
    /// A simulated drive that a process of plumb serves: what it keeps is known, whatever it says.
    ServedDrive {
        /// Model of the drive.
        model: String,
    },
    /// Drive or driver that answers flushes without doing what they ask for.
    IgnoresFlush,
    /// The other end of a network.
    RemoteEnd {
        /// Description of the other end.
        what: String,
    },
    /// The survey cannot see further down here.
    Unseen {
        /// Description of the part that cannot be seen, and why it cannot.
        what: String,
    },
    /// The file system shows state of the kernel and stores nothing.
    KernelState {
        /// Sentence that says so.
        what: String,
    },
    /// This user may not ask; root may.
    NeedsRoot {
        /// The question that was to be asked, with the device.
        question: String,
    },
    /// Not even root may ask, as in a container.
    RefusedToRoot {
        /// The question that was to be asked, with the device.
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

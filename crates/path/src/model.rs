//! The write path as plain data: layers from the application down to the drive, what each does with FLUSH and
//! FUA, and the evidence for every statement.

use serde::{Deserialize, Serialize};

use crate::exposure::Exposure;
use crate::finding::Finding;

/// All that a survey learnt: the document behind `plumb survey --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Always [`Survey::SCHEMA`].
    pub schema: String,
    /// The kernel's release, `6.12.48-amd64`.
    pub kernel: Option<String>,
    /// One path for each target that was asked for.
    pub paths: Vec<WritePath>,
}

impl Survey {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/survey/1";
}

/// The attribute of a file with which every write is synced before it returns, as evidence names it
/// (chattr(1)).
pub const SYNC_ATTRIBUTE: &str = "attribute S";
/// The mount option that does the same for all files, as evidence names it (mount(8)).
pub const SYNC_OPTION: &str = "sync";

/// Beginning of the name of a layer that is a simulated drive which plumb serves: no device has this name.
pub(crate) const SERVED_DRIVE: &str = "plumb drive ";

/// The property of a file system of ZFS that does the same, as evidence names it (zfsprops(7)).
pub(crate) const ZFS_SYNC_ALWAYS: &str = "sync=always";

/// Returns whether evidence of this value says that every write is synced before it returns.
pub(crate) fn is_synchronous(value: &str) -> bool {
    [SYNC_OPTION, SYNC_ATTRIBUTE, ZFS_SYNC_ALWAYS].contains(&value)
}

/// Returns the words for what makes every write synced: [`SYNC_OPTION`], [`SYNC_ATTRIBUTE`] or the property
/// of ZFS.
pub(crate) fn synchronous_words(value: &str) -> &'static str {
    match value {
        SYNC_ATTRIBUTE => "attribute S (chattr +S)",
        ZFS_SYNC_ALWAYS => "property sync=always",
        _ => "mount option sync",
    }
}

/// The way of a write from the application to the media, for one target.
///
/// ```
/// use plumb_path::{Severity, WritePath};
///
/// /// Returns the worst finding on a path.
/// fn worst(path: &WritePath) -> Option<Severity> {
///     path.findings.iter().map(|finding| finding.severity).max()
/// }
///
/// assert_eq!(worst(&WritePath::default()), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WritePath {
    /// Target that was requested: a path or a device.
    pub target: String,
    /// The layers, each before all that are below it. The first is the application.
    pub layers: Vec<Layer>,
    /// Where an acknowledged write and a synced one become durable.
    pub durable_at: DurableAt,
    /// Reason why the survey cannot see further down, if it cannot: a hypervisor, a server, a controller.
    pub unknown_below: Option<String>,
    /// Answers to whether a page of a database stays whole over a power cut, by its size; empty where no
    /// layer has a say, and in documents recorded before it was known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untorn: Vec<UntornPage>,
    /// Acknowledged data that a power cut would take at the time of the survey; absent unless that was asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<Exposure>,
    /// Problems and facts worth knowing.
    pub findings: Vec<Finding>,
}

impl WritePath {
    /// Returns true if no write goes down this path, because what applications write to is read-only.
    pub fn takes_no_writes(&self) -> bool {
        self.findings.iter().any(|finding| finding.id == "read-only")
    }

    /// Returns what makes every write synced before write() returns, in words (`mount option sync`): an
    /// option or attribute of what applications write to, for an overlay of the file system of its upper
    /// directory. `None` where nothing does.
    pub fn synchronous(&self) -> Option<&'static str> {
        let mut at = self.file_system();
        while let Some(layer) = at {
            if let Some(line) = layer.evidence.iter().find(|line| is_synchronous(&line.value)) {
                return Some(synchronous_words(&line.value));
            }
            let below = layer.below.first().filter(|_| layer.kind == LayerKind::Overlay);
            at = below.and_then(|name| self.layer(name));
        }
        None
    }

    /// This path continued by that of the machine beneath it, as of a guest and its host. The layers of that
    /// machine have its name before their own, and it has no application.
    #[must_use]
    pub fn continued_by(mut self, beneath: &Self, machine: &str) -> Self {
        let named = |name: &String| format!("{machine}: {name}");
        let all_named = |names: &[String]| names.iter().map(named).collect::<Vec<_>>();
        let (above, layers): (Vec<&Layer>, Vec<&Layer>) =
            beneath.layers.iter().partition(|layer| layer.kind == LayerKind::Application);
        let top: Vec<String> = above.iter().flat_map(|layer| all_named(&layer.below)).collect();
        for layer in self.layers.iter_mut().filter(|layer| layer.below.is_empty()) {
            layer.below.clone_from(&top);
        }
        let below = layers.into_iter().map(|layer| Layer {
            name: named(&layer.name),
            below: all_named(&layer.below),
            ..layer.clone()
        });
        self.layers.extend(below);
        // Durable is what is durable on both machines.
        let both = |here: Option<String>, there: &Option<String>| here.and(there.as_ref().map(named));
        let (here, there) = (self.durable_at, &beneath.durable_at);
        self.durable_at = DurableAt {
            write: both(here.write, &there.write),
            direct: both(here.direct, &there.direct),
            fsync: both(here.fsync, &there.fsync),
            sentence: format!("{} On {machine}, if it passes flushes on: {}", here.sentence, there.sentence),
        };
        self.unknown_below.clone_from(&beneath.unknown_below);
        // Limits of untorn writes that a guest sees say nothing of the parts in which its host writes.
        self.untorn.clear();
        self.findings.extend(beneath.findings.iter().cloned());
        self
    }
}

/// Layer at which data is durable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableAt {
    /// The name of the layer at which a plain acknowledged write is durable; null if at none that is known.
    pub write: Option<String>,
    /// The name of the layer at which a write past the page cache that overwrites in place is durable once it
    /// is acknowledged; null if at none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<String>,
    /// The name of the layer at which data is durable once fsync has returned; null if at none that is known.
    pub fsync: Option<String>,
    /// Summary of these layers as a sentence for people, with what may drop the data.
    pub sentence: String,
}

/// Answer to whether a page of one size stays whole over a power cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntornPage {
    /// Bytes of the page.
    pub page_bytes: u64,
    /// Answer for a program that writes each page by one direct write with `RWF_ATOMIC`.
    pub answer: PageAnswer,
    /// The layer that the answer rests on; null if there is none.
    pub layer: Option<String>,
    /// Reason, as a clause.
    pub because: String,
    /// Rank of the claim; null without one.
    pub rank: Option<UntornRank>,
    /// True if the answer is yes for writes with `RWF_ATOMIC` only: they are kept whole by the drive, or by a
    /// copy that the file system makes of no other write.
    #[serde(default)]
    pub needs_rwf_atomic: bool,
    /// Proof of the claim, or a way to learn more; null if the answer is no.
    pub proof: Option<String>,
    /// Answer for a program that writes through the page cache.
    pub cached: CachedPage,
}

/// Answer for a program that writes through the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedPage {
    /// The answer.
    pub answer: PageAnswer,
    /// The layer that it rests on; null if there is none.
    pub layer: Option<String>,
    /// Reason, as a clause.
    #[serde(default)]
    pub because: String,
}

/// Answer to whether a page stays whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageAnswer {
    /// The page stays whole, by the claim of this rank.
    Yes,
    /// A power cut may leave a part of it old and a part new.
    No,
    /// No source says.
    Unknown,
}

/// Rank of a claim that pages stay whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UntornRank {
    /// A drive, or what stands for one, declares it. That is not proof.
    Declared,
    /// A file system writes elsewhere and switches over, whatever the drive does with a write.
    ByDesign,
}

/// Limits of untorn writes at one layer, by what it says itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerUntorn {
    /// The smallest, in bytes.
    pub bytes_min: Option<u64>,
    /// The largest, in bytes; zero if it takes none.
    pub bytes_max: Option<u64>,
    /// Reason why they are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_unknown_because: Option<String>,
}

/// One layer of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Kind of the layer.
    pub kind: LayerKind,
    /// Unique within the path: the kernel's name where there is one (`vda`, `dm-0`), else what people call
    /// it.
    pub name: String,
    /// Identity that stays the same when names change: WWN, serial, UUID.
    pub identity: Option<String>,
    /// Cache of this layer itself: whether it holds acknowledged data that a power cut may erase; for a
    /// write-back cache of plumb, whether its log does.
    pub cache: Cache,
    /// Effect of the layer on a FLUSH from above.
    pub flush: Flush,
    /// Effect of the layer on FUA from above.
    pub fua: Fua,
    /// Limits of untorn writes; absent where the layer has no say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untorn: Option<LayerUntorn>,
    /// Sources that each statement rests on.
    pub evidence: Vec<Evidence>,
    /// The names of the layers directly below.
    pub below: Vec<String>,
}

/// The kinds of layer. A layer that is none of these is `Unknown` and keeps its kernel name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are the field's own")]
pub enum LayerKind {
    Application,
    PageCache,
    FileSystem,
    Overlay,
    Tmpfs,
    NetworkFileSystem,
    Fuse,
    Zfs,
    Zvol,
    Partition,
    DmLinear,
    DmStriped,
    DmCrypt,
    DmThin,
    DmThinPool,
    DmCache,
    DmWritecache,
    DmMultipath,
    DmMirror,
    DmRaid,
    DmIntegrity,
    DmVerity,
    DmSnapshot,
    DmOther,
    Md,
    Bcache,
    Loop,
    Zram,
    Ram,
    NullBlk,
    Nbd,
    Rbd,
    Drbd,
    Ublk,
    VirtioDisk,
    ScsiDisk,
    AtaDisk,
    UsbDisk,
    OpticalDrive,
    NvmeNamespace,
    MmcDisk,
    Pmem,
    XenDisk,
    SimulatedDrive,
    WriteBackCache,
    Controller,
    VirtualMachine,
    Hypervisor,
    Remote,
    Unknown,
}

/// Cache of a layer: whether it holds acknowledged data, and what a power cut does to that data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// The layer holds nothing back.
    None,
    /// The layer holds data that a power cut erases.
    Volatile,
    /// The layer holds data that survives: battery, capacitors, flash.
    Protected,
    /// No source says.
    Unknown,
}

/// Fate of a FLUSH at a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flush {
    /// The FLUSH is passed down, or carried out by a drive.
    Forwarded,
    /// The FLUSH ends here because nothing volatile is held at or below this layer that it could empty; at a
    /// write-back cache of plumb, because its log holds nothing volatile.
    Absorbed,
    /// The FLUSH ends here although something volatile is held at or below this layer.
    Dropped,
    /// No source says.
    Unknown,
}

/// Fate of FUA at a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fua {
    /// FUA is passed down, or carried out by a drive.
    Native,
    /// FUA becomes a write and a flush.
    Emulated,
    /// FUA ends here.
    Dropped,
    /// No source says.
    Unknown,
}

/// Source that a statement rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The file, ioctl or field: `/sys/block/vda/queue/write_cache`,
    /// `SG_IO MODE SENSE(10) page 08h byte 2 bit 2`.
    pub source: String,
    /// Value that was read there.
    pub value: String,
    /// Conclusion that follows from the value, in a few words.
    pub means: String,
}

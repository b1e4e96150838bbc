//! The write path as plain data: layers from the application down to the drive, the fate of FLUSH and FUA at
//! each, and the evidence for every statement.

use serde::{Deserialize, Serialize};

use crate::exposure::Exposure;
use crate::finding::Finding;

/// Result of a survey: the document behind `plumb survey --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Always [`Survey::SCHEMA`].
    pub schema: String,
    /// Kernel release, `6.12.48-amd64`.
    pub kernel: Option<String>,
    /// One path for each requested target.
    pub paths: Vec<WritePath>,
}

impl Survey {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/survey/1";
}

/// File attribute that syncs every write before it returns, in the wording of evidence (chattr(1)).
pub const SYNC_ATTRIBUTE: &str = "attribute S";
/// Mount option that syncs every write to any file before it returns, in the wording of evidence (mount(8)).
pub const SYNC_OPTION: &str = "sync";

/// Name prefix of a layer that is a simulated drive served by plumb; no device has this name.
pub(crate) const SERVED_DRIVE: &str = "plumb drive ";

/// ZFS property that syncs every write before it returns, in the wording of evidence (zfsprops(7)).
pub(crate) const ZFS_SYNC_ALWAYS: &str = "sync=always";

/// Returns true if evidence with this value means that every write is synced before it returns.
pub(crate) fn is_synchronous(value: &str) -> bool {
    [SYNC_OPTION, SYNC_ATTRIBUTE, ZFS_SYNC_ALWAYS].contains(&value)
}

/// Returns the name of the setting that syncs every write: [`SYNC_OPTION`], [`SYNC_ATTRIBUTE`] or the ZFS
/// property.
pub(crate) fn synchronous_words(value: &str) -> &'static str {
    match value {
        SYNC_ATTRIBUTE => "attribute S (chattr +S)",
        ZFS_SYNC_ALWAYS => "property sync=always",
        _ => "mount option sync",
    }
}

/// The path of a write from the application to the media, for one target.
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
    /// Requested target: a path or a device.
    pub target: String,
    /// Layers in topological order: each before all layers below it. The first is the application.
    pub layers: Vec<Layer>,
    /// Layers at which an acknowledged write and a synced one become durable.
    pub durable_at: DurableAt,
    /// Reason why the survey cannot see further down, if any: a hypervisor, a server, a controller.
    pub unknown_below: Option<String>,
    /// For each database page size, whether a page stays whole across a power cut; empty if no layer affects
    /// it, and in documents recorded before this was known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untorn: Vec<UntornPage>,
    /// Acknowledged data that a power cut would have lost at the time of the survey; absent unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<Exposure>,
    /// Problems and noteworthy facts.
    pub findings: Vec<Finding>,
}

impl WritePath {
    /// Returns true if nothing is ever written down this path, because the top layer is read-only.
    pub fn takes_no_writes(&self) -> bool {
        self.findings.iter().any(|finding| finding.id == "read-only")
    }

    /// Returns the setting that syncs every write before write() returns (`mount option sync`): an option or
    /// attribute of the top layer, or for an overlay of the file system of its upper directory. `None` if
    /// there is none.
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

    /// Joins this path of a guest with the path of its host. The host's layers get the prefix `machine`, and
    /// its application is dropped.
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
        // Data is durable only if it is durable on both machines.
        let both = |here: Option<String>, there: &Option<String>| here.and(there.as_ref().map(named));
        let (here, there) = (self.durable_at, &beneath.durable_at);
        self.durable_at = DurableAt {
            write: both(here.write, &there.write),
            direct: both(here.direct, &there.direct),
            fsync: both(here.fsync, &there.fsync),
            sentence: format!("{} On {machine}, if it passes flushes on: {}", here.sentence, there.sentence),
        };
        self.unknown_below.clone_from(&beneath.unknown_below);
        // Limits of untorn writes in a guest do not show how its host splits writes.
        self.untorn.clear();
        self.findings.extend(beneath.findings.iter().cloned());
        self
    }
}

/// Layers at which data becomes durable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableAt {
    /// Layer at which a plain acknowledged write is durable; null if unknown or nowhere.
    pub write: Option<String>,
    /// Layer at which an acknowledged direct write that overwrites in place is durable; null if unknown or
    /// nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<String>,
    /// Layer at which data is durable once fsync has returned; null if unknown or nowhere.
    pub fsync: Option<String>,
    /// Summary as a sentence for users, with the layers that may drop the data.
    pub sentence: String,
}

/// Answer to whether a page of one size stays whole across a power cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntornPage {
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Answer for a program that writes each page by one direct write with `RWF_ATOMIC`.
    pub answer: PageAnswer,
    /// Layer that determines the answer; null if there is none.
    pub layer: Option<String>,
    /// Reason, as a clause.
    pub because: String,
    /// Rank of the claim; null without a claim.
    pub rank: Option<UntornRank>,
    /// True if the answer yes holds only for writes with `RWF_ATOMIC`: they stay whole by the drive, or by a
    /// copy that the file system makes only for such writes.
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
    /// Layer that determines the answer; null if there is none.
    pub layer: Option<String>,
    /// Reason, as a clause.
    #[serde(default)]
    pub because: String,
}

/// Answer to whether a page stays whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageAnswer {
    /// The page stays whole, by a claim with a rank.
    Yes,
    /// A power cut may leave a mixture of old and new data.
    No,
    /// No source says.
    Unknown,
}

/// Rank of a claim that pages stay whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UntornRank {
    /// Declared by a drive or a similar device. Not a proof.
    Declared,
    /// Guaranteed by a file system that writes elsewhere and then switches, independent of the drive.
    ByDesign,
}

/// Limits of untorn writes at one layer, as reported by the layer itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerUntorn {
    /// Smallest size in bytes.
    pub bytes_min: Option<u64>,
    /// Largest size in bytes; zero if the layer accepts none.
    pub bytes_max: Option<u64>,
    /// Reason why the limits are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_unknown_because: Option<String>,
}

/// A layer of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Kind of the layer.
    pub kind: LayerKind,
    /// Unique name within the path: the kernel's name if there is one (`vda`, `dm-0`), otherwise a
    /// descriptive one.
    pub name: String,
    /// Identity that survives a change of names: WWN, serial, UUID.
    pub identity: Option<String>,
    /// Cache of this layer itself: whether it holds acknowledged data that a power cut may lose. For a
    /// write-back cache of plumb, this is the state of its log.
    pub cache: Cache,
    /// Fate of a FLUSH that arrives at the layer.
    pub flush: Flush,
    /// Fate of FUA that arrives at the layer.
    pub fua: Fua,
    /// Limits of untorn writes; absent if the layer does not affect them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untorn: Option<LayerUntorn>,
    /// Sources of each statement.
    pub evidence: Vec<Evidence>,
    /// Names of the layers directly below.
    pub below: Vec<String>,
}

/// Kinds of layers. Any other layer is `Unknown` and keeps its kernel name.
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

/// Cache of a layer: whether it holds acknowledged data, and whether that survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// The layer holds no data.
    None,
    /// The layer holds data that a power cut loses.
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
    /// The FLUSH is passed down, or executed by a drive.
    Forwarded,
    /// The FLUSH ends here, correctly: nothing at or below this layer is volatile, or for a write-back cache
    /// of plumb, its log is not.
    Absorbed,
    /// The FLUSH ends here although data at or below this layer is volatile.
    Dropped,
    /// No source says.
    Unknown,
}

/// Fate of FUA at a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fua {
    /// FUA is passed down, or executed by a drive.
    Native,
    /// FUA becomes a write and a flush.
    Emulated,
    /// FUA ends here.
    Dropped,
    /// No source says.
    Unknown,
}

/// Source of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// File, ioctl or field: `/sys/block/vda/queue/write_cache`, `SG_IO MODE SENSE(10) page 08h byte 2 bit
    /// 2`.
    pub source: String,
    /// Value that was read there.
    pub value: String,
    /// Conclusion from the value, in a few words.
    pub means: String,
}

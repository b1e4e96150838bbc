//! View of a disk's write cache: the document behind `plumb policy show`, and what plans are made from.

use plumb_path::Finding;
use serde::{Deserialize, Serialize};

use crate::state::FoundState;

/// All disks that were asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyDocument {
    /// Always [`PolicyDocument::SCHEMA`].
    pub schema: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// One for each disk.
    pub devices: Vec<DeviceView>,
}

impl PolicyDocument {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/policy/1";
}

/// One disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceView {
    /// The kernel's name now.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial; null if it has none.
    pub identity: Option<String>,
    /// `ata`, `sas`, `scsi`, `nvme`, `usb`, `virtio`, `raid`, `loop`, ...; `cache` of a write-back cache of
    /// plumb; `sim` and `nbd` of what the kernel does not know.
    pub transport: String,
    /// The vendor and the model as the disk says them.
    pub vendor: Option<String>,
    /// Model, as the disk says it.
    pub model: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
    /// Capacity in bytes.
    pub size: Option<u64>,
    /// True if the drive itself says that it rotates; null if it does not say.
    pub rotational: Option<bool>,
    /// The state it is in.
    pub state: FoundState,
    /// State that the device reports.
    pub device: DeviceSide,
    /// State that the kernel believes in.
    pub kernel: KernelSide,
    /// Holders of the disk, from directly above upwards: partitions, dm, md, file systems with their mount
    /// points, swap.
    pub holders: Vec<Holder>,
    /// Where it hangs: host, port and expander, for waves of one per port.
    pub port: String,
    /// Arrays and pools of which it is a member, for waves of one per redundancy group.
    pub redundancy_groups: Vec<String>,
    /// The protection claim that counts, if there is one.
    pub protection: Option<Protection>,
    /// Counters of unsafe shutdowns and of the health of what protects the cache, where the drive has them.
    pub health: Vec<HealthCounter>,
    /// Findings: what is wrong or worth knowing; H1 to H10 by their ids.
    pub findings: Vec<Finding>,
    /// Party that can change the state: `plumb as root`, `the RAID controller's own tool (storcli)`, `nobody:
    /// ...`.
    pub changeable_by: String,
    /// Reason why nobody can with plumb, if so; null if it can be changed.
    pub refusal: Option<Refusal>,
}

impl DeviceView {
    /// Returns the view of a name that is not a disk of this machine: nothing is known but its name, and why
    /// plumb cannot change it.
    pub(crate) fn no_disk(name: &str, transport: &str, changeable_by: &str, refusal: Refusal) -> Self {
        Self {
            name: name.to_owned(),
            transport: transport.to_owned(),
            changeable_by: changeable_by.to_owned(),
            refusal: Some(refusal),
            ..Self::default()
        }
    }
}

/// State of the write cache, as the device itself reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSide {
    /// True if the volatile write cache is on now.
    pub wce: Option<bool>,
    /// True if the device says that it has no volatile write cache: `wce` is false, and nothing can be
    /// switched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_absent: bool,
    /// Reason why that is not known.
    pub wce_unknown_because: Option<String>,
    /// True if the device lets the write cache be changed.
    pub changeable: Option<bool>,
    /// State of the write cache that the maker set.
    pub default: Option<bool>,
    /// State of the write cache that the next power-on starts with.
    pub saved: Option<bool>,
    /// True if a change can be saved in the device (SCSI PS, NVMe saveable, SCT).
    pub saveable: Option<bool>,
    /// SCT feature control state of ATA drives: `ata-controlled`, `forced-on`, `forced-off`.
    pub sct: Option<String>,
    /// The command set it was read with: `mode-page`, `ata-identify`, `nvme-feature`, `virtio-config`,
    /// `device-info` (what a device that the kernel does not know reports of itself), `none`.
    pub mechanism: String,
}

/// State that the kernel believes in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSide {
    /// `queue/write_cache`.
    pub write_cache: Option<String>,
    /// `cache_type` of SCSI and virtio disks.
    pub cache_type: Option<String>,
    /// `queue/fua`.
    pub fua: Option<bool>,
}

/// Something that stands on a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The kernel's name, or a mount point.
    pub name: String,
    /// `partition`, `dm-crypt`, `md`, `ext4`, `swap`, ...
    pub kind: String,
    /// Belief of the holder about flushes, where it has a queue of its own.
    pub write_cache: Option<String>,
}

/// How good a claim of power-loss protection is. The order is that of confidence, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectionRank {
    /// The drive declares it: NVMe VWC 0, SCSI NV_SUP 1 with V_SUP 0.
    Declared,
    /// The drive reports the health of what protects it.
    HealthConfirmed,
    /// The model is known to have it.
    ModelList,
    /// An administrator says so, with name and expiry.
    AdministratorsWord,
    /// Flushes are so fast that they are consistent with it.
    TimingHint,
}

impl ProtectionRank {
    /// Returns the word that documents use for the rank.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::HealthConfirmed => "health-confirmed",
            Self::ModelList => "model-list",
            Self::AdministratorsWord => "administrators-word",
            Self::TimingHint => "timing-hint",
        }
    }

    /// Returns the number of the rank, 1 to 5; 1 is the best.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// A claim of power-loss protection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// The claim in words, with who makes it.
    pub claim: String,
    /// How good it is.
    pub rank: ProtectionRank,
    /// Time at which an administrator's claim expires, as RFC 3339.
    pub until: Option<String>,
}

/// One counter of the drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCounter {
    /// `unsafe_shutdowns`, `capacitor_health_percent`, `volatile_memory_backup_failed`, ...
    pub name: String,
    /// Value of the counter.
    pub value: u64,
    /// Where it was read: log page and bytes.
    pub source: String,
}

/// Reason why something is not changed, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why.
    pub reason: String,
    /// Remedy: what to do.
    pub remedy: String,
}

impl Refusal {
    /// Creates a refusal for this reason, with what to do instead.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }
}

#[cfg(test)]
pub(crate) mod tests;

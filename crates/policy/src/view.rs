//! View of a disk's write cache: the document of `plumb policy show`, and the input of plans.

use plumb_path::Finding;
use serde::{Deserialize, Serialize};

use crate::state::FoundState;

/// All requested disks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyDocument {
    /// Always [`PolicyDocument::SCHEMA`].
    pub schema: String,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// One view for each disk.
    pub devices: Vec<DeviceView>,
}

impl PolicyDocument {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/policy/1";
}

/// One disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceView {
    /// Current kernel name.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial number; null if the disk has none.
    pub identity: Option<String>,
    /// `ata`, `sas`, `scsi`, `nvme`, `usb`, `virtio`, `raid`, `loop`, ...; `cache` for a write-back cache of
    /// plumb; `sim` and `nbd` for devices unknown to the kernel.
    pub transport: String,
    /// Vendor, as the disk reports it.
    pub vendor: Option<String>,
    /// Model, as the disk reports it.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Capacity in bytes.
    pub size: Option<u64>,
    /// True if the drive reports that it rotates; null if it reports nothing about that.
    pub rotational: Option<bool>,
    /// State of the write cache.
    pub state: FoundState,
    /// State that the device reports.
    pub device: DeviceSide,
    /// State that the kernel assumes.
    pub kernel: KernelSide,
    /// Holders of the disk, from directly above upwards: partitions, dm, md, file systems with their mount
    /// points, swap.
    pub holders: Vec<Holder>,
    /// Host, port and expander, for waves of one disk per port.
    pub port: String,
    /// Arrays and pools of which the disk is a member, for waves of one disk per redundancy group.
    pub redundancy_groups: Vec<String>,
    /// The strongest protection claim, if there is one.
    pub protection: Option<Protection>,
    /// Counters of unsafe shutdowns and of the health of the cache's protection, if the drive has them.
    pub health: Vec<HealthCounter>,
    /// Findings: problems and notes; H1 to H10 by their ids.
    pub findings: Vec<Finding>,
    /// Party that can change the state: `plumb as root`, `the RAID controller's own tool (storcli)`, `nobody:
    /// ...`.
    pub changeable_by: String,
    /// Reason why plumb cannot change the state; null if it can.
    pub refusal: Option<Refusal>,
}

impl DeviceView {
    /// Returns the view of a name that is not a disk of this machine: only the name, and the reason why plumb
    /// cannot change the object.
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
    /// True if the device reports that it has no volatile write cache: `wce` is false, and nothing can be
    /// switched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_absent: bool,
    /// Reason why `wce` is unknown.
    pub wce_unknown_because: Option<String>,
    /// True if the device permits changes of the write cache.
    pub changeable: Option<bool>,
    /// Factory default of the write cache.
    pub default: Option<bool>,
    /// State of the write cache after the next power-on.
    pub saved: Option<bool>,
    /// True if a change can be saved in the device (SCSI PS, NVMe saveable, SCT).
    pub saveable: Option<bool>,
    /// SCT feature control state of ATA drives: `ata-controlled`, `forced-on`, `forced-off`.
    pub sct: Option<String>,
    /// Command set used for the read: `mode-page`, `ata-identify`, `nvme-feature`, `virtio-config`,
    /// `device-info` (the report of a device that the kernel does not know), `none`.
    pub mechanism: String,
}

/// State that the kernel assumes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSide {
    /// `queue/write_cache`.
    pub write_cache: Option<String>,
    /// `cache_type` of SCSI and virtio disks.
    pub cache_type: Option<String>,
    /// `queue/fua`.
    pub fua: Option<bool>,
}

/// User of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Kernel name, or a mount point.
    pub name: String,
    /// `partition`, `dm-crypt`, `md`, `ext4`, `swap`, ...
    pub kind: String,
    /// Write cache mode that the holder assumes, if it has its own queue.
    pub write_cache: Option<String>,
}

/// Confidence in a claim of power-loss protection, in descending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectionRank {
    /// The drive declares protection: NVMe VWC 0, SCSI NV_SUP 1 with V_SUP 0.
    Declared,
    /// The drive reports the health of its protection.
    HealthConfirmed,
    /// The model is known to have protection.
    ModelList,
    /// An administrator claims protection, with name and expiry.
    AdministratorsWord,
    /// Flushes are fast enough to be consistent with protection.
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
    /// The claim in words, with its source.
    pub claim: String,
    /// Confidence in the claim.
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
    /// Source of the value: log page and bytes.
    pub source: String,
}

/// Reason why a setting is not changed, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Reason.
    pub reason: String,
    /// Remedy for the user.
    pub remedy: String,
}

impl Refusal {
    /// Creates a refusal with a reason and a remedy.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! Requests of a probe, each with a name for recordings.

use std::fmt;
use std::str::FromStr;

/// Kind of values requested from a mode page or feature. SPC-5 6.14.1 (PC field); NVMe Base 2.0 5.15 (SEL
/// field).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageControl {
    /// Values in use.
    Current,
    /// Mask of the changeable values (SCSI), or the capabilities (NVMe).
    Changeable,
    /// Default values of the manufacturer.
    Default,
    /// Values that apply after the next power-on.
    Saved,
}

/// Request to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// DM_TABLE_STATUS with DM_STATUS_TABLE_FLAG, parsed by [`wire::dm`](super::wire::dm).
    DmTable,
    /// DM_TABLE_STATUS with DM_NOFLUSH_FLAG and without DM_STATUS_TABLE_FLAG, parsed by
    /// [`wire::dm`](super::wire::dm).
    DmStatus,
    /// LOOP_GET_STATUS64, parsed by [`wire::loop_status`](super::wire::loop_status).
    LoopStatus,
    /// Standard INQUIRY, 96 bytes, parsed by [`wire::inquiry`](super::wire::inquiry).
    Inquiry,
    /// INQUIRY, vital product data page 86h, parsed by
    /// [`wire::extended_inquiry`](super::wire::extended_inquiry).
    ExtendedInquiry,
    /// MODE SENSE(10), caching page 08h, parsed by [`wire::caching_page`](super::wire::caching_page).
    CachingPage(PageControl),
    /// IDENTIFY DEVICE through ATA PASS-THROUGH(16), parsed by
    /// [`wire::ata_identify`](super::wire::ata_identify).
    AtaIdentify,
    /// Identify Controller, parsed by [`wire::nvme`](super::wire::nvme).
    NvmeIdentifyController,
    /// Identify Namespace of the device's own namespace, parsed by [`wire::nvme`](super::wire::nvme).
    NvmeIdentifyNamespace,
    /// Get Features 06h, the result dword little endian, parsed by [`wire::nvme`](super::wire::nvme).
    NvmeWriteCache(PageControl),
    /// Get Log Page 02h (SMART / Health Information), 512 bytes, parsed by [`wire::nvme`](super::wire::nvme).
    NvmeHealth,
    /// ZFS_IOC_POOL_STATS of the named pool, parsed by [`wire::nvlist`](super::wire::nvlist).
    ZfsPool,
    /// ZFS_IOC_OBJSET_STATS of the named file system or volume, parsed by
    /// [`wire::nvlist`](super::wire::nvlist).
    ZfsDataset,
    /// BLKZNAME: the ZFS volume name of a device, padded with zeroes.
    ZfsVolume,
    /// Kernel log messages about a driver's handling of flushes, one on each line.
    KernelLog,
}

impl Request {
    /// All requests.
    pub const ALL: [Self; 21] = [
        Self::DmTable,
        Self::DmStatus,
        Self::LoopStatus,
        Self::Inquiry,
        Self::ExtendedInquiry,
        Self::CachingPage(PageControl::Current),
        Self::CachingPage(PageControl::Changeable),
        Self::CachingPage(PageControl::Default),
        Self::CachingPage(PageControl::Saved),
        Self::AtaIdentify,
        Self::NvmeIdentifyController,
        Self::NvmeIdentifyNamespace,
        Self::NvmeWriteCache(PageControl::Current),
        Self::NvmeWriteCache(PageControl::Changeable),
        Self::NvmeWriteCache(PageControl::Default),
        Self::NvmeWriteCache(PageControl::Saved),
        Self::NvmeHealth,
        Self::ZfsPool,
        Self::ZfsDataset,
        Self::ZfsVolume,
        Self::KernelLog,
    ];
}

impl fmt::Display for PageControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Current => "current",
            Self::Changeable => "changeable",
            Self::Default => "default",
            Self::Saved => "saved",
        })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DmTable => f.write_str("dm-table"),
            Self::DmStatus => f.write_str("dm-status"),
            Self::LoopStatus => f.write_str("loop-status"),
            Self::Inquiry => f.write_str("inquiry"),
            Self::ExtendedInquiry => f.write_str("inquiry-86"),
            Self::CachingPage(control) => write!(f, "mode-sense-08-{control}"),
            Self::AtaIdentify => f.write_str("ata-identify"),
            Self::NvmeIdentifyController => f.write_str("nvme-identify-controller"),
            Self::NvmeIdentifyNamespace => f.write_str("nvme-identify-namespace"),
            Self::NvmeWriteCache(control) => write!(f, "nvme-feature-06-{control}"),
            Self::NvmeHealth => f.write_str("nvme-log-02"),
            Self::ZfsPool => f.write_str("zfs-pool"),
            Self::ZfsDataset => f.write_str("zfs-dataset"),
            Self::ZfsVolume => f.write_str("zfs-volume"),
            Self::KernelLog => f.write_str("kernel-log"),
        }
    }
}

/// Error for text that is not the name of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a request that a probe knows: expected a name such as mode-sense-08-current")]
pub struct ParseRequestError {
    /// Text that could not be parsed.
    pub name: String,
}

impl FromStr for Request {
    type Err = ParseRequestError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|request| request.to_string() == name)
            .ok_or_else(|| ParseRequestError { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_has_its_own_name() {
        for request in Request::ALL {
            assert_eq!(request.to_string().parse(), Ok(request));
        }
        assert!("mode-sense-09".parse::<Request>().is_err());
    }
}

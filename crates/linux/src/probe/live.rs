//! Probe that queries the running machine's devices by ioctl.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use super::scsi_generic;
use super::wire::nvlist;
use super::{PageControl, Probe, ProbedDevice, Refusal, Reply, Request, ioctl, kernel_log, redact};
use crate::tree::DeviceNumber;

/// The running kernel and its drives.
///
/// Limitations: opening a removable SCSI disk makes the kernel check its medium and read its caching page
/// again, as any open does. So read /sys before probing the drive.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveProbe;

impl LiveProbe {
    /// Creates a probe of this machine.
    pub fn new() -> Self {
        Self
    }
}

impl Probe for LiveProbe {
    fn ask(&self, device: ProbedDevice<'_>, request: Request) -> Reply {
        match request {
            Request::KernelLog => kernel_log::about_flushes(),
            Request::DmTable => {
                let mut targets = ioctl::dm_targets(device.number, ioctl::DmAnswer::Table)?;
                redact::dm_keys(&mut targets);
                Ok(targets)
            }
            Request::DmStatus => ioctl::dm_targets(device.number, ioctl::DmAnswer::Status),
            Request::LoopStatus => ioctl::loop_status(&open(device)?),
            Request::Inquiry => scsi_generic::read(&open(device)?, &[0x12, 0, 0, 0, 96, 0], 96),
            Request::ExtendedInquiry => scsi_generic::read(&open(device)?, &[0x12, 1, 0x86, 0, 64, 0], 64),
            Request::CachingPage(control) => {
                scsi_generic::read(&open(device)?, &scsi_generic::mode_sense_caching(control), 252)
            }
            Request::AtaIdentify => scsi_generic::read(&open(device)?, &scsi_generic::ATA_IDENTIFY, 512),
            Request::NvmeIdentifyController => ioctl::nvme_identify_controller(&open(device)?),
            Request::NvmeIdentifyNamespace => ioctl::nvme_identify_namespace(&open(device)?),
            Request::NvmeHealth => ioctl::nvme_health(&open(device)?),
            Request::ZfsPool => {
                let pool = ioctl::zfs(device.name, ioctl::ZFS_IOC_POOL_STATS)?;
                nvlist::without(&pool, &NOT_OF_POOLS).ok_or(Refusal::Short)
            }
            Request::ZfsDataset => ioctl::zfs(device.name, ioctl::ZFS_IOC_OBJSET_STATS),
            Request::ZfsVolume => ioctl::zfs_volume(&open(device)?),
            Request::NvmeWriteCache(control) => ioctl::nvme_write_cache(&open(device)?, nvme_select(control)),
        }
    }
}

/// Parts of a pool's configuration that are large or identify this machine.
const NOT_OF_POOLS: [&str; 8] = [
    "vdev_stats_ex",
    "ddt_histogram",
    "ddt_object_stats",
    "ddt_stats",
    "feature_stats",
    "features_for_read",
    "hostid",
    "hostname",
];

/// Returns the SEL field of Get Features: NVMe Base 2.0, figure 187.
fn nvme_select(control: PageControl) -> u32 {
    match control {
        PageControl::Current => 0,
        PageControl::Default => 1,
        PageControl::Saved => 2,
        PageControl::Changeable => 3,
    }
}

/// Opens the node of `device` for reading without waiting for a medium, and checks its device number.
fn open(device: ProbedDevice<'_>) -> Result<File, Refusal> {
    // In /sys the kernel replaces a slash in a device name by an exclamation mark.
    let node = format!("/dev/{}", device.name.replace('!', "/"));
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(node)
        .map_err(|error| Refusal::from_io(&error))?;
    let found = file.metadata().map_err(|error| Refusal::from_io(&error))?;
    let number = DeviceNumber { major: libc::major(found.rdev()), minor: libc::minor(found.rdev()) };
    if !found.file_type().is_block_device() || number != device.number {
        return Err(Refusal::OtherDevice);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_node_is_refused() {
        let device = ProbedDevice { name: "none-such", number: DeviceNumber { major: 8, minor: 0 } };
        assert_eq!(LiveProbe.ask(device, Request::Inquiry), Err(Refusal::NoNode));
        let null = ProbedDevice { name: "null", number: DeviceNumber { major: 1, minor: 3 } };
        assert_eq!(LiveProbe.ask(null, Request::Inquiry), Err(Refusal::OtherDevice));
    }
}

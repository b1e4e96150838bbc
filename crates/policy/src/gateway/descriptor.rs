//! An open disk: its identity, read through this very descriptor, and commands to it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use plumb_block::{Errno, Nanos};
use plumb_linux::command::sense::Sense;
use plumb_linux::command::{self, AdminCommand, ScsiFailure, ScsiReply, Transfer};
use plumb_linux::probe::wire::ata_identify;
use plumb_linux::tree::{DeviceNumber, Tree};

use super::{Disk, GatewayError, NvmeCommand};
use crate::wire::{ata, designator, nvme_command};

/// Timeout of commands, which only a flush of a full cache may approach.
const TIMEOUT: Nanos = Nanos(60_000_000_000);

/// An open disk with the expected device number.
pub(super) struct Descriptor {
    file: File,
    name: String,
    number: DeviceNumber,
}

impl Descriptor {
    /// Opens the node of `disk` without waiting for a medium. Root needs no writable descriptor for any
    /// command, and closing a writable one triggers a probe by udev; other users need one for some commands.
    ///
    /// # Errors
    /// [`GatewayError::Gone`] without a node, [`GatewayError::OtherDisk`] if it belongs to another device.
    pub(super) fn open(disk: &Disk, writable: bool) -> Result<Self, GatewayError> {
        // O_NONBLOCK; the standard library adds O_CLOEXEC.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        // In /sys the kernel replaces a slash in a device name by an exclamation mark.
        let node = format!("/dev/{}", disk.name.replace('!', "/"));
        let opened = OpenOptions::new().read(true).write(writable).custom_flags(flags).open(&node);
        let file = opened.map_err(|error| os(&disk.name, format!("open {node}"), &error))?;
        let found = file.metadata().map_err(|error| os(&disk.name, format!("stat {node}"), &error))?;
        let number = DeviceNumber::from_stat(found.rdev());
        if !found.file_type().is_block_device() || number != disk.number {
            return Err(GatewayError::OtherDisk {
                name: disk.name.clone(),
                found: format!("device {number}"),
                expected: format!("device {}", disk.number),
            });
        }
        Ok(Self { file, name: disk.name.clone(), number })
    }

    /// Refuses the disk unless its own answers through this descriptor include the expected identity.
    ///
    /// # Errors
    /// [`GatewayError::OtherDisk`].
    pub(super) fn check(&self, tree: &dyn Tree, disk: &Disk) -> Result<(), GatewayError> {
        let names = self.names(tree);
        if !disk.identity.is_empty() && names.contains(&disk.identity) {
            return Ok(());
        }
        let found =
            if names.is_empty() { "a disk that does not say who it is".to_owned() } else { names.join(", ") };
        let expected = if disk.identity.is_empty() { "a disk with an identity" } else { &disk.identity };
        Err(GatewayError::OtherDisk { name: disk.name.clone(), found, expected: expected.to_owned() })
    }

    /// Returns all names that the disk reports.
    fn names(&self, tree: &dyn Tree) -> Vec<String> {
        let sysfs = format!("/sys/dev/block/{}", self.number);
        let kernel = |file: &str, prefix: &str| {
            let text = tree.text(&format!("{sysfs}/{file}")).ok().filter(|text| !text.is_empty());
            text.map(|text| format!("{prefix}{text}")).into_iter().collect()
        };
        if self.name.starts_with("dm-") {
            return kernel("dm/uuid", "dm.");
        }
        if let Ok(namespace) = command::nvme_namespace(&self.file) {
            return self.nvme_names(namespace);
        }
        let mut names = self.scsi_names();
        if names.is_empty() {
            // virtio-blk reports VIRTIO_BLK_T_GET_ID through this file, and accepts no commands.
            names = kernel("serial", "serial.");
        }
        names
    }

    fn nvme_names(&self, namespace: u32) -> Vec<String> {
        let identify = |namespace, cns| {
            self.nvme(nvme_command::identify(namespace, cns), nvme_command::IDENTIFY_BYTES)
                .unwrap_or_default()
        };
        let mut names = nvme_command::names(&identify(0, 1), &identify(namespace, 0), namespace);
        names.extend(nvme_command::uuid(&identify(namespace, 3)));
        names
    }

    fn scsi_names(&self) -> Vec<String> {
        let page = |page: u8| {
            self.scsi("INQUIRY", &[0x12, 1, page, 0, 252, 0], Transfer::FromDevice(252))
                .map(|reply| reply.bytes)
                .unwrap_or_default()
        };
        let mut names: Vec<String> =
            designator::parse(&page(0x83)).into_iter().map(|name| name.text).collect();
        names.extend(designator::serial(&page(0x80)).map(|serial| format!("serial.{serial}")));
        if names.is_empty() {
            let identify = self.scsi("IDENTIFY DEVICE", &ata::IDENTIFY, Transfer::FromDevice(512));
            let serial = identify.ok().and_then(|reply| ata_identify::parse(&reply.bytes)?.serial);
            names.extend(serial.map(|serial| format!("serial.{serial}")));
        }
        names
    }

    /// Sends a SCSI command, again after each unit attention, and evaluates the result.
    ///
    /// # Errors
    /// Fails as the device or the system does.
    pub(super) fn scsi(&self, what: &str, cdb: &[u8], data: Transfer<'_>) -> Result<ScsiReply, GatewayError> {
        let step = || format!("{what} to {}", self.name);
        command::scsi_done(&self.file, cdb, data, TIMEOUT).map_err(|failure| match failure {
            ScsiFailure::System(error) => os(&self.name, step(), &error),
            ScsiFailure::Sense(Sense { key, asc, ascq }) => {
                GatewayError::Sense { step: step(), key, asc, ascq }
            }
            ScsiFailure::Failed(errno) => GatewayError::Os { step: step(), errno },
        })
    }

    /// Sends an NVMe admin command.
    ///
    /// # Errors
    /// Fails as the controller or the system does.
    pub(super) fn nvme(&self, asked: NvmeCommand, length: usize) -> Result<Vec<u8>, GatewayError> {
        let step = || format!("NVMe admin command {:02x}h to {}", asked.opcode, self.name);
        let NvmeCommand { opcode, nsid, cdw } = asked;
        let reply = command::nvme_admin(&self.file, AdminCommand { opcode, nsid, cdw }, length, TIMEOUT)
            .map_err(|error| os(&self.name, step(), &error))?;
        match (reply.status, length) {
            (0, 0) => Ok(reply.result.to_le_bytes().to_vec()),
            (0, _) => Ok(reply.bytes),
            (status, _) => Err(GatewayError::NvmeStatus { step: step(), status }),
        }
    }

    /// Writes all dirty data and flushes the disk's cache.
    ///
    /// # Errors
    /// Fails as the device or the system does; then the durability is unknown.
    pub(super) fn flush(&self) -> Result<(), GatewayError> {
        let step = || format!("flush {}", self.name);
        rustix::fs::fsync(&self.file)
            .map_err(|errno| GatewayError::Os { step: step(), errno: Errno(errno.raw_os_error()) })?;
        if let Ok(namespace) = command::nvme_namespace(&self.file) {
            let status = command::nvme_flush(&self.file, namespace, TIMEOUT)
                .map_err(|error| os(&self.name, step(), &error))?;
            return match status {
                0 => Ok(()),
                status => Err(GatewayError::NvmeStatus { step: step(), status }),
            };
        }
        let is_scsi = self.name.starts_with("sd") || self.name.starts_with("sr");
        if is_scsi {
            self.scsi("SYNCHRONIZE CACHE", &crate::wire::mode_page::SYNCHRONIZE_CACHE, Transfer::None)?;
        }
        Ok(())
    }
}

/// Converts a system error about the disk called `name`.
pub(super) fn os(name: &str, step: String, error: &std::io::Error) -> GatewayError {
    // ENOENT, ENXIO, ENODEV: the node or the device is gone.
    match error.raw_os_error() {
        Some(2 | 6 | 19) => GatewayError::Gone { name: name.to_owned() },
        errno => GatewayError::Os { step, errno: errno.map_or(Errno::EIO, Errno) },
    }
}

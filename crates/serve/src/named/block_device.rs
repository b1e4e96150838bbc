//! Block device for the served device: a loop device, or one of the ublk driver.

use std::path::Path;
use std::sync::Arc;

use plumb_block::Device;
use plumb_state::DriveRecord;

use super::error::ServiceError;
use crate::attach::{AttachOptions, Attachment};
use crate::error::ExportError;
use crate::ublk::{Survives, UblkDevice, UblkOptions};

/// Options for an export through the kernel's ublk driver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UblkExport {
    /// Number of a block device of a killed server to take over, instead of creating a new one.
    pub recover: Option<u32>,
    /// Identity of the contents, in one line, if their durable part outlives this process. Taking over
    /// requires the same identity.
    pub contents: Option<String>,
    /// True if everything acknowledged outlives this process. Then a block device of a killed server with the
    /// same contents is taken over without being named.
    pub keeps_acknowledged: bool,
}

/// Block device through which the served device is used.
pub(super) enum BlockDevice {
    /// `/dev/loopN`.
    Loop(Attachment),
    /// `/dev/ublkbN`.
    Ublk(UblkDevice),
}

impl BlockDevice {
    /// Attaches `device` as a loop device, of a service that has its control socket in `directory`.
    pub(super) fn to_loop(
        device: Arc<dyn Device>,
        name: &str,
        directory: &Path,
    ) -> Result<Self, ServiceError> {
        let attachment = Attachment::new(device, name, &AttachOptions::default());
        let described = attachment.and_then(|attachment| {
            attachment.describe(&format!("{}\n", directory.display()))?;
            Ok(attachment)
        });
        described.map(Self::Loop).map_err(ServiceError::Attach)
    }

    /// Exports `device` through ublk.
    pub(super) fn to_ublk(
        device: Arc<dyn Device>,
        name: &str,
        ublk: UblkExport,
    ) -> Result<Self, ServiceError> {
        let survives = match ublk.contents {
            None => Survives::Nothing,
            Some(_) if ublk.keeps_acknowledged => Survives::Acknowledged,
            Some(_) => Survives::Durable,
        };
        let identity = ublk.contents.unwrap_or_default();
        let options = UblkOptions { survives, identity, ..UblkOptions::default() };
        let exported = match ublk.recover {
            Some(number) => UblkDevice::recover(device, number, &options),
            None if survives == Survives::Acknowledged => UblkDevice::resume(device, name, &options),
            None => UblkDevice::new(device, name, &options),
        };
        exported.map(Self::Ublk).map_err(ServiceError::Ublk)
    }

    pub(super) fn path(&self) -> String {
        match self {
            Self::Loop(attachment) => attachment.path(),
            Self::Ublk(device) => device.path(),
        }
        .display()
        .to_string()
    }

    /// Returns the name of the transport for requests.
    pub(super) fn transport(&self) -> &'static str {
        match self {
            Self::Loop(attachment) => attachment.transport(),
            Self::Ublk(_) => "ublk",
        }
    }

    /// Returns true if a flush to the drive has failed, or acknowledged writes were lost with an earlier
    /// server.
    pub(super) fn has_failed_flush(&self) -> bool {
        match self {
            Self::Loop(attachment) => attachment.has_failed_flush(),
            Self::Ublk(device) => device.has_failed_flush(),
        }
    }

    /// Returns true if the block device is no longer served.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Loop(_) => false,
            Self::Ublk(device) => device.has_ended(),
        }
    }

    /// Returns a warning about how the block device was created, if there is one.
    pub(super) fn warning(&self) -> Option<String> {
        match self {
            Self::Loop(attachment) => attachment.ring_refusal().map(|why| {
                format!(
                    "{}: requests come through /dev/fuse, since the kernel refused io_uring: {why}",
                    attachment.path().display()
                )
            }),
            Self::Ublk(device) => device.is_lossy().then(|| {
                format!(
                    "{}: acknowledged writes may have been lost with the cache of the killed process, so no \
                     flush will succeed; unmount it, check it, and serve it again",
                    device.path().display()
                )
            }),
        }
    }

    /// Resizes the block device to the current size of the device.
    pub(super) fn follow_size(&mut self) -> Result<(), ExportError> {
        match self {
            Self::Loop(attachment) => attachment.follow_size(),
            Self::Ublk(device) => device.follow_size(),
        }
    }

    /// Appends a line of the simulated drive to the record of the device.
    pub(super) fn describe(&self, drive: &DriveRecord) -> Result<(), ExportError> {
        match self {
            Self::Loop(attachment) => attachment.describe(&drive.line()),
            Self::Ublk(device) => device.describe(&drive.line()),
        }
    }

    /// Accepts requests again after a power loss, once all users who had it open at that time have closed it.
    /// Returns the remaining users.
    pub(super) fn readmit(&self) -> Vec<String> {
        match self {
            Self::Loop(attachment) => attachment.readmit(),
            Self::Ublk(device) => device.readmit(),
        }
    }

    /// Flushes and removes the block device unless it is in use. `is_forced` is called repeatedly meanwhile.
    pub(super) fn detach(&mut self, is_forced: &mut dyn FnMut() -> bool) -> Result<(), ServiceError> {
        let detached = match self {
            Self::Loop(attachment) => attachment.detach_forced_if(is_forced),
            Self::Ublk(device) => device.detach(),
        };
        detached.map_err(ServiceError::Detach)
    }
}

impl ServiceError {
    /// Returns true if the error is that the block device is in use.
    pub(super) const fn is_held(&self) -> bool {
        matches!(self, Self::Detach(ExportError::Held { .. }))
    }

    /// Returns true if the error is that the block device could not be flushed and still exists.
    pub(super) const fn is_unflushed(&self) -> bool {
        matches!(self, Self::Detach(ExportError::Flush { .. }))
    }

    /// Converts a refusal because of users to [`CutOff`](Self::CutOff), for a block device that was removed
    /// anyway; other errors stay as they are.
    pub(super) fn cut_off(self) -> Self {
        match self {
            Self::Detach(held @ ExportError::Held { .. }) => Self::CutOff(held),
            other => other,
        }
    }
}

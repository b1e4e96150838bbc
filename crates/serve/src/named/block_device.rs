//! The block device as which the kernel has the served device: a loop device, or one of the ublk driver.

use std::sync::Arc;

use plumb_block::Device;
use plumb_state::DriveRecord;

use super::error::ServiceError;
use crate::attach::{AttachOptions, Attachment};
use crate::error::ExportError;
use crate::ublk::{Survives, UblkDevice, UblkOptions};

/// How the device is to be exported through the kernel's ublk driver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UblkExport {
    /// Take over this block device, whose server was killed, instead of making a new one.
    pub recover: Option<u32>,
    /// Identity of the contents, in one line, if what is durable of them outlives this process. The block
    /// device is taken over only with the same identity.
    pub contents: Option<String>,
    /// True if everything acknowledged outlives this process. Then a block device that a killed server of the
    /// same contents has left is taken over without being named.
    pub keeps_acknowledged: bool,
}

/// The device as a block device.
pub(super) enum BlockDevice {
    /// `/dev/loopN`.
    Loop(Attachment),
    /// `/dev/ublkbN`.
    Ublk(UblkDevice),
}

impl BlockDevice {
    /// Attaches `device` as a loop device.
    pub(super) fn to_loop(device: Arc<dyn Device>, name: &str) -> Result<Self, ServiceError> {
        let attachment = Attachment::new(device, name, &AttachOptions::default());
        attachment.map(Self::Loop).map_err(ServiceError::Attach)
    }

    /// Through ublk.
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

    /// Returns how its requests come to this process.
    pub(super) fn transport(&self) -> &'static str {
        match self {
            Self::Loop(attachment) => attachment.transport(),
            Self::Ublk(_) => "ublk",
        }
    }

    /// Returns true if a flush has failed on the way to the drive, or acknowledged writes went with a server
    /// before this one.
    pub(super) fn has_failed_flush(&self) -> bool {
        match self {
            Self::Loop(attachment) => attachment.has_failed_flush(),
            Self::Ublk(device) => device.has_failed_flush(),
        }
    }

    /// Returns true if nobody serves it any more.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Loop(_) => false,
            Self::Ublk(device) => device.has_ended(),
        }
    }

    /// Returns the warning about how the block device came about, if there is one.
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

    /// Has it take the size that the device has now.
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

    /// Lets requests through again after a loss of power, once all have closed it who had it open then. Those
    /// who have not.
    pub(super) fn readmit(&self) -> Vec<String> {
        match self {
            Self::Loop(attachment) => attachment.readmit(),
            Self::Ublk(device) => device.readmit(),
        }
    }

    /// Flushes it and takes it away, if it is not in use. `is_forced` is asked while that takes time.
    pub(super) fn detach(&mut self, is_forced: &mut dyn FnMut() -> bool) -> Result<(), ServiceError> {
        let detached = match self {
            Self::Loop(attachment) => attachment.detach_forced_if(is_forced),
            Self::Ublk(device) => device.detach(),
        };
        detached.map_err(ServiceError::Detach)
    }
}

impl ServiceError {
    /// Returns true if somebody uses the block device.
    pub(super) const fn is_held(&self) -> bool {
        matches!(self, Self::Detach(ExportError::Held { .. }))
    }

    /// Returns true if the block device is still there because it could not be flushed.
    pub(super) const fn is_unflushed(&self) -> bool {
        matches!(self, Self::Detach(ExportError::Flush { .. }))
    }

    /// Converts a refusal because of users to [`CutOff`](Self::CutOff), for a block device that was taken
    /// away all the same; other errors stay as they are.
    pub(super) fn cut_off(self) -> Self {
        match self {
            Self::Detach(held @ ExportError::Held { .. }) => Self::CutOff(held),
            other => other,
        }
    }
}

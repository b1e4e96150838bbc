//! The block device as which the kernel has the drive: a loop device, or one of the ublk driver.

use crate::attach::{AttachError, AttachOptions, Attachment};
#[cfg(feature = "ublk")]
use crate::ublk::{Survives, UblkDevice, UblkError, UblkOptions};
use plumb_sim::Handle;
#[cfg(feature = "ublk")]
use plumb_sim::contents::Backing;

use super::error::BayError;

/// That the drive is to be exported through the kernel's ublk driver.
#[cfg(feature = "ublk")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ublk {
    /// Take over this device, whose server was killed, instead of making a new one.
    pub recover: Option<u32>,
}

/// What keeps the contents of a drive, for ublk: whether they outlive the process, and which they are.
#[cfg(feature = "ublk")]
pub(crate) fn kept(model: &str, backing: &Backing) -> UblkOptions {
    use std::os::unix::fs::MetadataExt as _;
    let Backing::File(file) = backing else { return UblkOptions::default() };
    let which = file.metadata().map(|found| format!("{}:{}", found.dev(), found.ino()));
    let identity = format!("{model} on file {}", which.unwrap_or_default());
    UblkOptions { survives: Survives::Durable, identity, ..UblkOptions::default() }
}

/// The drive as a block device.
pub(crate) enum Attached {
    /// `/dev/loopN`.
    Loop(Attachment),
    /// `/dev/ublkbN`.
    #[cfg(feature = "ublk")]
    Ublk(UblkDevice),
}

impl Attached {
    /// As a loop device.
    pub(crate) fn to_loop(handle: &Handle, name: &str) -> Result<Self, BayError> {
        let attachment = Attachment::new(handle.device(), name, &AttachOptions::default());
        attachment.map(Self::Loop).map_err(BayError::Attach)
    }

    /// Through ublk.
    #[cfg(feature = "ublk")]
    pub(crate) fn to_ublk(
        handle: &Handle,
        name: &str,
        ublk: Ublk,
        options: &UblkOptions,
    ) -> Result<Self, BayError> {
        let device = match ublk.recover {
            Some(number) => UblkDevice::recover(handle.device(), number, options),
            None => UblkDevice::new(handle.device(), name, options),
        };
        device.map(Self::Ublk).map_err(BayError::Ublk)
    }

    /// The block device.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Loop(attachment) => attachment.path(),
            #[cfg(feature = "ublk")]
            Self::Ublk(device) => device.path(),
        }
        .display()
        .to_string()
    }

    /// Whether a flush has failed on the way to the drive, or acknowledged writes went with a server before this one.
    pub(crate) fn has_failed_flush(&self) -> bool {
        match self {
            Self::Loop(attachment) => attachment.has_failed_flush(),
            #[cfg(feature = "ublk")]
            Self::Ublk(device) => device.has_failed_flush(),
        }
    }

    /// Whether nobody serves it any more.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Self::Loop(_) => false,
            #[cfg(feature = "ublk")]
            Self::Ublk(device) => device.has_ended(),
        }
    }

    /// What has to be said of how it came about.
    pub(crate) fn warning(&self) -> Option<String> {
        match self {
            Self::Loop(_) => None,
            #[cfg(feature = "ublk")]
            Self::Ublk(device) => device.is_lossy().then(|| {
                format!(
                    "{}: writes that were acknowledged may have gone with the cache of the process that was killed, so no \
                     flush will succeed; unmount it, check it, and serve it anew",
                    device.path().display()
                )
            }),
        }
    }

    /// Lets the kernel forget what it has cached of it.
    pub(crate) fn forget_cache(&self) -> std::io::Result<()> {
        match self {
            Self::Loop(attachment) => attachment.forget_cache(),
            #[cfg(feature = "ublk")]
            Self::Ublk(device) => device.forget_cache(),
        }
    }

    /// Flushes it and takes it away, if it is not in use. `is_forced` is asked while that takes time.
    pub(crate) fn detach(&mut self, is_forced: &mut dyn FnMut() -> bool) -> Result<(), BayError> {
        match self {
            Self::Loop(attachment) => attachment.detach_forced_if(is_forced).map_err(BayError::Detach),
            #[cfg(feature = "ublk")]
            Self::Ublk(device) => device.detach().map_err(BayError::UblkDetach),
        }
    }
}

impl BayError {
    /// Whether somebody uses the block device.
    pub(crate) fn is_held(&self) -> bool {
        match self {
            Self::Detach(AttachError::Held { .. }) => true,
            #[cfg(feature = "ublk")]
            Self::UblkDetach(UblkError::Held { .. }) => true,
            _ => false,
        }
    }

    /// Whether the block device is still there because it could not be flushed.
    pub(crate) fn is_unflushed(&self) -> bool {
        match self {
            Self::Detach(AttachError::Flush { .. }) => true,
            #[cfg(feature = "ublk")]
            Self::UblkDetach(UblkError::Flush { .. }) => true,
            _ => false,
        }
    }

    /// The same, when the block device was taken away all the same.
    pub(crate) fn cut_off(self) -> Self {
        match self {
            Self::Detach(held @ AttachError::Held { .. }) => Self::CutOff(held),
            #[cfg(feature = "ublk")]
            Self::UblkDetach(held @ UblkError::Held { .. }) => Self::UblkCutOff(held),
            other => other,
        }
    }
}

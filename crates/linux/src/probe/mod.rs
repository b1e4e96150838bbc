//! Facts that must be requested from the kernel or a drive: ioctls and SCSI, ATA and NVMe commands, behind
//! one trait.
//!
//! A [`Probe`] takes a device and a [`Request`] and returns the raw bytes of the answer, or a typed
//! [`Refusal`]. Pure decoders in [`wire`] parse the bytes, so that an answer can be recorded and evaluated
//! later. [`LiveProbe`] queries the machine, [`RecordedProbe`] a recording, and [`RecordingProbe`] records
//! the answers of another probe.
//!
//! All requests are read-only: nodes are opened O_RDONLY and O_NONBLOCK, and no command changes a setting,
//! moves a head or makes dm commit metadata. Keys in dm tables are overwritten before an answer leaves
//! [`LiveProbe`].

mod ioctl;
mod kernel_log;
mod live;
mod recorded;
mod recording;
mod redact;
mod refusal;
mod request;
mod scsi_generic;
pub mod wire;

pub use live::LiveProbe;
pub use recorded::RecordedProbe;
pub use recording::RecordingProbe;
pub use refusal::{ParseRefusalError, Refusal};
pub use request::{PageControl, ParseRequestError, Request};

use crate::tree::DeviceNumber;

/// Answer of a [`Probe`], or the reason why there is none.
pub type Reply = Result<Vec<u8>, Refusal>;

/// Device to query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbedDevice<'a> {
    /// Kernel name: `sda`, `dm-0`, `nvme0n1`; for ZFS the name of a pool or dataset.
    pub name: &'a str,
    /// Device number, checked on the opened node, so that another device with the same name is never queried;
    /// 0:0 if it is not a device.
    pub number: DeviceNumber,
}

/// Source of answers to ioctl requests. Nothing here writes.
pub trait Probe: Send + Sync {
    /// Returns the answer of `device` to `request`, in the format given at [`Request`].
    ///
    /// # Errors
    /// The [`Refusal`] if there is no answer.
    fn ask(&self, device: ProbedDevice<'_>, request: Request) -> Reply;
}

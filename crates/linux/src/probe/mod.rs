//! Facts that the kernel and the drives tell only when asked: ioctls and SCSI, ATA and NVMe commands, behind
//! one trait.
//!
//! A [`Probe`] takes a device and a [`Request`] and gives the raw bytes of the answer, or a typed
//! [`Refusal`]. The bytes are read by the pure decoders in [`wire`], so that an answer can be recorded and
//! judged again. [`LiveProbe`] asks the machine, [`RecordedProbe`] a recording, [`RecordingProbe`] another
//! probe while remembering.
//!
//! Every request only reads: nodes are opened O_RDONLY and O_NONBLOCK, no command changes a setting, moves a
//! head or makes dm commit metadata. Keys that dm tables contain are blotted out before an answer leaves
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

/// An answer of a [`Probe`], or why there is none.
pub type Reply = Result<Vec<u8>, Refusal>;

/// The device that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbedDevice<'a> {
    /// The kernel's name: `sda`, `dm-0`, `nvme0n1`; of a pool or data set of ZFS its own.
    pub name: &'a str,
    /// Number of the device, checked on the opened node, so that another device behind the same name is never
    /// asked; 0:0 for what is no device.
    pub number: DeviceNumber,
}

/// Questions that take an ioctl. Nothing here writes.
pub trait Probe: Send + Sync {
    /// Returns the bytes that `device` answers to `request`, in the form that [`Request`] says.
    ///
    /// # Errors
    /// The [`Refusal`] that stands in their place.
    fn ask(&self, device: ProbedDevice<'_>, request: Request) -> Reply;
}

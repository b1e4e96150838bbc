//! The machine as policy reads and changes it.
//!
//! Reading goes through the [`Tree`] and the [`Probe`] that the survey uses too, and through commands that
//! only read. Changing goes through [`Gateway::carry_out`] alone. A live gateway talks to the kernel; a mock
//! stands for a thousand disks, and for drives that no emulator has.

mod descriptor;
mod live;
pub mod recording;

use std::fmt;

use plumb_block::{Errno, Nanos};
use plumb_linux::probe::Probe;
use plumb_linux::tree::{DeviceNumber, Tree};
use serde::{Deserialize, Serialize};

pub use live::LiveGateway;

/// A disk by its name of the moment, and by what makes sure that it is still the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Disk {
    /// The kernel's name: `sda`, `nvme0n1`. May belong to another disk at any time.
    pub name: String,
    /// Number of the device now, checked on the opened descriptor.
    pub number: DeviceNumber,
    /// WWN, EUI-64, NGUID or serial, as [`crate::device`] reads it: in the form of the kernel's attribute
    /// `wwid` (`naa.5000c500a1b2c3d4`, `eui.0025385a71b0b0ed`), else `serial.` and the serial number, for
    /// device mapper `dm.` and the uuid. Checked on the opened descriptor. A disk without any is never
    /// changed; it is empty only for [`Gateway::ask`].
    pub identity: String,
}

/// A command that only reads, beyond what a [`Probe`] asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// A SCSI command (also ATA PASS-THROUGH) that brings up to so many bytes, through SG_IO.
    Scsi {
        /// The command descriptor block.
        cdb: Vec<u8>,
        /// Number of bytes that it brings at most.
        length: usize,
    },
    /// A SCSI command whose answer is its sense data: ATA PASS-THROUGH with CK_COND.
    ScsiSense {
        /// The command descriptor block.
        cdb: Vec<u8>,
        /// The data to the device: the block of an SCT command that asks; empty for none.
        data: Vec<u8>,
    },
    /// An NVMe admin command that brings up to so many bytes: Get Log Page.
    NvmeAdmin {
        /// Opcode, namespace and the command dwords 10 to 15.
        command: NvmeCommand,
        /// Number of bytes that it brings at most.
        length: usize,
    },
}

/// An NVMe admin command. NVMe Base Specification 2.0, 3.3.3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NvmeCommand {
    /// The opcode.
    pub opcode: u8,
    /// The namespace, 0 for the controller.
    pub nsid: u32,
    /// Command dwords 10 to 15.
    pub cdw: [u32; 6],
}

/// One step that changes something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// A SCSI command with data to the device: MODE SELECT, ATA PASS-THROUGH. Success with CK_COND (sense
    /// 72/01/00/1D) is success.
    Scsi {
        /// The command descriptor block.
        cdb: Vec<u8>,
        /// The data to the device; empty for none.
        data: Vec<u8>,
    },
    /// An NVMe admin command: Set Features.
    NvmeAdmin(NvmeCommand),
    /// Text written to a file of the kernel, in one write(2).
    Attribute {
        /// Absolute path of the attribute below /sys.
        path: String,
        /// Text that is written.
        text: String,
    },
    /// A text that is no setting is written to `cache_type` of a SCSI disk: the kernel answers EINVAL, which
    /// is success here, and forgets a "temporary" override. drivers/scsi/sd.c, cache_type_store.
    ClearOverride {
        /// The absolute path of `cache_type` below /sys.
        path: String,
    },
    /// Everything dirty of this disk is written, and the disk is told to empty its cache: fsync on its node,
    /// and then the command itself (SYNCHRONIZE CACHE, NVMe Flush), since the kernel may believe that there
    /// is no cache.
    Flush,
    /// The table of a device-mapper device is loaded again as it is, and the device resumed with it
    /// (DM_TABLE_LOAD, DM_DEV_SUSPEND): it then sees the caches below as they are now. The disk is the dm
    /// device itself.
    ReloadTable,
}

/// Reason why a step, or a reading, did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// The system refused or failed.
    #[error("{step}: {errno}")]
    Os {
        /// Step: what was done, to what.
        step: String,
        /// Reason why it failed.
        errno: Errno,
    },
    /// The device answered with a check condition.
    #[error("{step}: the device answered with sense {key:x}/{asc:02x}/{ascq:02x}")]
    Sense {
        /// Step: what was done, to what.
        step: String,
        /// Sense key, additional sense code and its qualifier.
        key: u8,
        /// Additional sense code.
        asc: u8,
        /// Additional sense code qualifier.
        ascq: u8,
    },
    /// The NVMe controller answered with a status other than 0.
    #[error("{step}: the controller answered with status {status:#06x}")]
    NvmeStatus {
        /// Step: what was done, to what.
        step: String,
        /// Status code type and status code, as the ioctl returns them.
        status: u16,
    },
    /// The disk of this name is not the one that was meant.
    #[error("{name} is another disk now: found {found}, expected {expected}")]
    OtherDisk {
        /// The name.
        name: String,
        /// The identity that it has now, or what is there instead.
        found: String,
        /// The identity that was meant.
        expected: String,
    },
    /// The device is gone.
    #[error("{name} is gone")]
    Gone {
        /// The name.
        name: String,
    },
}

/// The machine.
pub trait Gateway: Send + Sync {
    /// Files of the kernel.
    fn tree(&self) -> &dyn Tree;

    /// Questions by ioctl.
    fn probe(&self) -> &dyn Probe;

    /// Asks a disk something more.
    ///
    /// # Errors
    /// As the device or the system answers. Unit attentions are asked again, a few times.
    fn ask(&self, disk: &Disk, query: &Query) -> Result<Vec<u8>, GatewayError>;

    /// Changes something, on a descriptor whose identity was checked to be that of `disk`.
    ///
    /// # Errors
    /// [`GatewayError::OtherDisk`] or [`GatewayError::Gone`], with nothing changed; otherwise as the device
    /// or the system answers.
    fn carry_out(&self, disk: &Disk, change: &Change) -> Result<(), GatewayError>;

    /// Returns the time, for settling: monotonic.
    fn now(&self) -> Nanos;

    /// Waits.
    fn sleep(&self, time: Nanos);
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.identity)
    }
}

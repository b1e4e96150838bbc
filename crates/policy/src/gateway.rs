//! Interface to the machine for reading and changing policies.
//!
//! Reading uses the same [`Tree`] and [`Probe`] as the survey, and read-only commands. All changes go through
//! [`Gateway::carry_out`]. A live gateway talks to the kernel; a mock can represent a thousand disks, and
//! drives for which there is no emulator.

mod descriptor;
mod live;
pub mod recording;

use std::fmt;

use plumb_block::{Errno, Nanos};
use plumb_linux::probe::Probe;
use plumb_linux::tree::{DeviceNumber, Tree};
use serde::{Deserialize, Serialize};

pub use live::LiveGateway;

/// A disk by its present name, with an identity that proves it to be the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Disk {
    /// Kernel name: `sda`, `nvme0n1`. May be assigned to another disk at any time.
    pub name: String,
    /// Present device number, checked on the opened descriptor.
    pub number: DeviceNumber,
    /// WWN, EUI-64, NGUID or serial, as read by [`crate::device`], in the format of the kernel's attribute
    /// `wwid` (`naa.5000c500a1b2c3d4`, `eui.0025385a71b0b0ed`), else `serial.` and the serial number, or for
    /// device mapper `dm.` and the UUID. Checked on the opened descriptor. A disk without an identity is
    /// never changed; the identity may be empty only for [`Gateway::ask`].
    pub identity: String,
}

/// A read-only command in addition to those of a [`Probe`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// A SCSI command (also ATA PASS-THROUGH) through SG_IO that returns data.
    Scsi {
        /// The command descriptor block.
        cdb: Vec<u8>,
        /// Maximum number of bytes returned.
        length: usize,
    },
    /// A SCSI command that returns sense data: ATA PASS-THROUGH with CK_COND.
    ScsiSense {
        /// The command descriptor block.
        cdb: Vec<u8>,
        /// Data for the device: the block of an SCT query; empty for none.
        data: Vec<u8>,
    },
    /// An NVMe admin command that returns data: Get Log Page.
    NvmeAdmin {
        /// Opcode, namespace and the command dwords 10 to 15.
        command: NvmeCommand,
        /// Maximum number of bytes returned.
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

/// A step that changes something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// A SCSI command with data to the device: MODE SELECT, ATA PASS-THROUGH. Success with CK_COND (sense
    /// 72/01/00/1D) is success.
    Scsi {
        /// The command descriptor block.
        cdb: Vec<u8>,
        /// Data for the device; empty for none.
        data: Vec<u8>,
    },
    /// An NVMe admin command: Set Features.
    NvmeAdmin(NvmeCommand),
    /// A write to a file of the kernel, in one write(2).
    Attribute {
        /// Absolute path of the attribute below /sys.
        path: String,
        /// Text to write.
        text: String,
    },
    /// A write of an invalid value to `cache_type` of a SCSI disk: the kernel answers EINVAL, which counts as
    /// success, and drops a "temporary" override. drivers/scsi/sd.c, cache_type_store.
    ClearOverride {
        /// The absolute path of `cache_type` below /sys.
        path: String,
    },
    /// A flush of everything: fsync on the node of the disk, then the flush command itself (SYNCHRONIZE
    /// CACHE, NVMe Flush), since the kernel may assume that there is no cache.
    Flush,
    /// A reload of the unchanged table of a device-mapper device (DM_TABLE_LOAD, DM_DEV_SUSPEND), which then
    /// detects the present caches below. The disk is the dm device itself.
    ReloadTable,
}

/// Error of a step or query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// The system refused or failed.
    #[error("{step}: {errno}")]
    Os {
        /// Description of the step and its target.
        step: String,
        /// Error number.
        errno: Errno,
    },
    /// The device answered with a check condition.
    #[error("{step}: the device answered with sense {key:x}/{asc:02x}/{ascq:02x}")]
    Sense {
        /// Description of the step and its target.
        step: String,
        /// Sense key.
        key: u8,
        /// Additional sense code.
        asc: u8,
        /// Additional sense code qualifier.
        ascq: u8,
    },
    /// The NVMe controller answered with a status other than 0.
    #[error("{step}: the controller answered with status {status:#06x}")]
    NvmeStatus {
        /// Description of the step and its target.
        step: String,
        /// Status code type and status code, as the ioctl returns them.
        status: u16,
    },
    /// The name belongs to another disk.
    #[error("{name} is another disk now: found {found}, expected {expected}")]
    OtherDisk {
        /// The name.
        name: String,
        /// Present identity, or what is there instead.
        found: String,
        /// Expected identity.
        expected: String,
    },
    /// The device is gone.
    #[error("{name} is gone")]
    Gone {
        /// The name.
        name: String,
    },
}

/// Access to the machine.
pub trait Gateway: Send + Sync {
    /// Returns the files of the kernel.
    fn tree(&self) -> &dyn Tree;

    /// Returns the ioctl queries.
    fn probe(&self) -> &dyn Probe;

    /// Sends a query to a disk.
    ///
    /// # Errors
    /// Fails as the device or the system does. Unit attentions are retried a few times.
    fn ask(&self, disk: &Disk, query: &Query) -> Result<Vec<u8>, GatewayError>;

    /// Executes a change, on a descriptor whose identity was verified to be that of `disk`.
    ///
    /// # Errors
    /// [`GatewayError::OtherDisk`] or [`GatewayError::Gone`], without a change; otherwise fails as the device
    /// or the system does.
    fn carry_out(&self, disk: &Disk, change: &Change) -> Result<(), GatewayError>;

    /// Returns the monotonic time, for waits.
    fn now(&self) -> Nanos;

    /// Sleeps for `time`.
    fn sleep(&self, time: Nanos);
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.identity)
    }
}

//! An export: a device under a name.

use std::sync::Arc;

use plumb_block::{Bytes, Clock, Device, DeviceInfo};

use crate::nbd::wire::{Info, PAYLOAD_MAX_BYTES, TransmissionFlags};
use crate::served_device::{REQUEST_TIMEOUT, ServedDevice};

/// A device under a name, to be served.
#[derive(Clone)]
pub struct Export {
    /// Name for clients: at most 4096 bytes. A server's only export is also found by the empty name.
    pub name: String,
    /// Description for people; may be empty.
    pub description: String,
    /// Device behind the export. Writes, trims and zeroes are refused if it is read-only.
    pub device: Arc<dyn Device>,
}

/// Minimum advertised preferred block size: a page of the client.
const PREFERRED_MIN: Bytes = Bytes::kib(4);

/// An export being served, with the state shared by its connections.
pub(super) struct ServedExport {
    pub(super) export: Export,
    pub(super) device: Arc<ServedDevice>,
}

impl ServedExport {
    pub(super) fn new(export: Export, clock: Arc<dyn Clock>) -> Self {
        let device = Arc::new(ServedDevice::new(Arc::clone(&export.device), clock, REQUEST_TIMEOUT));
        Self { export, device }
    }

    /// Returns the flags of the export: only the device's real capabilities.
    ///
    /// FLUSH, FUA, zeroes and several connections are part of the contract of every [`Device`]: a flush
    /// covers everything completed on any queue, hence on any connection. TRIM is offered if the device
    /// discards.
    pub(super) fn flags(&self, info: &DeviceInfo, is_structured: bool) -> TransmissionFlags {
        use TransmissionFlags as Flags;
        let mut flags =
            Flags::HAS_FLAGS.with(Flags::SEND_FLUSH).with(Flags::SEND_FUA).with(Flags::CAN_MULTI_CONN);
        let mut set = |flag: Flags, is_set: bool| {
            if is_set {
                flags = flags.with(flag);
            }
        };
        set(Flags::READ_ONLY, info.is_read_only);
        set(Flags::SEND_WRITE_ZEROES, !info.is_read_only);
        set(Flags::SEND_FAST_ZERO, !info.is_read_only);
        set(Flags::SEND_TRIM, !info.is_read_only && info.discard_max > Bytes(0));
        set(Flags::ROTATIONAL, info.revolution.is_some());
        set(Flags::SEND_DF, is_structured);
        flags
    }
}

/// Returns the size and flags for the client.
pub(super) fn export_info(served: &ServedExport, info: &DeviceInfo, is_structured: bool) -> Info {
    Info::Export { size: info.size.0, flags: served.flags(info, is_structured) }
}

/// Returns the block size constraints. The minimum is the logical block, since smaller writes would need a
/// read-modify-write here, which violates the crash rules of neighbouring data.
pub(super) fn block_size_info(info: &DeviceInfo) -> Info {
    let clamped = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX).min(PAYLOAD_MAX_BYTES);
    let minimum = clamped(info.logical_block);
    let preferred = clamped(info.physical_block.max(PREFERRED_MIN)).max(minimum);
    Info::BlockSize { minimum, preferred, maximum: PAYLOAD_MAX_BYTES - PAYLOAD_MAX_BYTES % minimum.max(1) }
}

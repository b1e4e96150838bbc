//! An export: a device under a name.

use std::sync::Arc;

use plumb_block::{Bytes, Clock, Device, DeviceInfo};

use crate::nbd::wire::{Info, PAYLOAD_MAX_BYTES, TransmissionFlags};
use crate::served_device::{REQUEST_TIMEOUT, ServedDevice};

/// A device under a name, to be served.
#[derive(Clone)]
pub struct Export {
    /// The name that clients choose it by: at most 4096 bytes. The only export of a server is also found
    /// under the empty name.
    pub name: String,
    /// Description for people; may be empty.
    pub description: String,
    /// Device behind the export.
    pub device: Arc<dyn Device>,
    /// True if writes, trims and zeroes are refused.
    pub read_only: bool,
}

/// The smallest preferred block size to advertise: a page of the client.
const PREFERRED_MIN: Bytes = Bytes::kib(4);

/// An export being served, with what all of its connections share.
pub(super) struct ServedExport {
    pub(super) export: Export,
    pub(super) device: Arc<ServedDevice>,
}

impl ServedExport {
    pub(super) fn new(export: Export, clock: Arc<dyn Clock>) -> Self {
        let device = Arc::new(ServedDevice::new(Arc::clone(&export.device), clock, REQUEST_TIMEOUT));
        Self { export, device }
    }

    /// Returns the flags of the export: only what the device really does.
    ///
    /// FLUSH, FUA, zeroes and several connections are part of the contract of every [`Device`]: a flush
    /// covers what completed on any queue, so on any connection. TRIM is offered where the device discards.
    pub(super) fn flags(&self, info: &DeviceInfo, is_structured: bool) -> TransmissionFlags {
        use TransmissionFlags as Flags;
        let mut flags =
            Flags::HAS_FLAGS.with(Flags::SEND_FLUSH).with(Flags::SEND_FUA).with(Flags::CAN_MULTI_CONN);
        let mut set = |flag: Flags, is_set: bool| {
            if is_set {
                flags = flags.with(flag);
            }
        };
        set(Flags::READ_ONLY, self.export.read_only);
        set(Flags::SEND_WRITE_ZEROES, !self.export.read_only);
        set(Flags::SEND_FAST_ZERO, !self.export.read_only);
        set(Flags::SEND_TRIM, !self.export.read_only && info.discard_max > Bytes(0));
        set(Flags::ROTATIONAL, info.revolution.is_some());
        set(Flags::SEND_DF, is_structured);
        flags
    }
}

/// Returns the size and the flags.
pub(super) fn export_info(served: &ServedExport, info: &DeviceInfo, is_structured: bool) -> Info {
    Info::Export { size: info.size.0, flags: served.flags(info, is_structured) }
}

/// Returns the block size constraints: the minimum is the logical block, for a smaller one would be read,
/// changed and written here, which breaks the crash rules of its neighbours.
pub(super) fn block_size_info(info: &DeviceInfo) -> Info {
    let clamped = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX).min(PAYLOAD_MAX_BYTES);
    let minimum = clamped(info.logical_block);
    let preferred = clamped(info.physical_block.max(PREFERRED_MIN)).max(minimum);
    Info::BlockSize { minimum, preferred, maximum: PAYLOAD_MAX_BYTES - PAYLOAD_MAX_BYTES % minimum.max(1) }
}

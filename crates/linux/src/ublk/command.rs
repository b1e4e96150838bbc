//! Commands of ublk as bytes of a submission entry (include/uapi/linux/ublk_cmd.h).
//!
//! ```text
//! struct ublksrv_ctrl_cmd  0 dev_id u32 | 4 queue_id u16, all ones | 6 len u16 | 8 addr u64 | 16 data u64
//!                          24 dev_path_len u16 | 26 pad u16 | 28 reserved u32
//! struct ublksrv_io_cmd    0 q_id u16 | 2 tag u16 | 4 result i32 | 8 addr u64
//! ```
//! Each operation has a plain number (Linux 6.0) and an ioctl number (Linux 6.4); a kernel may be built with
//! support for only the latter. The direction bits are the same on all architectures except alpha, mips,
//! powerpc and sparc.

/// Size of `struct ublksrv_ctrl_cmd` in bytes.
const CONTROL_BYTES: u32 = 32;
/// Size of `struct ublksrv_io_cmd` in bytes.
const IO_BYTES: u32 = 16;
const FETCH_REQ: u32 = 0x20;
const COMMIT_AND_FETCH_REQ: u32 = 0x21;

/// `_IOC_READ`, and the combination with `_IOC_WRITE`.
const READ: u32 = 2;
const BOTH: u32 = 3;

/// Operation of the control device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlOp {
    /// `UBLK_CMD_GET_DEV_INFO`: fills the buffer, 64 bytes.
    GetInfo,
    /// `UBLK_CMD_ADD_DEV`: reads and fills the buffer, 64 bytes.
    AddDevice,
    /// `UBLK_CMD_DEL_DEV`: waits until all users have closed the device.
    DeleteDevice,
    /// `UBLK_CMD_START_DEV`: waits until all queues fetch; the argument is the server's process number.
    StartDevice,
    /// `UBLK_CMD_STOP_DEV`: removes the block device.
    StopDevice,
    /// `UBLK_CMD_SET_PARAMS`: reads the buffer.
    SetParameters,
    /// `UBLK_CMD_GET_PARAMS`: fills the buffer, whose first u32 is its length.
    GetParameters,
    /// `UBLK_CMD_START_USER_RECOVERY`: EBUSY until the old server is completely gone.
    StartRecovery,
    /// `UBLK_CMD_END_USER_RECOVERY`: waits until all queues fetch; the argument is the new server's process
    /// number.
    EndRecovery,
    /// `UBLK_U_CMD_GET_FEATURES` (Linux 6.5): fills the buffer, 8 bytes.
    GetFeatures,
    /// `UBLK_U_CMD_UPDATE_SIZE` (Linux 6.16): the argument is the new size in units of 512 bytes.
    UpdateSize,
}

/// Numbering of the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbering {
    /// Numbers in the form of ioctls.
    Ioctl,
    /// Plain numbers.
    Plain,
}

impl ControlOp {
    pub(super) const fn number(self, numbering: Numbering) -> u32 {
        let (number, direction) = match self {
            Self::GetInfo => (0x02, READ),
            Self::AddDevice => (0x04, BOTH),
            Self::DeleteDevice => (0x05, BOTH),
            Self::StartDevice => (0x06, BOTH),
            Self::StopDevice => (0x07, BOTH),
            Self::SetParameters => (0x08, BOTH),
            Self::GetParameters => (0x09, READ),
            Self::StartRecovery => (0x10, BOTH),
            Self::EndRecovery => (0x11, BOTH),
            Self::GetFeatures => (0x13, READ),
            Self::UpdateSize => (0x15, BOTH),
        };
        numbering.number(number, direction, CONTROL_BYTES)
    }
}

impl Numbering {
    const fn number(self, number: u32, direction: u32, bytes: u32) -> u32 {
        match self {
            Self::Ioctl => direction << 30 | bytes << 16 | (b'u' as u32) << 8 | number,
            Self::Plain => number,
        }
    }

    pub(super) const fn fetch(self) -> u32 {
        self.number(FETCH_REQ, BOTH, IO_BYTES)
    }

    pub(super) const fn commit_and_fetch(self) -> u32 {
        self.number(COMMIT_AND_FETCH_REQ, BOTH, IO_BYTES)
    }
}

/// Returns a command for a whole device, as the 80 command bytes of a 128-byte entry.
pub(super) fn control(device: u32, address: u64, length: u16, argument: u64) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[0..4].copy_from_slice(&device.to_ne_bytes());
    bytes[4..6].copy_from_slice(&u16::MAX.to_ne_bytes());
    bytes[6..8].copy_from_slice(&length.to_ne_bytes());
    bytes[8..16].copy_from_slice(&address.to_ne_bytes());
    bytes[16..24].copy_from_slice(&argument.to_ne_bytes());
    bytes
}

/// Returns a command for one tag of a queue.
pub(super) fn io(queue: u16, tag: u16, result: i32, address: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[0..2].copy_from_slice(&queue.to_ne_bytes());
    bytes[2..4].copy_from_slice(&tag.to_ne_bytes());
    bytes[4..8].copy_from_slice(&result.to_ne_bytes());
    bytes[8..16].copy_from_slice(&address.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects the numbers that the macros of the header give.
    #[test]
    fn operations_have_the_numbers_of_the_header() {
        for (op, plain, ioctl) in [
            (ControlOp::GetInfo, 0x02, 0x8020_7502),
            (ControlOp::AddDevice, 0x04, 0xC020_7504),
            (ControlOp::DeleteDevice, 0x05, 0xC020_7505),
            (ControlOp::StartDevice, 0x06, 0xC020_7506),
            (ControlOp::StopDevice, 0x07, 0xC020_7507),
            (ControlOp::SetParameters, 0x08, 0xC020_7508),
            (ControlOp::GetParameters, 0x09, 0x8020_7509),
            (ControlOp::StartRecovery, 0x10, 0xC020_7510),
            (ControlOp::EndRecovery, 0x11, 0xC020_7511),
            (ControlOp::GetFeatures, 0x13, 0x8020_7513),
            (ControlOp::UpdateSize, 0x15, 0xC020_7515),
        ] {
            assert_eq!(op.number(Numbering::Plain), plain, "{op:?}");
            assert_eq!(op.number(Numbering::Ioctl), ioctl, "{op:?}");
        }
        assert_eq!(Numbering::Plain.fetch(), 0x20);
        assert_eq!(Numbering::Ioctl.fetch(), 0xC010_7520);
        assert_eq!(Numbering::Plain.commit_and_fetch(), 0x21);
        assert_eq!(Numbering::Ioctl.commit_and_fetch(), 0xC010_7521);
    }

    #[test]
    fn commands_lie_as_in_the_header() {
        let bytes = control(3, 0x1122_3344_5566_7788, 64, 4242);
        assert_eq!(bytes[..4], 3_u32.to_ne_bytes());
        assert_eq!(bytes[4..6], [0xFF, 0xFF], "queue_id must be -1");
        assert_eq!(bytes[6..8], 64_u16.to_ne_bytes());
        assert_eq!(bytes[8..16], 0x1122_3344_5566_7788_u64.to_ne_bytes());
        assert_eq!(bytes[16..24], 4242_u64.to_ne_bytes());
        assert!(bytes[24..].iter().all(|byte| *byte == 0));
        let bytes = io(1, 7, -5, 0x1000);
        assert_eq!(bytes[..4], [1_u16.to_ne_bytes(), 7_u16.to_ne_bytes()].concat()[..]);
        assert_eq!(bytes[4..8], (-5_i32).to_ne_bytes());
        assert_eq!(bytes[8..], 0x1000_u64.to_ne_bytes());
    }
}

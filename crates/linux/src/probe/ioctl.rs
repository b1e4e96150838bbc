//! The ioctls of dm, loop and NVMe that read.
#![expect(unsafe_code, reason = "ioctl(2) takes a pointer whose meaning depends on the request")]

use std::fs::File;
use std::os::fd::AsRawFd;

use plumb_block::Nanos;

use super::{Refusal, Reply};
use crate::command::{self, AdminCommand, AdminReply};
use crate::tree::DeviceNumber;

/// `_IOWR(0xfd, 12, struct dm_ioctl)`: linux/dm-ioctl.h.
const DM_TABLE_STATUS: u32 = 0xc138_fd0c;
/// linux/loop.h.
const LOOP_GET_STATUS64: u32 = 0x4c05;

/// Which form of DM_TABLE_STATUS is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DmAnswer {
    /// The parameters that the targets were loaded with.
    Table,
    /// Their state. Asked so that thin pools do not commit their metadata for it.
    Status,
}

/// Offsets in `struct dm_ioctl`, 312 bytes: linux/dm-ioctl.h.
mod dm {
    pub(super) const HEADER_BYTES: usize = 312;
    pub(super) const VERSION: usize = 0;
    pub(super) const DATA_SIZE: usize = 12;
    pub(super) const DATA_START: usize = 16;
    pub(super) const FLAGS: usize = 28;
    pub(super) const DEV: usize = 40;
    pub(super) const STATUS_TABLE: u32 = 1 << 4;
    pub(super) const BUFFER_FULL: u32 = 1 << 8;
    pub(super) const NOFLUSH: u32 = 1 << 11;
    pub(super) const SECURE_DATA: u32 = 1 << 15;
}

/// The `dm_target_spec`s of the active table, each followed by its text: what `wire::dm` reads.
///
/// # Errors
/// [`Refusal::Denied`] without CAP_SYS_ADMIN; others as the kernel gives them.
pub(super) fn dm_targets(number: DeviceNumber, answer: DmAnswer) -> Reply {
    const SIZES: [usize; 4] = [16 << 10, 128 << 10, 1 << 20, 8 << 20];
    let control = File::open("/dev/mapper/control").map_err(|error| Refusal::from_io(&error))?;
    for size in SIZES {
        let mut buffer = dm_request(number, answer, size);
        // SAFETY: the buffer starts with a struct dm_ioctl whose data_size is the whole buffer's length; the kernel
        // reads and writes within that. A Vec<u8> of this size is more than 8-byte aligned by the allocator, and the
        // kernel copies it as bytes in any case.
        let returned =
            unsafe { libc::ioctl(control.as_raw_fd(), DM_TABLE_STATUS as libc::Ioctl, buffer.as_mut_ptr()) };
        if returned < 0 {
            return Err(Refusal::from_io(&std::io::Error::last_os_error()));
        }
        if word(&buffer, dm::FLAGS) & dm::BUFFER_FULL == 0 {
            let start = word(&buffer, dm::DATA_START) as usize;
            let end = (word(&buffer, dm::DATA_SIZE) as usize).min(buffer.len());
            return buffer.get(start..end).map(<[u8]>::to_vec).ok_or(Refusal::Short);
        }
    }
    Err(Refusal::Short)
}

fn dm_request(number: DeviceNumber, answer: DmAnswer, size: usize) -> Vec<u8> {
    let mut buffer = vec![0_u8; size];
    let mut put = |at: usize, value: u32| buffer[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    put(dm::VERSION, 4);
    put(dm::DATA_SIZE, size as u32);
    put(dm::DATA_START, dm::HEADER_BYTES as u32);
    put(
        dm::FLAGS,
        match answer {
            DmAnswer::Table => dm::STATUS_TABLE | dm::NOFLUSH | dm::SECURE_DATA,
            DmAnswer::Status => dm::NOFLUSH,
        },
    );
    buffer[dm::DEV..dm::DEV + 8].copy_from_slice(&number.to_huge().to_ne_bytes());
    buffer
}

fn word(buffer: &[u8], at: usize) -> u32 {
    buffer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// `struct loop_info64`, 232 bytes: what `wire::loop_status` reads.
///
/// # Errors
/// The [`Refusal`] of the kernel: [`Refusal::NoNode`] for a loop device without a file.
pub(super) fn loop_status(device: &File) -> Reply {
    let mut info = vec![0_u8; 232];
    // SAFETY: the kernel writes one struct loop_info64, which is 232 bytes on every architecture.
    let returned =
        unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as libc::Ioctl, info.as_mut_ptr()) };
    if returned < 0 {
        return Err(Refusal::from_io(&std::io::Error::last_os_error()));
    }
    // The encryption key of old kernels is nobody's business.
    info[184..216].fill(0);
    Ok(info)
}

/// Identify Controller, 4096 bytes: NVMe Base 2.0 5.17.2.1.
///
/// # Errors
/// The [`Refusal`] of the kernel or the controller.
pub(super) fn nvme_identify_controller(device: &File) -> Reply {
    let command = AdminCommand { opcode: 0x06, nsid: 0, cdw: [1, 0, 0, 0, 0, 0] };
    nvme_admin(device, command, 4096).map(|reply| reply.bytes)
}

/// The result dword of Get Features 06h (volatile write cache): NVMe Base 2.0 5.15, 5.27.1.4. The namespace is 0: the
/// feature belongs to the controller.
///
/// # Errors
/// The [`Refusal`] of the kernel or the controller.
pub(super) fn nvme_write_cache(device: &File, select: u32) -> Reply {
    let command = AdminCommand { opcode: 0x0a, nsid: 0, cdw: [0x06 | select << 8, 0, 0, 0, 0, 0] };
    nvme_admin(device, command, 0).map(|reply| reply.result.to_le_bytes().to_vec())
}

fn nvme_admin(device: &File, command: AdminCommand, length: usize) -> Result<AdminReply, Refusal> {
    const TIMEOUT: Nanos = Nanos(5_000_000_000);
    let reply =
        command::nvme_admin(device, command, length, TIMEOUT).map_err(|error| Refusal::from_io(&error))?;
    match reply.status {
        0 => Ok(reply),
        status => Err(Refusal::NvmeStatus(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dm_request_says_what_it_is() {
        let request = dm_request(DeviceNumber { major: 253, minor: 0x123 }, DmAnswer::Status, 1024);
        assert_eq!(word(&request, dm::DATA_SIZE), 1024);
        assert_eq!(word(&request, dm::FLAGS), dm::NOFLUSH);
        assert_eq!(word(&request, dm::DEV), 0x23 | 253 << 8 | 0x100 << 12);
    }
}

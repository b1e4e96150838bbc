//! The ioctls of dm, loop and NVMe that read.
#![expect(unsafe_code, reason = "ioctl(2) takes a pointer whose meaning depends on the request")]

use std::fs::File;
use std::os::fd::AsRawFd;

use plumb_block::Nanos;

use super::{Refusal, Reply};
use crate::command::{self, AdminCommand, AdminReply};
use crate::dm_ioctl;
use crate::tree::DeviceNumber;

/// linux/loop.h.
const LOOP_GET_STATUS64: u32 = 0x4c05;
/// linux/nvme_ioctl.h.
const NVME_IOCTL_ID: u32 = 0x4e40;

/// Form of DM_TABLE_STATUS that is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DmAnswer {
    /// The parameters that the targets were loaded with.
    Table,
    /// Their state. Asked so that thin pools do not commit their metadata for it.
    Status,
}

/// Returns the `dm_target_spec`s of the active table, each followed by its text: what `wire::dm` reads.
///
/// # Errors
/// [`Refusal::Denied`] without CAP_SYS_ADMIN; others as the kernel gives them.
pub(super) fn dm_targets(number: DeviceNumber, answer: DmAnswer) -> Reply {
    let flags = match answer {
        DmAnswer::Table => dm_ioctl::STATUS_TABLE | dm_ioctl::NOFLUSH | dm_ioctl::SECURE_DATA,
        DmAnswer::Status => dm_ioctl::NOFLUSH,
    };
    let answered = File::open(dm_ioctl::CONTROL)
        .and_then(|control| dm_ioctl::table_status(&control, number, flags))
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ENOBUFS) => Refusal::Short,
            _ => Refusal::from_io(&error),
        })?;
    dm_ioctl::targets(&answered).map(<[u8]>::to_vec).ok_or(Refusal::Short)
}

/// Returns `struct loop_info64`, 232 bytes: what `wire::loop_status` reads.
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

/// Asks for Identify Controller, 4096 bytes: NVMe Base 2.0 5.17.2.1.
///
/// # Errors
/// The [`Refusal`] of the kernel or the controller.
pub(super) fn nvme_identify_controller(device: &File) -> Reply {
    let command = AdminCommand { opcode: 0x06, nsid: 0, cdw: [1, 0, 0, 0, 0, 0] };
    nvme_admin(device, command, 4096).map(|reply| reply.bytes)
}

/// Asks for Identify Namespace of the namespace that `device` is, 4096 bytes: NVMe Base 2.0 5.17.2, CNS 00h.
///
/// # Errors
/// The [`Refusal`] of the kernel or the controller.
pub(super) fn nvme_identify_namespace(device: &File) -> Reply {
    // SAFETY: the request takes no argument and returns the number of the namespace.
    let namespace = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ID as libc::Ioctl) };
    if namespace < 0 {
        return Err(Refusal::from_io(&std::io::Error::last_os_error()));
    }
    let command = AdminCommand { opcode: 0x06, nsid: namespace.cast_unsigned(), cdw: [0, 0, 0, 0, 0, 0] };
    nvme_admin(device, command, 4096).map(|reply| reply.bytes)
}

/// Returns the result dword of Get Features 06h (volatile write cache): NVMe Base 2.0 5.15, 5.27.1.4. The
/// namespace is 0: the feature belongs to the controller.
///
/// # Errors
/// The [`Refusal`] of the kernel or the controller.
pub(super) fn nvme_write_cache(device: &File, select: u32) -> Reply {
    let command = AdminCommand { opcode: 0x0a, nsid: 0, cdw: [0x06 | select << 8, 0, 0, 0, 0, 0] };
    nvme_admin(device, command, 0).map(|reply| reply.result.to_le_bytes().to_vec())
}

/// Asks for Get Log Page 02h (SMART / Health Information) of the controller, 512 bytes: NVMe Base 2.0
/// 5.16.1.3. The low half of the number of dwords, one less, is in the high half of CDW10.
///
/// # Errors
/// The [`Refusal`] of the kernel or the controller.
pub(super) fn nvme_health(device: &File) -> Reply {
    let command = AdminCommand { opcode: 0x02, nsid: u32::MAX, cdw: [0x02 | 127 << 16, 0, 0, 0, 0, 0] };
    nvme_admin(device, command, 512).map(|reply| reply.bytes)
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

//! Read-only ioctls of dm, loop, NVMe and ZFS.
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

/// include/sys/fs/zfs.h of OpenZFS.
pub(super) const ZFS_IOC_POOL_STATS: u32 = 0x5a05;
pub(super) const ZFS_IOC_OBJSET_STATS: u32 = 0x5a12;
/// `_IOR(0x12, 125, char[256])` in include/sys/fs/zfs.h of OpenZFS.
const BLKZNAME: u32 = 0x8100_127d;
/// Upper bound of the size of `zfs_cmd_t` in all versions (include/sys/zfs_ioctl.h, 13.5 KiB in 2.3).
const ZFS_COMMAND_BYTES: usize = 64 << 10;
/// Upper bound of the configuration of a pool with a thousand disks.
const ZFS_ANSWER_BYTES: usize = 4 << 20;

/// Kind of information requested from DM_TABLE_STATUS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DmAnswer {
    /// Parameters that the targets were loaded with.
    Table,
    /// State of the targets, requested in a way that does not make thin pools commit their metadata.
    Status,
}

/// Returns the `dm_target_spec`s of the active table, each followed by its text, in the format of `wire::dm`.
///
/// # Errors
/// [`Refusal::Denied`] without CAP_SYS_ADMIN, or another refusal of the kernel.
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

/// Returns `struct loop_info64`, 232 bytes, in the format of `wire::loop_status`.
///
/// # Errors
/// The [`Refusal`] of the kernel: [`Refusal::NoNode`] for an unbound loop device.
pub(super) fn loop_status(device: &File) -> Reply {
    let mut info = vec![0_u8; 232];
    // SAFETY: the kernel writes one struct loop_info64, which is 232 bytes on every architecture.
    let returned =
        unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as libc::Ioctl, info.as_mut_ptr()) };
    if returned < 0 {
        return Err(Refusal::from_io(&std::io::Error::last_os_error()));
    }
    // Erase the encryption key that old kernels return.
    info[184..216].fill(0);
    Ok(info)
}

/// Returns the packed list of the ZFS driver for the pool or dataset `name`, in the format of `wire::nvlist`.
/// In `zfs_cmd_t` the name is at offset 0, the answer's address at 4112, its size at 4120.
///
/// # Errors
/// The [`Refusal`] of the kernel.
pub(super) fn zfs(name: &str, request: u32) -> Reply {
    let control = File::open("/dev/zfs").map_err(|error| Refusal::from_io(&error))?;
    let mut answer = vec![0_u8; ZFS_ANSWER_BYTES];
    let mut command = vec![0_u8; ZFS_COMMAND_BYTES];
    // ZFS_MAX_DATASET_NAME_LEN.
    if name.len() >= 256 {
        return Err(Refusal::NoNode);
    }
    command[..name.len()].copy_from_slice(name.as_bytes());
    command[4112..4120].copy_from_slice(&(answer.as_mut_ptr() as u64).to_ne_bytes());
    command[4120..4128].copy_from_slice(&(ZFS_ANSWER_BYTES as u64).to_ne_bytes());
    // SAFETY: the driver reads and writes one zfs_cmd_t, which is smaller than `command`, and writes to
    // `answer` no more than the size that the command gives.
    let returned = unsafe { libc::ioctl(control.as_raw_fd(), request as libc::Ioctl, command.as_mut_ptr()) };
    if returned < 0 {
        return Err(Refusal::from_io(&std::io::Error::last_os_error()));
    }
    let size = command[4120..4128].try_into().map_or(0, u64::from_ne_bytes);
    answer.truncate(usize::try_from(size).unwrap_or(0));
    Ok(answer)
}

/// Returns the ZFS volume name of `device`, 256 bytes padded with zeroes.
///
/// # Errors
/// The [`Refusal`] of the kernel, also for a device of another kind.
pub(super) fn zfs_volume(device: &File) -> Reply {
    let mut name = vec![0_u8; 256];
    // SAFETY: the kernel writes at most the 256 bytes that the request's number says.
    let returned = unsafe { libc::ioctl(device.as_raw_fd(), BLKZNAME as libc::Ioctl, name.as_mut_ptr()) };
    if returned < 0 {
        return Err(Refusal::from_io(&std::io::Error::last_os_error()));
    }
    Ok(name)
}

/// Requests Identify Controller, 4096 bytes: NVMe Base 2.0 5.17.2.1.
///
/// # Errors
/// The [`Refusal`] of the kernel or the controller.
pub(super) fn nvme_identify_controller(device: &File) -> Reply {
    let command = AdminCommand { opcode: 0x06, nsid: 0, cdw: [1, 0, 0, 0, 0, 0] };
    nvme_admin(device, command, 4096).map(|reply| reply.bytes)
}

/// Requests Identify Namespace for the namespace of `device`, 4096 bytes: NVMe Base 2.0 5.17.2, CNS 00h.
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
/// namespace is 0, since the feature belongs to the controller.
///
/// # Errors
/// The [`Refusal`] of the kernel or the controller.
pub(super) fn nvme_write_cache(device: &File, select: u32) -> Reply {
    let command = AdminCommand { opcode: 0x0a, nsid: 0, cdw: [0x06 | select << 8, 0, 0, 0, 0, 0] };
    nvme_admin(device, command, 0).map(|reply| reply.result.to_le_bytes().to_vec())
}

/// Requests Get Log Page 02h (SMART / Health Information) of the controller, 512 bytes: NVMe Base 2.0
/// 5.16.1.3. The high half of CDW10 has the low half of the number of dwords, minus one.
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

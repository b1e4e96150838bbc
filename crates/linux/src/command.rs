//! Commands to drives and to device mapper, including those that change something: SG_IO with data in either
//! direction, NVMe admin commands, and reloading a dm table. Sources: scsi/sg.h, linux/nvme_ioctl.h,
//! linux/dm-ioctl.h.
//!
//! Nothing here decides: the caller is responsible for which command goes to which disk. Read-only commands
//! go through [`probe`](crate::probe), which uses the same calls.
#![expect(unsafe_code, reason = "ioctl(2) takes a pointer whose meaning depends on the request")]

pub mod sense;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use plumb_block::{Errno, Nanos};

use sense::Sense;

/// Maximum number of unit attentions in a row. A device reports one for each reason; more indicate a fault.
const ATTENTIONS_MAX: usize = 4;
/// Status of a reply that has sense data.
const CHECK_CONDITION: u8 = 2;
const SG_IO: libc::Ioctl = 0x2285;
const SG_DXFER_NONE: i32 = -1;
const SG_DXFER_TO_DEV: i32 = -2;
const SG_DXFER_FROM_DEV: i32 = -3;
/// `_IO('N', 0x40)`, `_IOWR('N', 0x41, struct nvme_admin_cmd)`, `_IO('N', 0x46)`.
const NVME_IOCTL_ID: libc::Ioctl = 0x4e40;
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xc048_4e41_u32 as libc::Ioctl;

/// Data transfer of a SCSI command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer<'a> {
    /// The command transfers no data.
    None,
    /// At most this many bytes from the device.
    FromDevice(usize),
    /// Bytes to send to the device.
    ToDevice(&'a [u8]),
}

/// Reply to a SCSI command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScsiReply {
    /// SCSI status: 0 is GOOD, 2 CHECK CONDITION. SAM-5 5.3.1.
    pub status: u8,
    /// Transport error on the way to the device; 0 is none.
    pub host_status: u16,
    /// Sense data, truncated to what the device returned.
    pub sense: Vec<u8>,
    /// Bytes that came from the device.
    pub bytes: Vec<u8>,
}

/// Reason why a SCSI command did not succeed.
#[derive(Debug)]
pub enum ScsiFailure {
    /// The command was not sent, or its result is unknown.
    System(io::Error),
    /// The device reported this sense data.
    Sense(Sense),
    /// The command failed on the way to the device (EIO), or the device accepts none now (EBUSY): BUSY,
    /// RESERVATION CONFLICT, TASK SET FULL.
    Failed(Errno),
}

/// `struct sg_io_hdr`, 88 bytes on 64-bit machines.
#[repr(C)]
struct Header {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut u8,
    cmdp: *const u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: *mut u8,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration: u32,
    info: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Header>() == 88);

/// Sends `cdb` and waits for its completion. A check condition is a reply, not an error.
///
/// # Errors
/// The error of ioctl(2): the command was not sent, or its result is unknown.
pub fn scsi(device: &File, cdb: &[u8], transfer: Transfer<'_>, timeout: Nanos) -> io::Result<ScsiReply> {
    // Data to the device is copied, because the kernel receives a pointer through which it may write.
    let (direction, mut data) = match transfer {
        Transfer::None => (SG_DXFER_NONE, Vec::new()),
        Transfer::FromDevice(length) => (SG_DXFER_FROM_DEV, vec![0_u8; length]),
        Transfer::ToDevice(bytes) => (SG_DXFER_TO_DEV, bytes.to_vec()),
    };
    let (Ok(cmd_len), Ok(dxfer_len)) = (u8::try_from(cdb.len()), u32::try_from(data.len())) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    let mut sense = [0_u8; 64];
    let mut header = Header {
        interface_id: i32::from(b'S'),
        dxfer_direction: direction,
        cmd_len,
        mx_sb_len: sense.len() as u8,
        iovec_count: 0,
        dxfer_len,
        dxferp: if data.is_empty() { std::ptr::null_mut() } else { data.as_mut_ptr() },
        cmdp: cdb.as_ptr(),
        sbp: sense.as_mut_ptr(),
        timeout: milliseconds(timeout),
        flags: 0,
        pack_id: 0,
        usr_ptr: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        msg_status: 0,
        sb_len_wr: 0,
        host_status: 0,
        driver_status: 0,
        resid: 0,
        duration: 0,
        info: 0,
    };
    // SAFETY: the descriptor is open, the header has the layout of struct sg_io_hdr, and its three pointers
    // point to `data`, `cdb` and `sense`, which outlive the call and are as long as the header says.
    let returned = unsafe { libc::ioctl(device.as_raw_fd(), SG_IO, &raw mut header) };
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    if matches!(transfer, Transfer::FromDevice(_)) {
        data.truncate(data.len().saturating_sub(usize::try_from(header.resid).unwrap_or(0)));
    } else {
        data.clear();
    }
    Ok(ScsiReply {
        status: header.status & 0x3e,
        host_status: header.host_status,
        sense: sense.get(..usize::from(header.sb_len_wr)).unwrap_or(&[]).to_vec(),
        bytes: data,
    })
}

/// Sends `cdb`, again after each unit attention, and evaluates the result. A recovered error counts as
/// success, except for ATA PASS-THROUGH, which returns its registers this way.
///
/// # Errors
/// Fails as the device or the system does.
pub fn scsi_done(
    device: &File,
    cdb: &[u8],
    transfer: Transfer<'_>,
    timeout: Nanos,
) -> Result<ScsiReply, ScsiFailure> {
    for attempt in 1.. {
        let reply = scsi(device, cdb, transfer, timeout).map_err(ScsiFailure::System)?;
        match (reply.status, sense::parse(&reply.sense)) {
            (0, _) if reply.host_status == 0 => return Ok(reply),
            (CHECK_CONDITION, Some(found)) if found.is_unit_attention() && attempt < ATTENTIONS_MAX => {}
            (CHECK_CONDITION, Some(found)) => {
                let failed = sense::ata_status(&reply.sense).is_some_and(|status| !status.is_success());
                let is_done = found.is_recovered() && !failed;
                return if is_done { Ok(reply) } else { Err(ScsiFailure::Sense(found)) };
            }
            (0 | CHECK_CONDITION, _) => return Err(ScsiFailure::Failed(Errno::EIO)),
            _ => break,
        }
    }
    Err(ScsiFailure::Failed(Errno(libc::EBUSY)))
}

fn milliseconds(time: Nanos) -> u32 {
    u32::try_from(time.0 / 1_000_000).unwrap_or(u32::MAX)
}

/// `struct nvme_admin_cmd`, 72 bytes: linux/nvme_ioctl.h.
#[derive(Default)]
#[repr(C)]
struct NvmeAdmin {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<NvmeAdmin>() == 72);

/// An NVMe admin command that sends no data to the controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdminCommand {
    /// Opcode. Bits 1:0 give the direction of the data; commands that send data to the controller are
    /// refused.
    pub opcode: u8,
    /// Namespace, 0 for the controller.
    pub nsid: u32,
    /// Command dwords 10 to 15.
    pub cdw: [u32; 6],
}

/// Reply to an NVMe admin command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminReply {
    /// Status field without the phase bit; 0 is success.
    pub status: u16,
    /// Dword 0 of the completion.
    pub result: u32,
    /// Bytes that came from the controller.
    pub bytes: Vec<u8>,
}

/// Sends an admin command that returns up to `length` bytes, and waits for its completion.
///
/// # Errors
/// The error of ioctl(2); EINVAL for an opcode that takes data to the controller.
pub fn nvme_admin(
    device: &File,
    command: AdminCommand,
    length: usize,
    timeout: Nanos,
) -> io::Result<AdminReply> {
    // Set Features has an opcode of direction "to the controller", but transfers no data for the features
    // that plumb sets.
    if command.opcode & 0b11 == 0b01 && length > 0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut bytes = vec![0_u8; length];
    let [cdw10, cdw11, cdw12, cdw13, cdw14, cdw15] = command.cdw;
    let mut request = NvmeAdmin {
        opcode: command.opcode,
        nsid: command.nsid,
        addr: if bytes.is_empty() { 0 } else { bytes.as_mut_ptr() as u64 },
        data_len: u32::try_from(length).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?,
        cdw10,
        cdw11,
        cdw12,
        cdw13,
        cdw14,
        cdw15,
        timeout_ms: milliseconds(timeout),
        ..NvmeAdmin::default()
    };
    // SAFETY: the request has the layout of struct nvme_admin_cmd and points to `bytes`, which outlives the
    // call and is data_len bytes long.
    let returned = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut request) };
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(AdminReply { status: returned as u16, result: request.result, bytes })
}

/// Returns the namespace id of a namespace's device node.
///
/// # Errors
/// The error of ioctl(2): ENOTTY if the file is not an NVMe namespace.
pub fn nvme_namespace(device: &File) -> io::Result<u32> {
    // SAFETY: NVME_IOCTL_ID takes no argument and returns the id.
    let returned = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ID) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned as u32) }
}

/// Sends the I/O command Flush to a namespace, past the block layer, and returns its status. NVMe NVM Command
/// Set 1.0, 3.2.2 (opcode 00h).
///
/// # Errors
/// The error of ioctl(2). A status of the controller is not an error.
pub fn nvme_flush(device: &File, namespace: u32, timeout: Nanos) -> io::Result<u16> {
    /// `_IOWR('N', 0x43, struct nvme_passthru_cmd)`.
    const NVME_IOCTL_IO_CMD: libc::Ioctl = 0xc048_4e43_u32 as libc::Ioctl;
    let mut request =
        NvmeAdmin { opcode: 0, nsid: namespace, timeout_ms: milliseconds(timeout), ..NvmeAdmin::default() };
    // SAFETY: the request has the layout of struct nvme_passthru_cmd and carries no data.
    let returned = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_IO_CMD, &raw mut request) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned as u16) }
}

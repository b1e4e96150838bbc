//! Requests to device mapper: `struct dm_ioctl`, and the ioctls that take one. linux/dm-ioctl.h,
//! drivers/md/dm-ioctl.c.
#![expect(unsafe_code, reason = "ioctl(2) takes a pointer whose meaning depends on the request")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::tree::DeviceNumber;

/// `_IOWR(0xfd, N, struct dm_ioctl)`.
pub(crate) const DM_DEV_SUSPEND: u32 = 0xc138_fd06;
pub(crate) const DM_TABLE_LOAD: u32 = 0xc138_fd09;
pub(crate) const DM_TABLE_CLEAR: u32 = 0xc138_fd0a;
const DM_TABLE_STATUS: u32 = 0xc138_fd0c;

/// Device node that accepts all requests.
pub(crate) const CONTROL: &str = "/dev/mapper/control";

const HEADER_BYTES: usize = 312;
/// Offsets in `struct dm_ioctl`.
const VERSION: usize = 0;
pub(crate) const DATA_SIZE: usize = 12;
const DATA_START: usize = 16;
pub(crate) const TARGET_COUNT: usize = 20;
pub(crate) const FLAGS: usize = 28;
const DEV: usize = 40;
/// Flag bits.
pub(crate) const READONLY: u32 = 1;
pub(crate) const STATUS_TABLE: u32 = 1 << 4;
const BUFFER_FULL: u32 = 1 << 8;
pub(crate) const NOFLUSH: u32 = 1 << 11;
pub(crate) const SECURE_DATA: u32 = 1 << 15;

/// Creates a request about the dm device `number`, with `room` after its header.
pub(crate) fn request(number: DeviceNumber, flags: u32, room: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0_u8; HEADER_BYTES];
    buffer.extend(room);
    let size = buffer.len() as u32;
    put(&mut buffer, VERSION, 4);
    put(&mut buffer, DATA_SIZE, size);
    put(&mut buffer, DATA_START, HEADER_BYTES as u32);
    put(&mut buffer, FLAGS, flags);
    buffer[DEV..DEV + 8].copy_from_slice(&number.to_huge().to_ne_bytes());
    buffer
}

/// Sends the request in `buffer`, which then holds the answer.
pub(crate) fn call(control: &File, request: u32, buffer: &mut [u8]) -> io::Result<()> {
    // SAFETY: the buffer starts with a struct dm_ioctl whose data_size is at most the buffer's length; the
    // kernel reads and writes within that, as bytes.
    let returned = unsafe { libc::ioctl(control.as_raw_fd(), request as libc::Ioctl, buffer.as_mut_ptr()) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the answer to DM_TABLE_STATUS: header and targets. ENOBUFS if it is larger than any valid table.
pub(crate) fn table_status(control: &File, number: DeviceNumber, flags: u32) -> io::Result<Vec<u8>> {
    const SIZES: [usize; 4] = [16 << 10, 128 << 10, 1 << 20, 8 << 20];
    for size in SIZES {
        let mut buffer = request(number, flags, &vec![0; size]);
        call(control, DM_TABLE_STATUS, &mut buffer)?;
        if word(&buffer, FLAGS) & BUFFER_FULL == 0 {
            return Ok(buffer);
        }
    }
    Err(io::Error::from_raw_os_error(libc::ENOBUFS))
}

/// Returns the targets in an answer, each a `dm_target_spec` and its text; `None` if the answer is malformed.
pub(crate) fn targets(answer: &[u8]) -> Option<&[u8]> {
    let end = (word(answer, DATA_SIZE) as usize).min(answer.len());
    answer.get(word(answer, DATA_START) as usize..end)
}

pub(crate) fn word(buffer: &[u8], at: usize) -> u32 {
    buffer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

pub(crate) fn put(buffer: &mut [u8], at: usize, value: u32) {
    buffer[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_it_is() {
        let request = request(DeviceNumber { major: 253, minor: 0x123 }, NOFLUSH, &[0; 712]);
        assert_eq!(word(&request, DATA_SIZE), 1024);
        assert_eq!(word(&request, FLAGS), NOFLUSH);
        assert_eq!(word(&request, DEV), 0x23 | 253 << 8 | 0x100 << 12);
    }
}

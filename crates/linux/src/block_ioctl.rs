//! Block device ioctls that I/O needs: capacity, sector sizes, discard, cache.
//!
//! Numbers and argument types are from include/uapi/linux/fs.h. On all architectures that this crate
//! supports, only the direction bits differ; `libc` hides that for the sector sizes, and the other numbers
//! are spelled out here.

#![expect(unsafe_code, reason = "ioctl passes untyped pointers to the kernel")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use plumb_block::Bytes;

/// `BLKDISCARD`, `_IO(0x12, 119)`: takes two u64, start and length in bytes.
const BLKDISCARD: libc::Ioctl = 0x1277;
/// `BLKGETSIZE64`, `_IOR(0x12, 114, size_t)`: returns the capacity in bytes.
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272;

/// `BLKFLSBUF`, `_IO(0x12, 97)`.
const BLKFLSBUF: libc::Ioctl = 0x1261;

/// Drops the kernel's cache of an open block device, including buffers in per-processor lists that a file
/// system mounted on it left. Dirty data is written first, as far as that succeeds.
///
/// # Errors
/// Fails as ioctl(2) does; EACCES without CAP_SYS_ADMIN.
pub fn forget_cache(device: impl AsFd) -> io::Result<()> {
    // SAFETY: BLKFLSBUF takes no argument.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKFLSBUF, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the capacity of a block device.
///
/// # Errors
/// Fails as ioctl(2) does; ENOTTY if the file is not a block device.
pub fn capacity(device: BorrowedFd<'_>) -> io::Result<Bytes> {
    let mut bytes = 0_u64;
    // SAFETY: BLKGETSIZE64 writes one u64 through the pointer, which is valid for the call.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), BLKGETSIZE64, &raw mut bytes) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(Bytes(bytes)) }
}

/// Returns the logical block size: the smallest request that the device accepts (BLKSSZGET).
///
/// # Errors
/// Fails as ioctl(2) does.
pub fn logical_block(device: impl AsFd) -> io::Result<Bytes> {
    Ok(Bytes(u64::from(rustix::fs::ioctl_blksszget(device)?)))
}

/// Returns the physical block size: the unit that the medium writes without a read-modify-write (BLKPBSZGET).
///
/// # Errors
/// Fails as ioctl(2) does.
pub fn physical_block(device: impl AsFd) -> io::Result<Bytes> {
    Ok(Bytes(u64::from(rustix::fs::ioctl_blkpbszget(device)?)))
}

/// Discards `length` bytes at `offset` and waits for the device. The kernel first drops the range from the
/// page cache, and splits the request by the device's limits.
///
/// # Errors
/// Fails as ioctl(2) does; EOPNOTSUPP if the device does not support discards, EINVAL off the grid of logical
/// blocks.
pub fn discard(device: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<()> {
    let range = [offset.0, length.0];
    // SAFETY: BLKDISCARD reads two u64 through the pointer, which is valid for the call.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

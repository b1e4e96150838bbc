//! The ioctls of block devices that I/O itself needs: capacity, sector sizes, discard, cache.
//!
//! Numbers and argument types are from include/uapi/linux/fs.h; they are the same on every architecture that
//! this crate is built for but for the direction bits, which `libc` hides for the sector sizes and which are
//! spelled out here for the rest.

#![expect(unsafe_code, reason = "ioctl passes untyped pointers to the kernel")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use plumb_block::Bytes;

/// `BLKDISCARD`, `_IO(0x12, 119)`: takes two u64, start and length in bytes.
const BLKDISCARD: libc::Ioctl = 0x1277;
/// `BLKGETSIZE64`, `_IOR(0x12, 114, size_t)`: gives the capacity in bytes.
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272;

/// `BLKFLSBUF`, `_IO(0x12, 97)`.
const BLKFLSBUF: libc::Ioctl = 0x1261;

/// Lets the kernel forget what it has cached of an open block device, also what a file system that was
/// mounted on it left in the lists of each processor. What is dirty is written first, or fails to be.
///
/// # Errors
/// As ioctl(2); EACCES without CAP_SYS_ADMIN.
pub fn forget_cache(device: impl AsFd) -> io::Result<()> {
    // SAFETY: BLKFLSBUF takes no argument.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKFLSBUF, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the capacity of a block device.
///
/// # Errors
/// As ioctl(2); ENOTTY for what is no block device.
pub fn capacity(device: BorrowedFd<'_>) -> io::Result<Bytes> {
    let mut bytes = 0_u64;
    // SAFETY: BLKGETSIZE64 writes one u64 through the pointer, which is valid for the call.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), BLKGETSIZE64, &raw mut bytes) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(Bytes(bytes)) }
}

/// Returns the logical block: the smallest request that the device takes (BLKSSZGET).
///
/// # Errors
/// As ioctl(2).
pub fn logical_block(device: impl AsFd) -> io::Result<Bytes> {
    Ok(Bytes(u64::from(rustix::fs::ioctl_blksszget(device)?)))
}

/// Returns the physical block: what the medium writes without reading first (BLKPBSZGET).
///
/// # Errors
/// As ioctl(2).
pub fn physical_block(device: impl AsFd) -> io::Result<Bytes> {
    Ok(Bytes(u64::from(rustix::fs::ioctl_blkpbszget(device)?)))
}

/// Tells the device that `length` bytes from `offset` are not needed. Waits until the device has answered.
/// The kernel drops the range from the page cache first and splits it by the device's limits.
///
/// # Errors
/// As ioctl(2); EOPNOTSUPP where the device cannot discard, EINVAL off the grid of logical blocks.
pub fn discard(device: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<()> {
    let range = [offset.0, length.0];
    // SAFETY: BLKDISCARD reads two u64 through the pointer, which is valid for the call.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

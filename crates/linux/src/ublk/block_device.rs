//! What a server asks of the block device that it serves.

#![expect(unsafe_code, reason = "ioctl passes untyped pointers to the kernel")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// include/uapi/linux/fs.h.
const BLKFLSBUF: libc::Ioctl = 0x1261;

/// Lets the kernel forget what it has cached of an open block device. What is dirty is written first, or fails to be.
///
/// # Errors
/// As ioctl(2); EACCES without CAP_SYS_ADMIN.
pub fn forget_cache(device: impl AsFd) -> io::Result<()> {
    // SAFETY: BLKFLSBUF takes no argument.
    let answer = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), BLKFLSBUF, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

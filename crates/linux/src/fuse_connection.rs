//! `/dev/fuse`: a file from which a user space file system reads its requests. Further files for the same
//! connection let several threads serve it.
//!
//! A request must be answered through the file that it was read from.

#![expect(unsafe_code, reason = "ioctl passes untyped pointers to the kernel")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

/// `FUSE_DEV_IOC_CLONE`, `_IOR(229, 0, u32)`: takes the descriptor of a connected file
/// (include/uapi/linux/fuse.h).
const FUSE_DEV_IOC_CLONE: libc::Ioctl = 0x8004_E500;

/// Behaviour of a read while there is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenIdle {
    /// The read waits for a request.
    Wait,
    /// The read fails with EAGAIN.
    Return,
}

/// Opens `/dev/fuse`. Mounting with the descriptor connects it.
///
/// # Errors
/// Fails as open(2) does: ENOENT or ENODEV if the kernel has no FUSE.
pub fn open(when_idle: WhenIdle) -> io::Result<OwnedFd> {
    let nonblocking = match when_idle {
        WhenIdle::Wait => OFlags::empty(),
        WhenIdle::Return => OFlags::NONBLOCK,
    };
    Ok(rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC | nonblocking, Mode::empty())?)
}

/// Opens another file for the connection of `connected`.
///
/// # Errors
/// Fails as open(2) and ioctl(2) do; EINVAL if `connected` is not connected.
pub fn another(connected: BorrowedFd<'_>, when_idle: WhenIdle) -> io::Result<OwnedFd> {
    let file = open(when_idle)?;
    let source = connected.as_raw_fd();
    // SAFETY: FUSE_DEV_IOC_CLONE reads one u32 through the pointer, which is valid for the call; a descriptor
    // is never negative, so its bits are those of the u32.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FUSE_DEV_IOC_CLONE, &raw const source) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

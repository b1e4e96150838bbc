//! Test of whether a file supports I/O that leaves nothing in the page cache: `RWF_DONTCACHE`.
//!
//! The flag came with Linux 6.14, and each file system must support it (FOP_DONTCACHE, include/linux/fs.h).
//! The test tries the flag once when the file is opened, with one byte: the kernel completes an empty read
//! without checking the flags.

use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

use plumb_block::{Error, ErrorKind, Result};
use rustix::io::ReadWriteFlags;

/// `RWF_DONTCACHE` of include/uapi/linux/fs.h.
pub(crate) const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Reads one byte of `file` uncached. `name` is for the message.
pub(super) fn probe(file: BorrowedFd<'_>, name: &str) -> Result<()> {
    let mut byte = [0];
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, DONTCACHE) {
        Ok(_) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            Err(Error::new(ErrorKind::Unsupported, "open uncached", name).because(
                "RWF_DONTCACHE is refused there: it takes Linux 6.14 and a file system that knows it (of ext4, xfs and \
                 btrfs recent ones do, tmpfs does not); use the page cache, or O_DIRECT, instead",
            ))
        }
        Err(errno) => Err(Error::io(&errno.into(), "read uncached", name)),
    }
}

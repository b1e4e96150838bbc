//! A [`Call`] made, now, on the calling thread.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use plumb_block::{Bytes, Errno};
use rustix::fs::FallocateFlags;
use rustix::io::ReadWriteFlags;

use crate::block_ioctl;
use crate::file::work::{Call, zeroes};

/// The memory of a request.
pub(super) enum Memory<'a> {
    /// Read into this.
    Into(&'a mut [u8]),
    /// Write from this.
    From(&'a [u8]),
    /// The call moves no bytes of the request.
    None,
}

/// Makes `call`, through the queue's own description `file` or through the device's, which may claim it; bytes moved,
/// or the error number.
pub(super) fn make(
    file: BorrowedFd<'_>,
    claiming: BorrowedFd<'_>,
    call: Call,
    memory: Memory<'_>,
) -> Result<u64, Errno> {
    let moved = match (call, memory) {
        (Call::Read { offset, done, length }, Memory::Into(bytes)) => {
            let part = bytes.get_mut(span(done, length)).ok_or(Errno::EINVAL)?;
            rustix::io::pread(file, part, offset)
        }
        (Call::Write { offset, done, length, dsync }, Memory::From(bytes)) => {
            let part = bytes.get(span(done, length)).ok_or(Errno::EINVAL)?;
            let flags = if dsync { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
            rustix::io::pwritev2(file, &[IoSlice::new(part)], offset, flags)
        }
        (Call::Read { .. } | Call::Write { .. }, _) => return Err(Errno::EINVAL),
        (Call::WriteZeroes { offset, length }, _) => rustix::io::pwrite(file, zeroes(length), offset),
        (Call::Fallocate { mode, offset, length }, _) => {
            let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
            rustix::fs::fallocate(claiming, mode, offset, length).map(|()| 0)
        }
        (Call::Discard { offset, length }, _) => {
            return block_ioctl::discard(claiming, Bytes(offset), Bytes(length))
                .map(|()| 0)
                .map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno));
        }
        (Call::Sync, _) => rustix::fs::fdatasync(file).map(|()| 0),
    };
    moved.map(|bytes| bytes as u64).map_err(|errno| Errno(errno.raw_os_error()))
}

/// The part of a buffer that a call is about. Lengths of requests are those of buffers in memory, so they fit.
fn span(done: u64, length: u64) -> std::ops::Range<usize> {
    done as usize..(done + length) as usize
}

//! Execution of a [`Call`] on the calling thread.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use plumb_block::{Bytes, Errno, FlushCall};
use rustix::fs::FallocateFlags;

use crate::block_ioctl;
use crate::file::work::Call;
use crate::file::zeroes::zeroes;
use crate::sync_file_range;

/// Memory of a request.
pub(crate) enum Memory<'a> {
    /// Buffer to read into.
    Into(&'a mut [u8]),
    /// Data to write.
    From(&'a [u8]),
    /// The call moves no bytes of the request.
    None,
}

/// Performs `call` through the queue's own description `file`, or through the device's, `claiming`, which may
/// claim it. Returns the bytes moved or the error number.
pub(crate) fn make(
    file: BorrowedFd<'_>,
    claiming: BorrowedFd<'_>,
    call: Call,
    memory: Memory<'_>,
) -> Result<u64, Errno> {
    let moved = match (call, memory) {
        (Call::Read { offset, done, length, flags }, Memory::Into(bytes)) => {
            let part = part_of_mut(bytes, done, length)?;
            if flags.is_empty() {
                rustix::io::pread(file, part, offset)
            } else {
                rustix::io::preadv2(file, &mut [IoSliceMut::new(part)], offset, flags)
            }
        }
        (Call::Write { offset, done, length, flags }, Memory::From(bytes)) => {
            let part = part_of(bytes, done, length)?;
            rustix::io::pwritev2(file, &[IoSlice::new(part)], offset, flags)
        }
        (Call::Read { .. } | Call::Write { .. } | Call::SyncPages { .. }, _) => return Err(Errno::EINVAL),
        (Call::WriteZeroes { offset, length, flags }, _) => {
            rustix::io::pwritev2(file, &[IoSlice::new(zeroes(length))], offset, flags)
        }
        (Call::Fallocate { mode, offset, length }, _) => {
            let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
            rustix::fs::fallocate(claiming, mode, offset, length).map(|()| 0)
        }
        (Call::Truncate, _) => rustix::fs::ftruncate(file, 0).map(|()| 0),
        (Call::Discard { offset, length }, _) => {
            return block_ioctl::discard(claiming, Bytes(offset), Bytes(length))
                .map(|()| 0)
                .map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno));
        }
        (Call::Flush(call), _) => return flush(file, call).map(|()| 0),
    };
    moved.map(|bytes| bytes as u64).map_err(|errno| Errno(errno.raw_os_error()))
}

/// Makes the whole file durable as `call` does.
fn flush(file: BorrowedFd<'_>, call: FlushCall) -> Result<(), Errno> {
    let answer = match call {
        FlushCall::Fdatasync => rustix::fs::fdatasync(file),
        FlushCall::Fsync => rustix::fs::fsync(file),
        FlushCall::Range => sync_file_range::write_back(file, Bytes(0), Bytes(0)),
    };
    answer.map_err(|errno| Errno(errno.raw_os_error()))
}

/// Returns the part of a buffer for a call.
pub(crate) fn part_of(bytes: &[u8], done: u64, length: u64) -> Result<&[u8], Errno> {
    bytes.get(span(done, length)).ok_or(Errno::EINVAL)
}

/// Returns the part of a buffer for a call that writes to it.
pub(crate) fn part_of_mut(bytes: &mut [u8], done: u64, length: u64) -> Result<&mut [u8], Errno> {
    bytes.get_mut(span(done, length)).ok_or(Errno::EINVAL)
}

/// Returns the index range of a part. Requests are no longer than buffers in memory, so the numbers fit.
fn span(done: u64, length: u64) -> std::ops::Range<usize> {
    done as usize..(done + length) as usize
}

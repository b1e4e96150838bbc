//! sync_file_range(2): write-back of pages, without any durability.

#![expect(unsafe_code, reason = "rustix has no sync_file_range")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

use plumb_block::Bytes;
use rustix::io::{Errno, Result};

/// Flags that wait for write-back in progress, start it for all dirty pages, and wait for it.
pub(crate) const WRITTEN_BACK: u32 =
    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Writes back `length` bytes of `file` from `offset` on; up to the end if `length` is 0. Makes nothing
/// durable: see [`FlushCall`](plumb_block::FlushCall::Range).
///
/// # Errors
/// Fails as sync_file_range(2) does.
pub fn write_back(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> Result<()> {
    let signed = |bytes: Bytes| i64::try_from(bytes.0).map_err(|_| Errno::INVAL);
    let (offset, length) = (signed(offset)?, signed(length)?);
    // SAFETY: takes no pointers.
    let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, WRITTEN_BACK) };
    if answer == 0 {
        return Ok(());
    }
    let code = std::io::Error::last_os_error().raw_os_error();
    Err(code.map_or(Errno::IO, Errno::from_raw_os_error))
}

//! sync_file_range(2) over a whole file: pages written back and waited for, without any durability.

#![expect(unsafe_code, reason = "rustix has no sync_file_range")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

use plumb_block::Errno;

/// What waits for write-back under way, starts it for all dirty pages, and waits for it.
pub(crate) const WRITTEN_BACK: u32 =
    libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Writes back the whole of `file`. Durable is nothing by it: see [`FlushCall`](plumb_block::FlushCall::Range).
pub(crate) fn whole(file: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes no pointers; a length of 0 means up to the end.
    let answer = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, WRITTEN_BACK) };
    if answer == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error().raw_os_error().map_or(Errno::EIO, Errno))
}

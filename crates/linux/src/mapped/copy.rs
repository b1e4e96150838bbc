//! Copies between a mapping and memory by the kernel, so that an inaccessible page gives an error number
//! instead of a signal.

#![expect(unsafe_code, reason = "the kernel gets addresses of memory")]

use std::io;

use plumb_block::Errno;

/// Copies from `mapped` to `into`. Returns the number of bytes, which is lower if a page is inaccessible.
///
/// # Errors
/// EIO if the first page is inaccessible; otherwise fails as process_vm_writev(2) does.
///
/// # Safety
/// The `into.len()` bytes from `mapped` on must belong to a mapping that exists for the whole call.
pub(super) unsafe fn out_of(mapped: *mut u8, into: &mut [u8]) -> Result<u64, Errno> {
    let local = piece(mapped, into.len());
    let remote = piece(into.as_mut_ptr(), into.len());
    // SAFETY: `into` is ours to write, and the mapping exists; both for the call.
    answer(unsafe { libc::process_vm_writev(own_process(), &raw const local, 1, &raw const remote, 1, 0) })
}

/// Copies `from` to `mapped`. Returns the number of bytes, which is lower if a page is inaccessible.
///
/// # Errors
/// EIO if the first page is inaccessible; otherwise fails as process_vm_readv(2) does.
///
/// # Safety
/// The `from.len()` bytes from `mapped` on must belong to a mapping that exists for the whole call and to
/// which no reference exists.
pub(super) unsafe fn into(mapped: *mut u8, from: &[u8]) -> Result<u64, Errno> {
    let local = piece(mapped, from.len());
    let remote = piece(from.as_ptr().cast_mut(), from.len());
    // SAFETY: `from` is only read, and no reference to the mapping exists; both are valid for the call.
    answer(unsafe { libc::process_vm_readv(own_process(), &raw const local, 1, &raw const remote, 1, 0) })
}

/// Checks that both calls of this module work here.
///
/// # Errors
/// Fails with the answer of the kernel (ENOSYS without CONFIG_CROSS_MEMORY_ATTACH) or of a seccomp filter.
pub(super) fn try_both() -> io::Result<()> {
    let mut memory = [0_u8; 8];
    let mut back = [0_u8; 8];
    // SAFETY: `memory` has that many bytes and is not shared.
    let there = unsafe { into(memory.as_mut_ptr(), &[7; 8]) };
    // SAFETY: `memory` has that many bytes and is not shared.
    let copied = there.and_then(|_| unsafe { out_of(memory.as_mut_ptr(), &mut back) });
    match copied {
        Ok(_) if back == [7; 8] => Ok(()),
        Ok(_) => Err(io::Error::other("not all bytes were copied")),
        Err(errno) => Err(io::Error::from_raw_os_error(errno.0)),
    }
}

fn piece(start: *mut u8, length: usize) -> libc::iovec {
    libc::iovec { iov_base: start.cast(), iov_len: length }
}

fn own_process() -> libc::pid_t {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn answer(copied: isize) -> Result<u64, Errno> {
    u64::try_from(copied).map_err(|_| match io::Error::last_os_error().raw_os_error() {
        Some(libc::EFAULT) | None => Errno::EIO,
        Some(errno) => Errno(errno),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_there_is_an_error_and_not_a_signal() {
        if let Err(error) = try_both() {
            return plumb_testkit::skip(&format!("no process_vm_readv here: {error}"));
        }
        let mut bytes = [0_u8; 16];
        // SAFETY: nothing is ever mapped at page 0, which the kernel finds out.
        assert_eq!(unsafe { out_of(std::ptr::without_provenance_mut(8), &mut bytes) }, Err(Errno::EIO));
        // SAFETY: nothing is ever mapped at page 0, which the kernel finds out.
        assert_eq!(unsafe { into(std::ptr::without_provenance_mut(8), &bytes) }, Err(Errno::EIO));
    }
}

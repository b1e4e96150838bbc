//! A mapping of a whole file or block device, and the calls of requests on it.
//!
//! Invariants: no reference to the mapped memory ever exists; only addresses are used, and only within
//! `start..start + length`.

#![expect(unsafe_code, reason = "memory is mapped and its addresses are given to the kernel")]

use std::os::fd::{AsFd as _, OwnedFd};
use std::ptr::{NonNull, null_mut};

use plumb_block::{Bytes, Errno, Error, ErrorKind, Result};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

use super::copy;
use crate::file::Target;
use crate::file::work::Call;
use crate::file::zeroes::zeroes;
use crate::psync::{self, Memory};

/// Mapping of one queue.
pub(crate) struct Mapping {
    file: OwnedFd,
    writable: bool,
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and only this value holds its address.
unsafe impl Send for Mapping {}

/// Checks that `target` can be mapped, and that the kernel can copy from and to the mapping.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) with the reason if it cannot.
pub(crate) fn try_mapping(target: &Target) -> Result<()> {
    copy::try_both().map_err(|error| {
        Error::new(ErrorKind::Unsupported, "map", target.name.as_str()).because(format!(
            "process_vm_readv is refused here, by a seccomp filter or a kernel without it ({error}); use another engine"
        ))
    })?;
    Mapping::new(target, target.reopen()?).map(drop)
}

impl Mapping {
    /// Maps all of `target` through its open file description `file`.
    ///
    /// # Errors
    /// Fails as mmap(2) does; ENODEV if the file system has no mappings.
    pub(crate) fn new(target: &Target, file: OwnedFd) -> Result<Self> {
        let writable = target.grid.writable;
        let mapped = map(&file, target.size(), writable);
        let (start, length) =
            mapped.map_err(|errno| Error::new(ErrorKind::Os(errno), "map", target.name.as_str()))?;
        Ok(Self { file, writable, start, length })
    }

    /// Performs a call of a request.
    pub(crate) fn make(
        &mut self,
        target: &Target,
        call: Call,
        memory: Memory<'_>,
    ) -> std::result::Result<u64, Errno> {
        self.cover(target.size())?;
        match (call, memory) {
            (Call::Read { offset, length, done, .. }, Memory::Into(bytes)) => {
                let at = self.address(offset, length)?;
                // SAFETY: `address` has checked that the range is mapped.
                unsafe { copy::out_of(at, psync::part_of_mut(bytes, done, length)?) }
            }
            (Call::Write { offset, length, done, .. }, Memory::From(bytes)) => {
                let at = self.address(offset, length)?;
                // SAFETY: `address` has checked that the range is mapped. No references to the mapping exist.
                unsafe { copy::into(at, psync::part_of(bytes, done, length)?) }
            }
            (Call::WriteZeroes { offset, length, .. }, _) => {
                let at = self.address(offset, length)?;
                // SAFETY: `address` has checked that the range is mapped. No references to the mapping exist.
                unsafe { copy::into(at, zeroes(length)) }
            }
            (Call::SyncPages { offset, length }, _) => self.sync(offset, length),
            (Call::Flush(_), _) => self.sync(0, target.size().0),
            (Call::Fallocate { .. } | Call::Discard { .. }, _) => {
                psync::make(self.file.as_fd(), target.file(), call, Memory::None)
            }
            (Call::Read { .. } | Call::Write { .. } | Call::Truncate, _) => Err(Errno::EINVAL),
        }
    }

    /// Extends the mapping if the target has grown.
    fn cover(&mut self, size: Bytes) -> std::result::Result<(), Errno> {
        if size.0 > self.length as u64 {
            let (start, length) = map(&self.file, size, self.writable)?;
            unmap(std::mem::replace(&mut self.start, start), std::mem::replace(&mut self.length, length));
        }
        Ok(())
    }

    /// Returns the address at which `length` bytes at `offset` are mapped.
    fn address(&self, offset: u64, length: u64) -> std::result::Result<*mut u8, Errno> {
        let is_mapped = offset.checked_add(length).is_some_and(|end| end <= self.length as u64);
        if is_mapped { Ok(self.start.as_ptr().wrapping_add(offset as usize)) } else { Err(Errno::EINVAL) }
    }

    /// Makes the pages of `length` bytes at `offset` durable.
    fn sync(&self, offset: u64, length: u64) -> std::result::Result<u64, Errno> {
        let page = rustix::param::page_size() as u64;
        let first = offset - offset % page;
        let length = length + offset % page;
        let at = self.address(first, length)?;
        // SAFETY: `address` has checked that the range is mapped.
        let synced = unsafe { rustix::mm::msync(at.cast(), length as usize, MsyncFlags::SYNC) };
        synced.map(|()| 0).map_err(|errno| Errno(errno.raw_os_error()))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.start, self.length);
    }
}

fn map(file: &OwnedFd, size: Bytes, writable: bool) -> std::result::Result<(NonNull<u8>, usize), Errno> {
    let length = usize::try_from(size.0).map_err(|_| Errno(libc::EFBIG))?;
    let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
    // SAFETY: a new mapping at an address that the kernel chooses cannot overlap other memory.
    let mapped = unsafe { rustix::mm::mmap(null_mut(), length, protection, MapFlags::SHARED, file, 0) };
    let start = mapped.map_err(|errno| Errno(errno.raw_os_error()))?;
    NonNull::new(start.cast()).map(|start| (start, length)).ok_or(Errno(libc::ENOMEM))
}

fn unmap(start: NonNull<u8>, length: usize) {
    // SAFETY: the range is our own mapping, made by `map`, whose addresses are no longer used.
    let unmapped = unsafe { rustix::mm::munmap(start.as_ptr().cast(), length) };
    // munmap fails only for an invalid range, or when it splits a mapping, which this call does not do.
    debug_assert!(unmapped.is_ok(), "{unmapped:?}");
}

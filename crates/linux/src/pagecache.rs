//! Amount of a file in the page cache, and dropping it: cachestat(2), mincore(2), posix_fadvise(2).
//!
//! Resident pages explain a result like "the application read 200,000 times a second, the device served
//! none".
//!
//! Limitations: dropping a page is only a request to the kernel. Dirty, mapped or locked pages stay, so the
//! caller checks [`residency`] afterwards.

#![expect(unsafe_code, reason = "cachestat has no wrapper in libc; mincore needs a mapping")]

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use plumb_block::{Bytes, Error, Result};
use rustix::fs::Advice;
use rustix::mm::{MapFlags, ProtFlags};

/// System call number of cachestat(2), since 6.5, the same on every architecture that this crate supports.
const SYS_CACHESTAT: libc::c_long = 451;
/// Number of bytes in one query of mincore.
const WINDOW: u64 = 1 << 30;

/// Amount of a range that is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Bytes in memory.
    pub resident: Bytes,
    /// Bytes in memory that the device does not have yet; `None` if the kernel does not report it (before
    /// 6.5).
    pub dirty: Option<Bytes>,
    /// Bytes being written to the device now; `None` if the kernel does not report it.
    pub writeback: Option<Bytes>,
}

/// `struct cachestat_range` of include/uapi/linux/mman.h.
#[repr(C)]
struct RawRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct RawStat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Returns how much of `length` bytes at `offset` of a file or block device is in memory. `name` is for the
/// message.
///
/// # Errors
/// If neither cachestat nor mincore is permitted: EPERM for a file that the caller neither owns nor may
/// write.
pub fn residency(file: impl AsFd, offset: Bytes, length: Bytes, name: &str) -> Result<Residency> {
    let file = file.as_fd();
    let Some(nonzero) = NonZeroU64::new(length.0) else {
        return Ok(Residency { resident: Bytes(0), dirty: Some(Bytes(0)), writeback: Some(Bytes(0)) });
    };
    match cachestat(file, offset, nonzero) {
        Ok(stat) => {
            let pages = |count: u64| Bytes(count.saturating_mul(page_size().0));
            Ok(Residency {
                resident: pages(stat.cache),
                dirty: Some(pages(stat.dirty)),
                writeback: Some(pages(stat.writeback)),
            })
        }
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP)) => {
            let resident = mincore(file, offset, length)
                .map_err(|error| Error::io(&error, "look at the cache of", name))?;
            Ok(Residency { resident, dirty: None, writeback: None })
        }
        Err(error) => Err(Error::io(&error, "look at the cache of", name)),
    }
}

/// Returns the size of a memory page.
pub fn page_size() -> Bytes {
    Bytes(rustix::param::page_size() as u64)
}

/// Returns the number of bytes of a file that are dirty or being written to its device. `None` if the kernel
/// does not report it (cachestat, Linux 6.5). Pages that change during the count may be missed or included.
/// `name` is for the message.
///
/// # Errors
/// Fails as cachestat(2) does: EPERM for a file that the caller neither owns nor may write.
pub fn unwritten(file: impl AsFd, name: &str) -> Result<Option<Bytes>> {
    match cachestat(file.as_fd(), Bytes(0), NonZeroU64::MAX) {
        Ok(stat) => {
            let pages = stat.dirty.saturating_add(stat.writeback);
            Ok(Some(Bytes(pages.saturating_mul(page_size().0))))
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(None),
        Err(error) => Err(Error::io(&error, "look at the cache of", name)),
    }
}

/// Asks the kernel to drop the clean pages of a range (POSIX_FADV_DONTNEED). Dirty pages stay, so flush
/// first. `name` is for the message.
///
/// # Errors
/// Fails as posix_fadvise(2) does.
pub fn drop_clean(file: impl AsFd, offset: Bytes, length: Bytes, name: &str) -> Result<()> {
    let Some(length) = NonZeroU64::new(length.0) else { return Ok(()) };
    rustix::fs::fadvise(file, offset.0, Some(length), Advice::DontNeed)
        .map_err(|errno| Error::io(&errno.into(), "drop the cache of", name))
}

fn cachestat(file: BorrowedFd<'_>, offset: Bytes, length: NonZeroU64) -> io::Result<RawStat> {
    let range = RawRange { offset: offset.0, length: length.get() };
    let mut stat = RawStat::default();
    // SAFETY: the kernel reads one cachestat_range and writes one cachestat; both are valid for the call.
    let answer =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0_u32) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(stat) }
}

/// Returns the number of bytes in memory, through a mapping that is never accessed.
fn mincore(file: BorrowedFd<'_>, offset: Bytes, length: Bytes) -> io::Result<Bytes> {
    let page = page_size().0;
    let end = offset.0.saturating_add(length.0);
    let mut from = offset.round_down(Bytes(page)).0;
    let mut resident = 0;
    while from < end {
        let window = (end - from).min(WINDOW);
        resident += resident_pages(file, from, window as usize, page as usize)?;
        from += window;
    }
    Ok(Bytes(resident * page))
}

fn resident_pages(file: BorrowedFd<'_>, offset: u64, length: usize, page: usize) -> io::Result<u64> {
    // SAFETY: a new mapping at an address that the kernel chooses; nothing accesses it.
    let mapped = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, offset)
    }?;
    let Some(start) = NonNull::new(mapped) else { return Err(io::Error::from_raw_os_error(libc::ENOMEM)) };
    let mut states = vec![0_u8; length.div_ceil(page)];
    // SAFETY: the mapping is `length` bytes at `start`, and there is one state for each of its pages.
    let answer = unsafe { libc::mincore(start.as_ptr(), length, states.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping made above, to which no reference exists.
    unsafe { rustix::mm::munmap(start.as_ptr(), length) }?;
    if answer < 0 { Err(error) } else { Ok(states.iter().filter(|state| **state & 1 != 0).count() as u64) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn written_pages_are_resident_and_dirty_until_synced() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        let whole = Bytes::mib(1);
        let before = residency(&file, Bytes(0), whole, "file").unwrap();
        assert_eq!(before.resident, whole);
        assert_eq!(mincore(file.as_fd(), Bytes(0), whole).unwrap(), whole, "mincore agrees");
        file.sync_all().unwrap();
        let synced = residency(&file, Bytes(0), whole, "file").unwrap();
        if let Some(dirty) = synced.dirty {
            assert_eq!(dirty, Bytes(0), "dirty after a sync");
        }
        drop_clean(&file, Bytes(0), whole, "file").unwrap();
        let after = residency(&file, Bytes(0), whole, "file").unwrap();
        if after.resident == whole {
            plumb_testkit::skip("the temporary directory lives in memory, its pages cannot be dropped");
        } else {
            assert_eq!(after.resident, Bytes(0));
        }
        assert_eq!(residency(&file, Bytes(0), Bytes(0), "file").unwrap().resident, Bytes(0));
    }
}

//! Allocation state of a file: FIEMAP (Documentation/filesystems/fiemap.rst).
//!
//! Reads of blocks that were never written return zeroes without accessing the device, so measuring them
//! measures memory. The query omits FIEMAP_FLAG_SYNC, which would write the file back and so change the
//! subject of the measurement. Bytes that may be only in the page cache are therefore
//! [`Unknown`](ExtentState::Unknown). This includes reserved blocks, which FIEMAP calls unwritten until they
//! are written back.

#![expect(unsafe_code, reason = "FIEMAP fills a structure of variable length")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use plumb_block::{Bytes, Error, Extent, ExtentState, Lba, LbaRange, Result};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::pagecache;

/// `FS_IOC_FIEMAP`, `_IOWR('f', 11, struct fiemap)` (include/uapi/linux/fs.h).
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b;
/// Number of extents requested by one call.
const EXTENTS_A_CALL: usize = 128;
/// `TMPFS_MAGIC` (include/uapi/linux/magic.h).
const TMPFS: u64 = 0x0102_1994;
/// Unit of `st_blocks`: inode(7).
const STAT_BLOCK: u64 = 512;
const LAST: u32 = 0x1;
const UNKNOWN: u32 = 0x2;
const DELALLOC: u32 = 0x4;
const INLINE: u32 = 0x200;
const UNWRITTEN: u32 = 0x800;

/// `struct fiemap_extent` of include/uapi/linux/fiemap.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with space for its extents.
#[repr(C)]
struct RawMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_A_CALL],
}

/// Returns the extents of `range` in order, covering all of it. tmpfs has no FIEMAP: there lseek(2)
/// distinguishes data from holes, and a file that has all of its pages is reserved where it has no data. Any
/// other file system without FIEMAP yields one extent of unknown state.
///
/// # Errors
/// If the kernel fails for another reason than missing support; `name` is for the message.
pub(crate) fn of_blocks(
    file: BorrowedFd<'_>,
    range: LbaRange,
    logical_block: Bytes,
    name: &str,
) -> Result<Vec<Extent>> {
    let unknown = || vec![Extent { range, state: ExtentState::Unknown }];
    let (Some(start), Some(length)) =
        (range.lba.0.checked_mul(logical_block.0), range.nlb.checked_mul(logical_block.0))
    else {
        return Ok(unknown());
    };
    let is_tmpfs = rustix::fs::fstatfs(file).is_ok_and(|kind| kind.f_type as u64 == TMPFS);
    let raw = if is_tmpfs { data(file, start, length) } else { settled_extents(file, start, length, name) };
    match raw {
        Ok(raw) => Ok(fold(&raw, range, logical_block)),
        Err(error) => match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EBADR) => Ok(unknown()),
            _ => Err(Error::io(&error, "map the extents of", name)),
        },
    }
}

/// Returns the byte ranges of the device that hold the file, by the addresses that FIEMAP reports, which are
/// the file system's own.
///
/// # Errors
/// If the file system does not report them.
pub fn on_device(file: BorrowedFd<'_>) -> io::Result<Vec<std::ops::Range<u64>>> {
    let raw = raw_extents(file, 0, u64::MAX)?;
    let placed = raw.iter().filter(|extent| extent.flags & (UNKNOWN | DELALLOC | INLINE) == 0);
    Ok(placed.map(|extent| extent.physical..extent.physical.saturating_add(extent.length)).collect())
}

/// Returns the ranges that lseek(2) reports as data. In file systems other than tmpfs, these may include a
/// reserved block that was read. tmpfs reports a reserved page that was never written as a hole
/// (mm/filemap.c, folio_seek_hole_data); if the file has a page for each of its bytes, everything that is not
/// data is reserved.
fn data(file: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<Vec<RawExtent>> {
    let end = start.saturating_add(length);
    let is_reserved = has_all_pages(file)?;
    let mut found = Vec::new();
    let mut from = start;
    while from < end {
        let logical = match rustix::fs::seek(file, SeekFrom::Data(from)) {
            Err(Errno::NXIO) => end,
            found => found?,
        };
        if is_reserved && logical > from {
            let length = logical - from;
            found.push(RawExtent { logical: from, length, flags: UNWRITTEN, ..RawExtent::default() });
        }
        if logical >= end {
            break;
        }
        from = rustix::fs::seek(file, SeekFrom::Hole(logical))?;
        found.push(RawExtent { logical, length: from - logical, ..RawExtent::default() });
    }
    Ok(found)
}

/// Returns true if a file in tmpfs has exactly as many pages as its length needs. Extra pages of a huge page
/// beyond the end would hide missing ones.
fn has_all_pages(file: BorrowedFd<'_>) -> io::Result<bool> {
    let stat = rustix::fs::fstat(file)?;
    let page = rustix::param::page_size() as u64;
    let allocated = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(STAT_BLOCK);
    let length = u64::try_from(stat.st_size).unwrap_or(0);
    Ok(length > 0 && length.checked_next_multiple_of(page) == Some(allocated))
}

/// Returns the extents. Unwritten ones count as unknown if pages of the range have not yet reached the
/// device.
fn settled_extents(file: BorrowedFd<'_>, start: u64, length: u64, name: &str) -> io::Result<Vec<RawExtent>> {
    // Read before the extents, which include whatever is written back in between.
    let residency = pagecache::residency(file, Bytes(start), Bytes(length), name);
    let unsettled = residency.map(|found| match (found.dirty, found.writeback) {
        (Some(dirty), Some(writeback)) => dirty.max(writeback),
        _ => found.resident,
    });
    let mut raw = raw_extents(file, start, length)?;
    if unsettled.map_or(true, |bytes| bytes > Bytes(0)) {
        raw.iter_mut().filter(|extent| extent.flags & UNWRITTEN != 0).for_each(|one| one.flags |= UNKNOWN);
    }
    Ok(raw)
}

fn raw_extents(file: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<Vec<RawExtent>> {
    let end = start.saturating_add(length);
    let mut found = Vec::new();
    let mut from = start;
    while from < end {
        let batch = one_call(file, from, end - from)?;
        let Some(last) = batch.last().copied() else { break };
        found.extend(batch);
        let next = last.logical.saturating_add(last.length);
        if last.flags & LAST != 0 || next <= from {
            break;
        }
        from = next;
    }
    Ok(found)
}

fn one_call(file: BorrowedFd<'_>, start: u64, length: u64) -> io::Result<Vec<RawExtent>> {
    let mut map = Box::new(RawMap {
        start,
        length,
        flags: 0,
        mapped_extents: 0,
        extent_count: EXTENTS_A_CALL as u32,
        reserved: 0,
        extents: [RawExtent::default(); EXTENTS_A_CALL],
    });
    // SAFETY: the kernel writes at most `extent_count` extents behind the header, for which there is room.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *map) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(map.extents[..(map.mapped_extents as usize).min(EXTENTS_A_CALL)].to_vec())
}

/// Converts the kernel's extents to runs of blocks without gaps. Space between two extents is a hole. A block
/// partly covered by an extent belongs to the extent.
fn fold(raw: &[RawExtent], range: LbaRange, logical_block: Bytes) -> Vec<Extent> {
    let end = range.lba.0.saturating_add(range.nlb);
    let mut runs: Vec<Extent> = Vec::new();
    let mut cursor = range.lba.0;
    for extent in raw {
        let first = (extent.logical / logical_block.0).clamp(cursor, end);
        let after = extent.logical.saturating_add(extent.length).div_ceil(logical_block.0).clamp(first, end);
        add(&mut runs, cursor, first, ExtentState::Hole);
        add(&mut runs, first, after, state_of(extent.flags));
        cursor = after;
    }
    add(&mut runs, cursor, end, ExtentState::Hole);
    runs
}

fn add(runs: &mut Vec<Extent>, first: u64, after: u64, state: ExtentState) {
    if first >= after {
        return;
    }
    match runs.last_mut() {
        Some(last) if last.state == state && last.range.end().0 == first => last.range.nlb += after - first,
        _ => runs.push(Extent { range: LbaRange::new(Lba(first), after - first), state }),
    }
}

fn state_of(flags: u32) -> ExtentState {
    if flags & (UNKNOWN | DELALLOC) != 0 {
        ExtentState::Unknown
    } else if flags & UNWRITTEN != 0 {
        ExtentState::Unwritten
    } else {
        ExtentState::Written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(logical: u64, length: u64, flags: u32) -> RawExtent {
        RawExtent { logical, length, flags, ..RawExtent::default() }
    }

    #[test]
    fn gaps_are_holes_and_neighbours_merge() {
        let range = LbaRange::new(Lba(0), 100);
        let extents =
            [raw(5120, 5120, 0), raw(10240, 5120, 0), raw(15360, 512, UNWRITTEN), raw(20480, 512, DELALLOC)];
        let runs = fold(&extents, range, Bytes(512));
        let expected = [
            (0, 10, ExtentState::Hole),
            (10, 20, ExtentState::Written),
            (30, 1, ExtentState::Unwritten),
            (31, 9, ExtentState::Hole),
            (40, 1, ExtentState::Unknown),
            (41, 59, ExtentState::Hole),
        ];
        let expected: Vec<Extent> =
            expected.map(|(lba, nlb, state)| Extent { range: LbaRange::new(Lba(lba), nlb), state }).to_vec();
        assert_eq!(runs, expected);
    }

    proptest::proptest! {
        /// Whatever a broken file system answers, the runs are in order and cover the range once.
        #[test]
        fn hostile_extents_still_cover_the_range(
            hostile in proptest::collection::vec(proptest::prelude::any::<(u64, u64, u32)>(), 0..8),
            lba in 0_u64..1 << 40,
            nlb in 1_u64..1 << 40,
        ) {
            let extents: Vec<RawExtent> = hostile.iter().map(|(at, length, flags)| raw(*at, *length, *flags)).collect();
            let runs = fold(&extents, LbaRange::new(Lba(lba), nlb), Bytes(4096));
            let mut cursor = lba;
            for run in &runs {
                proptest::prop_assert_eq!(run.range.lba.0, cursor);
                proptest::prop_assert!(run.range.nlb > 0);
                cursor = run.range.end().0;
            }
            proptest::prop_assert_eq!(cursor, lba + nlb);
        }
    }

    #[test]
    fn an_unwritten_file_is_told_from_a_written_one() {
        use std::io::Write as _;
        use std::os::fd::AsFd as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&[1; 8192]).unwrap();
        file.sync_all().unwrap();
        file.set_len(1 << 20).unwrap();
        let runs = of_blocks(file.as_fd(), LbaRange::new(Lba(0), 256), Bytes(4096), "file").unwrap();
        if runs.first().is_some_and(|run| run.state == ExtentState::Unknown) {
            plumb_testkit::skip(&format!("no FIEMAP in {}", directory.path().display()));
            return;
        }
        assert_eq!(runs.first().map(|run| (run.range.nlb, run.state)), Some((2, ExtentState::Written)));
        assert_eq!(runs.last().map(|run| run.state), Some(ExtentState::Hole));
    }

    #[test]
    fn reserved_bytes_that_only_the_page_cache_has_are_not_called_unwritten() {
        use std::io::Write as _;
        use std::os::fd::AsFd as _;
        let mut file = tempfile::tempfile().unwrap();
        let reserved = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1 << 20);
        let extents = |file: &std::fs::File| {
            of_blocks(file.as_fd(), LbaRange::new(Lba(0), 256), Bytes(4096), "file").unwrap()
        };
        if reserved.is_err() || extents(&file).iter().any(|run| run.state != ExtentState::Unwritten) {
            plumb_testkit::skip("the file system of temporary files does not tell reserved blocks");
            return;
        }
        file.write_all(&[1; 8192]).unwrap();
        assert_ne!(extents(&file)[0].state, ExtentState::Unwritten, "written, if not on the device yet");
        file.sync_all().unwrap();
        let states: Vec<_> = extents(&file).iter().map(|run| (run.range.nlb, run.state)).collect();
        assert_eq!(states, [(2, ExtentState::Written), (254, ExtentState::Unwritten)]);
    }
}

//! Laying out a log that is a file: zeroes are written to all of it before it is used.
//!
//! For a block that was only reserved, the file system records with the next flush that it was written;
//! without that record it reads as zeroes. In the mode `protected`, which sends no flush to the log, a power
//! cut would so undo acknowledged writes. In the other modes the records would slow the flushes of the first
//! lap.
//!
//! A file system that never writes in place needs such a record for each write, so a file there cannot hold
//! the log of a protected cache.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use plumb_block::Bytes;
use plumb_cache::Mode;
use plumb_guard::cache::config::CacheConfig;
use plumb_guard::{ByteExtent, Error, Result};
use plumb_linux::layout;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::placement::keeps_unflushed;

/// File systems that write overwritten data elsewhere, by `f_type` of statfs(2) (linux/magic.h, and the
/// sources of ZFS and bcachefs).
const ELSEWHERE: [(u64, &str); 5] = [
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xca45_1a4e, "bcachefs"),
    (0xf2f5_2010, "f2fs"),
    (0x3434, "nilfs2"),
];

/// Progress callback and stop flag of laying out.
pub struct LayoutObserver<'a> {
    /// Stop flag: laying out ends with EINTR once it is set.
    pub stop: &'a AtomicBool,
    /// Progress callback: file, bytes written, total bytes.
    pub progress: &'a mut dyn FnMut(&str, Bytes, Bytes),
}

impl LayoutObserver<'_> {
    /// Writes zeroes to these ranges of a file, in this order, and makes them durable. Ranges count from byte
    /// `begin`. After an error the file is not restored.
    pub(crate) fn write(
        &mut self,
        file: &OwnedFd,
        begin: Bytes,
        shown: &str,
        ranges: &[(Bytes, Bytes)],
    ) -> Result<()> {
        // The path of the descriptor leads to this file, even if its name now leads elsewhere.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let size = ranges.iter().map(|(from, to)| *to - *from).sum();
        let mut before = Bytes(0);
        for (from, to) in ranges {
            let mut progress = |done| (self.progress)(shown, before + done, size);
            layout::write_zeroes(Path::new(&path), begin + *from, begin + *to, self.stop, &mut progress)
                .map_err(|error| {
                    Error::device(shown, &plumb_block::Error { place: shown.to_owned(), ..error })
                })?;
            before += *to - *from;
        }
        Ok(())
    }
}

/// Allocates `size` bytes for a file, or for a part of it, and extends a shorter file, so that a full file
/// system is found before anything is written. After an error the file has its old length.
pub(crate) fn reserve(file: &OwnedFd, part: Option<ByteExtent>, shown: &str, size: Bytes) -> Result<()> {
    let failed = |errno| Error::os(shown, "allocate", errno);
    if let Some(part) = part {
        // The part lies within the file, so the length of the file stays.
        let range = Bytes(part.offset)..Bytes(part.offset + size.0);
        let reserved = plumb_linux::space::reserve(file, range);
        return reserved.or_else(|errno| if errno == Errno::OPNOTSUPP { Ok(()) } else { Err(failed(errno)) });
    }
    let before = rustix::fs::fstat(file).map_err(failed)?.st_size.cast_unsigned();
    match plumb_linux::space::reserve(file, Bytes(0)..size) {
        Ok(()) => Ok(()),
        // If the file system cannot reserve space, laying out finds out.
        Err(Errno::OPNOTSUPP) => rustix::fs::ftruncate(file, before.max(size.0)).map_err(failed),
        // A failed fallocate keeps the space that it allocated, so the old length is restored.
        Err(errno) => rustix::fs::ftruncate(file, before).map_err(failed).and(Err(failed(errno))),
    }
}

/// Returns the configuration with this mode.
///
/// # Errors
/// If the mode is `protected` and a device of the log does not suit it.
pub fn in_mode(config: CacheConfig, mode: Mode) -> Result<CacheConfig> {
    config.legs.iter().try_for_each(|leg| may_hold_log_of(mode, &leg.path))?;
    Ok(CacheConfig { mode, ..config })
}

/// Refuses the mode `protected` for a leg that loses acknowledged writes with the power, and for a file on a
/// file system that never writes in place. Other file systems are trusted, and missing devices are not
/// checked.
pub(crate) fn may_hold_log_of(mode: Mode, leg: &str) -> Result<()> {
    let is_file = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode).is_file();
    if mode != Mode::Protected || !rustix::fs::stat(leg).is_ok_and(is_file) {
        return keeps_unflushed(mode, leg);
    }
    let system = rustix::fs::statfs(leg).ok().and_then(|system| writes_elsewhere(system.f_type as u64));
    let Some(system) = system else { return keeps_unflushed(mode, leg) };
    let found = format!(
        "it is a file on {system}, which writes overwritten data to a new place and records the place only \
         with a flush: in the mode protected, which sends none, a power cut would undo acknowledged writes"
    );
    let remedy = "use the mode write-back, or a log on a block device, or in a file on ext4 or xfs";
    Err(Error::refused(leg, found, remedy))
}

/// Returns the name of the file system if it writes overwritten data elsewhere.
fn writes_elsewhere(kind: u64) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(magic, _)| *magic == kind & 0xffff_ffff).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_that_writes_elsewhere_is_known_however_its_number_is_extended() {
        assert_eq!(writes_elsewhere(0x9123_683e), Some("btrfs"));
        // The signed word of a 32-bit kernel, extended to 64 bits, gives this number.
        assert_eq!(writes_elsewhere(0xffff_ffff_9123_683e), Some("btrfs"));
        // ext4, xfs, tmpfs.
        assert_eq!([0xef53, 0x5846_5342, 0x0102_1994].map(writes_elsewhere), [None; 3]);
    }
}

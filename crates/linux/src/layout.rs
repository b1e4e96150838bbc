//! Preparing a file for a measurement: writes every block of a range with its own pattern, durably.
//!
//! Reads of blocks that were only reserved do not reach the device, and a device may compress or deduplicate
//! repetitive data. So each logical block gets the stamp and the noise of [`Pattern`], generation 0, and a
//! later verification knows the contents of a block that was never overwritten. Zeroes can be written instead
//! where blocks only need to be allocated: the first write to a reserved block also needs file system
//! metadata to become durable.
//!
//! Writes use direct I/O where the file system supports it, in whole device blocks (4 KiB on some), with
//! several large requests in flight. The unaligned rest then goes through the page cache, and is synced on
//! the way.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{
    Bytes, Device as _, Errno, Error, ErrorKind, Lba, LbaRange, Outcome, Pattern, Payload, Pool, PoolShape,
    Queue, QueueOptions, RealClock, Request, Result, Tag, Wait,
};
use rustix::fs::{FileType, Mode, OFlags};

use crate::file::{FileDevice, FileOptions};
use crate::space;

/// Size of one request.
const PIECE: Bytes = Bytes::mib(1);
/// Number of requests in flight.
const DEPTH: u32 = 8;
/// Alignment of memory that direct I/O may require.
const ALIGNMENT: Bytes = Bytes::kib(4);
/// Maximum unsynced data, so that stopping is quick and the reported progress is true.
const SYNC_EVERY: Bytes = Bytes::mib(256);
/// Smallest logical block that can hold a stamp.
const STAMPED_MIN: Bytes = Bytes(32);
/// Block size for stamps if logical blocks are smaller.
const SECTOR: Bytes = Bytes(512);

/// Options for filling a file.
pub struct Filling<'a> {
    /// Seed of the noise.
    pub seed: u64,
    /// Set by another thread to stop; the call then fails with EINTR.
    pub stop: &'a AtomicBool,
    /// Called regularly and at the end with the number of bytes written.
    pub progress: &'a mut dyn FnMut(Bytes),
}

/// Writes the blocks of `path` from byte `from` to byte `to`, and makes them durable (fdatasync). A missing
/// file is created, a file shorter than `to` is extended, and the rest of a longer one is unchanged. `from`
/// and `to` must be multiples of `logical_block`. Block `n` of the file, counted from its start, is `Pattern
/// { seed, lba: n, generation: 0 }`. Blocks of less than 32 bytes cannot hold a stamp; 512 bytes is used for
/// them.
///
/// `filling.progress` is called with the number of bytes of the range written. After an error the caller may
/// remove the partial file.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) for a range off the grid or a path that is not a regular file; fails as
/// open(2) and write(2) do; ENOSPC (or EDQUOT) before anything is written if the file system supports
/// reservation; EINTR when stopped.
pub fn write(path: &Path, from: Bytes, to: Bytes, logical_block: Bytes, filling: Filling<'_>) -> Result<()> {
    let Filling { seed, stop, progress } = filling;
    lay_out(path, from..to, Content { logical_block, seed: Some(seed) }, stop, progress)
}

/// Writes zeroes instead of the stamped blocks of [`write()`]; `from` and `to` must be multiples of 512.
/// `stop` and `progress` are as in [`Filling`].
///
/// # Errors
/// Fails as [`write()`] does.
pub fn write_zeroes(
    path: &Path,
    from: Bytes,
    to: Bytes,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<()> {
    lay_out(path, from..to, Content { logical_block: SECTOR, seed: None }, stop, progress)
}

/// Contents of the blocks to write.
struct Content {
    /// Size of a block, which has one stamp.
    logical_block: Bytes,
    /// Seed of the noise; `None` for zeroes.
    seed: Option<u64>,
}

/// Writes `content` to a range of the file.
fn lay_out(
    path: &Path,
    range: Range<Bytes>,
    content: Content,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<()> {
    let place = path.display().to_string();
    let (Range { start: from, end: to }, Content { logical_block, seed }) = (range, content);
    check(from, to, logical_block, &place)?;
    if from == to {
        return Ok(());
    }
    reserve(path, from, to, &place)?;
    let block = if logical_block < STAMPED_MIN { SECTOR } else { logical_block };
    let mut layout = Layout { place, block, seed, stop, progress, written: Bytes(0), unsynced: Bytes(0) };
    let begins = match direct(path)? {
        Some(device) => layout.past_the_page_cache(&device, from, to)?,
        None => from,
    };
    layout.through_the_page_cache(path, begins, to)
}

fn check(from: Bytes, to: Bytes, logical_block: Bytes, place: &str) -> Result<()> {
    let on_grid = |at: Bytes| at.0.is_multiple_of(logical_block.0);
    if logical_block > Bytes(0) && from <= to && on_grid(from) && on_grid(to) {
        return Ok(());
    }
    let detail = format!(
        "bytes {} to {} in blocks of {} bytes: expected an ascending range of whole blocks",
        from.0, to.0, logical_block.0
    );
    Err(Error::new(ErrorKind::Invalid, "lay out", place).because(detail))
}

/// Creates the file if needed, extends it to at least `to`, and reserves space for the range if the file
/// system can.
fn reserve(path: &Path, from: Bytes, to: Bytes, place: &str) -> Result<()> {
    use rustix::io::Errno as Os;
    let failed = |errno: Os| failed(Errno(errno.raw_os_error()), "reserve", place, Bytes(to.0 - from.0));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)
        .map_err(|errno| Error::io(&errno.into(), "open", place))?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Error::new(ErrorKind::Invalid, "lay out", place).because("it is not a regular file"));
    }
    match space::reserve(&file, from..to) {
        Ok(()) => Ok(()),
        // Not every file system can reserve space; then the writes report a full disk.
        Err(Os::OPNOTSUPP | Os::NOSYS) if stat.st_size.unsigned_abs() < to.0 => {
            rustix::fs::ftruncate(&file, to.0).map_err(failed)
        }
        Err(Os::OPNOTSUPP | Os::NOSYS) => Ok(()),
        Err(errno) => Err(failed(errno)),
    }
}

/// Opens the file for direct I/O, if its file system supports that.
fn direct(path: &Path) -> Result<Option<FileDevice>> {
    match FileDevice::open(path, FileOptions::write_direct(), Arc::new(RealClock::start())) {
        Ok(device) => Ok(Some(device).filter(|device| device.info().dma_alignment <= ALIGNMENT)),
        // Unsupported: no direct I/O. Invalid: the file is shorter than a block.
        Err(error) if matches!(error.kind, ErrorKind::Unsupported | ErrorKind::Invalid) => Ok(None),
        Err(error) => Err(error),
    }
}

fn failed(errno: Errno, operation: &'static str, place: &str, size: Bytes) -> Error {
    let error = Error::new(ErrorKind::Os(errno), operation, place);
    if errno.is_full() {
        return error.because(format!("{size} do not fit there"));
    }
    error
}

/// A range being written.
struct Layout<'a> {
    place: String,
    /// Size of a block, which has one stamp.
    block: Bytes,
    /// Seed of the noise; `None` for zeroes.
    seed: Option<u64>,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Bytes),
    written: Bytes,
    unsynced: Bytes,
}

impl Layout<'_> {
    /// Fills `bytes` with the blocks from number `lba` on.
    fn fill(&self, lba: u64, bytes: &mut [u8]) {
        match self.seed {
            Some(seed) => Pattern { seed, lba: Lba(lba), generation: 0 }.fill(self.block.0 as usize, bytes),
            None => bytes.fill(0),
        }
    }

    /// Counts written bytes and reports progress. Fails with EINTR when stopped.
    fn count(&mut self, length: u64) -> Result<()> {
        self.written += Bytes(length);
        self.unsynced += Bytes(length);
        (self.progress)(self.written);
        if self.stop.load(Ordering::Relaxed) {
            let error = Error::new(ErrorKind::Os(Errno::EINTR), "lay out", self.place.as_str());
            return Err(error.because("stopped as asked"));
        }
        Ok(())
    }

    /// Writes the whole blocks of both the device and the pattern, and flushes. Returns the end of the
    /// written range, which is `from` if the two block sizes do not fit.
    fn past_the_page_cache(&mut self, device: &FileDevice, from: Bytes, to: Bytes) -> Result<Bytes> {
        let (block, sector) = (self.block.0, device.info().logical_block.0);
        let unit = block.max(sector);
        if !unit.is_multiple_of(block.min(sector)) || unit > PIECE.0 || !from.0.is_multiple_of(unit) {
            return Ok(from);
        }
        let end = to.round_down(Bytes(unit)).0;
        let pool = Pool::new(PoolShape { buffer: PIECE, count: DEPTH, alignment: ALIGNMENT })?;
        let mut queue = device.open_queue(QueueOptions { depth: DEPTH, pool: pool.clone() })?;
        let (mut next, mut in_flight) = (from.0, 0);
        while next < end || in_flight > 0 {
            while next < end && in_flight < DEPTH && self.unsynced < SYNC_EVERY {
                let length = (PIECE.0 - PIECE.0 % unit).min(end - next);
                let mut bytes = pool.take(Bytes(length)).ok_or_else(|| {
                    Error::new(ErrorKind::Os(Errno(libc::ENOMEM)), "lay out", self.place.as_str())
                })?;
                self.fill(next / block, &mut bytes);
                let range = LbaRange::new(Lba(next / sector), length / sector);
                // The tag of a write is its length.
                let request = Request::write(Tag(length), range, Payload::Bytes(bytes.freeze()));
                self.submit(&mut *queue, request)?;
                (next, in_flight) = (next + length, in_flight + 1);
            }
            in_flight -= self.reap(&mut *queue)?;
            if in_flight == 0 && (self.unsynced >= SYNC_EVERY || next >= end) {
                self.submit(&mut *queue, Request::flush(Tag(0)))?;
                while self.reap(&mut *queue)? == 0 {}
                self.unsynced = Bytes(0);
            }
        }
        Ok(Bytes(end))
    }

    fn submit(&self, queue: &mut dyn Queue, request: Request) -> Result<()> {
        queue.submit(request).map_err(|_| {
            Error::new(ErrorKind::Invalid, "lay out", self.place.as_str())
                .because("the queue has less room than asked")
        })
    }

    /// Waits for completions and returns their number.
    fn reap(&mut self, queue: &mut dyn Queue) -> Result<u32> {
        let mut completions = Vec::new();
        queue.poll(Wait::ONE, &mut completions)?;
        let mut answered = 0;
        for completion in completions {
            answered += 1;
            match completion.outcome {
                Outcome::Done => self.count(completion.tag.0)?,
                Outcome::Failed(errno) => return Err(failed(errno, "lay out", &self.place, self.written)),
                Outcome::Unknown | Outcome::PowerLost => {
                    return Err(Error::new(ErrorKind::PowerLost, "lay out", self.place.as_str()));
                }
            }
        }
        Ok(answered)
    }

    /// Writes an arbitrary byte range, and syncs the file.
    fn through_the_page_cache(&mut self, path: &Path, from: Bytes, to: Bytes) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let place = self.place.clone();
        let os = |error: &std::io::Error, operation| match error.raw_os_error() {
            Some(code) => failed(Errno(code), operation, &place, to),
            None => Error::io(error, operation, place.as_str()),
        };
        let file = OpenOptions::new().write(true).open(path).map_err(|error| os(&error, "open"))?;
        let sync = |file: &File| file.sync_data().map_err(|error| os(&error, "sync"));
        let (block, mut at, mut bytes) = (self.block.0, from.0, Vec::new());
        while at < to.0 {
            let end = to.0.min(at + PIECE.0);
            // Whole blocks are generated, of which the first and last may be used in part.
            let first = at / block;
            bytes.resize((end.div_ceil(block) - first) as usize * block as usize, 0);
            self.fill(first, &mut bytes);
            let skipped = (at - first * block) as usize;
            let piece = &bytes[skipped..skipped + (end - at) as usize];
            file.write_all_at(piece, at).map_err(|error| os(&error, "lay out"))?;
            self.count(end - at)?;
            if self.unsynced >= SYNC_EVERY {
                sync(&file)?;
                self.unsynced = Bytes(0);
            }
            at = end;
        }
        sync(&file)
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{ExtentState, Stamp};

    use super::*;

    const BLOCK: Bytes = Bytes(512);

    fn lay_out(path: &Path, from: u64, to: u64) -> Result<Bytes> {
        let (stop, mut told) = (AtomicBool::new(false), Bytes(0));
        let filling = Filling { seed: 3, stop: &stop, progress: &mut |done| told = done };
        write(path, Bytes(from), Bytes(to), BLOCK, filling).map(|()| told)
    }

    fn assert_stamped(path: &Path, from: u64, to: u64) {
        let mut bytes = vec![0; (to - from) as usize];
        File::open(path).unwrap().read_exact_at(&mut bytes, from).unwrap();
        for (index, block) in bytes.chunks(512).enumerate() {
            let lba = Lba(from / 512 + index as u64);
            let stamp = Stamp::read(block).unwrap();
            assert_eq!(stamp, Stamp { seed: 3, lba, generation: 0 });
            assert!(stamp.is_whole(block), "block {lba:?}");
        }
    }

    fn assert_written(path: &Path) {
        let clock = Arc::new(RealClock::start());
        let device = FileDevice::open(path, FileOptions::read_buffered(), clock).unwrap();
        let extents = device.extents(LbaRange::new(Lba(0), device.info().blocks())).unwrap();
        let is_written = |state| matches!(state, ExtentState::Written | ExtentState::Unknown);
        assert!(extents.iter().all(|extent| is_written(extent.state)), "{extents:?}");
    }

    #[test]
    fn every_block_is_written_with_its_own_pattern() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        // Not a multiple of the piece, and not of a page.
        let size = (3 << 20) + 1536;
        assert_eq!(lay_out(&path, 0, size).unwrap(), Bytes(size));
        assert_eq!(path.metadata().unwrap().len(), size);
        assert_stamped(&path, 0, size);
        assert_written(&path);
    }

    #[test]
    fn blocks_of_any_length_are_laid_out_to_the_last_byte() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        // Straddling pieces and pages, beginning off every grid, longer than a piece, and shorter than a
        // stamp.
        let lengths: [(u64, u64, u64); 4] =
            [(2300, 0, 1500), (2300, 7, 1000), (1_500_001, 1, 3), (20, 3, 150_000)];
        for (length, first, end) in lengths {
            std::fs::write(&path, vec![9; 100]).unwrap();
            let (from, to) = (first * length, end * length);
            let filling = Filling { seed: 3, stop: &AtomicBool::new(false), progress: &mut |_| {} };
            write(&path, Bytes(from), Bytes(to), Bytes(length), filling).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(bytes.len() as u64, to.max(100), "{length}");
            let unit = if length < 32 { 512 } else { length };
            let mut expected = vec![0; (to.next_multiple_of(unit)) as usize];
            Pattern { seed: 3, lba: Lba(0), generation: 0 }.fill(unit as usize, &mut expected);
            let range = from as usize..to as usize;
            assert!(bytes[range.clone()] == expected[range], "{length} from {from} to {to}");
        }
    }

    #[test]
    fn stamps_of_another_length_than_the_devices_blocks_go_past_the_page_cache_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for length in [512, 4096, 65_536] {
            let filling = Filling { seed: 3, stop: &AtomicBool::new(false), progress: &mut |_| {} };
            write(&path, Bytes(0), Bytes::mib(3), Bytes(length), filling).unwrap();
            if direct(&path).unwrap().is_none() {
                return plumb_testkit::skip("no direct I/O in the temporary directory");
            }
            let file = File::open(&path).unwrap();
            let residency = crate::pagecache::residency(&file, Bytes(0), Bytes::mib(3), "file").unwrap();
            assert_eq!(residency.resident, Bytes(0), "{length}");
            let mut expected = vec![0; 3 << 20];
            Pattern { seed: 3, lba: Lba(0), generation: 0 }.fill(length as usize, &mut expected);
            assert!(std::fs::read(&path).unwrap() == expected, "{length}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn only_the_range_is_touched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![9; 4 << 20]).unwrap();
        for (from, to) in [(1 << 20, 2 << 20), (512, 1536)] {
            assert_eq!(lay_out(&path, from, to).unwrap(), Bytes(to - from));
            assert_stamped(&path, from, to);
        }
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 4 << 20);
        for untouched in [0..512, 1536..1 << 20, 2 << 20..4 << 20] {
            assert!(bytes[untouched.clone()].iter().all(|byte| *byte == 9), "{untouched:?}");
        }
        // Growing it.
        assert_eq!(lay_out(&path, 4 << 20, 5 << 20).unwrap(), Bytes::mib(1));
        assert_stamped(&path, 4 << 20, 5 << 20);
        assert_eq!(path.metadata().unwrap().len(), 5 << 20);
    }

    #[test]
    fn zeroes_are_written_and_not_only_reserved() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![9; 5 << 20]).unwrap();
        let (stop, mut told) = (AtomicBool::new(false), Bytes(0));
        write_zeroes(&path, Bytes(4096), Bytes::mib(8), &stop, &mut |done| told = done).unwrap();
        assert_eq!(told, Bytes((8 << 20) - 4096));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 8 << 20);
        assert!(bytes[..4096].iter().all(|byte| *byte == 9) && bytes[4096..].iter().all(|byte| *byte == 0));
        assert_written(&path);
    }

    #[test]
    fn stopping_leaves_the_file_for_the_caller() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let stop = AtomicBool::new(false);
        let mut progress = |done: Bytes| stop.store(done >= Bytes::mib(2), Ordering::Relaxed);
        let filling = Filling { seed: 3, stop: &stop, progress: &mut progress };
        let stopped = write(&path, Bytes(0), Bytes::mib(64), BLOCK, filling).unwrap_err();
        assert_eq!(stopped.errno(), Some(Errno::EINTR), "{stopped}");
        assert!(path.exists());
    }

    #[test]
    fn a_full_disk_and_nonsense_are_said_clearly() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        // More than any disk has, less than the largest file.
        let full = lay_out(&path, 0, 15_000 << 30).unwrap_err();
        assert!(full.errno().is_some_and(|errno| errno.is_full() || errno == Errno(libc::EFBIG)), "{full}");
        assert!(
            full.errno().is_some_and(|errno| !errno.is_full()) || full.to_string().contains("do not fit")
        );
        for (from, to) in [(0, 1000), (100, 1024), (1024, 512)] {
            assert_eq!(lay_out(&path, from, to).unwrap_err().kind, ErrorKind::Invalid);
        }
        let none = write(
            &path,
            Bytes(0),
            Bytes(64),
            Bytes(0),
            Filling { seed: 3, stop: &AtomicBool::new(false), progress: &mut |_| {} },
        );
        assert_eq!(none.unwrap_err().kind, ErrorKind::Invalid, "blocks of nothing");
        assert!(lay_out(directory.path(), 0, 512).is_err());
    }

    #[test]
    fn memory_is_laid_out_too() {
        let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
            return plumb_testkit::skip("no tmpfs at /dev/shm");
        };
        let path = directory.path().join("file");
        lay_out(&path, 0, 3 << 20).unwrap();
        assert_stamped(&path, 0, 3 << 20);
    }
}

//! A file laid out for measuring: every block of a range written with its own pattern, durable.
//!
//! Blocks that were only reserved are read without the device, and bytes that compress or repeat may be stored elsewhere
//! or not at all; so each logical block gets the stamp and the noise of [`Pattern`], generation 0, and whoever
//! verifies later knows what a block must hold before it was ever overwritten.
//!
//! The bytes go past the page cache where the file system allows it, several large requests at once, while this thread
//! makes the next ones; what is left over at the ends of a range, off the grid of direct I/O, goes through the page cache
//! after them. Where direct I/O is refused all of it does, and is synced on the way.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{
    Buffer, BufferMut, Bytes, Completion, Device as _, Errno, Error, ErrorKind, Lba, LbaRange, Outcome,
    Pattern, Payload, Pool, PoolShape, Queue, QueueOptions, RealClock, Request, Result, Tag, Wait,
};
use rustix::fs::{FallocateFlags, FileType, Mode, OFlags};

use crate::file::{FileDevice, FileOptions};

/// How much one request writes.
const PIECE: Bytes = Bytes::mib(1);
/// How many requests are in flight.
const DEPTH: u32 = 8;
/// What direct I/O may ask of memory.
const ALIGNMENT: Bytes = Bytes::kib(4);
/// How much may be unsynced, so that stopping is quick and the progress is true.
const SYNC_EVERY: Bytes = Bytes::mib(256);
/// The least a logical block may be to be stamped.
const STAMPED_MIN: Bytes = Bytes(32);
/// What is stamped instead where logical blocks are less.
const SECTOR: Bytes = Bytes(512);

/// How a file is filled.
pub struct Filling<'a> {
    /// The seed of the random bytes.
    pub seed: u64,
    /// Set by somebody else to stop: it then ends with EINTR.
    pub stop: &'a AtomicBool,
    /// Told how many bytes of the file are written, now and then, and at the end.
    pub progress: &'a mut dyn FnMut(Bytes),
}

/// Writes the blocks of `path` from byte `from` to byte `to`, and makes them durable (fdatasync). A file that is not
/// there is made, one that is shorter than `to` grows, the rest of a longer one stays as it is. `from`, `to` are
/// multiples of `logical_block`; block `n` of the file, counted from its start, is
/// `Pattern { seed, lba: n, generation: 0 }`. Blocks of less than 32 bytes hold no stamp: as if they were of 512.
///
/// `filling.progress` is told how many bytes of the range are written. On any error the file stays as it is then, for
/// the caller to remove.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) for a range off the grid and for what is no regular file; as open(2) and
/// write(2); ENOSPC (or EDQUOT) before anything is written where the file system can reserve; EINTR when stopped.
pub fn write(path: &Path, from: Bytes, to: Bytes, logical_block: Bytes, filling: Filling<'_>) -> Result<()> {
    let place = path.display().to_string();
    check(from, to, logical_block, &place)?;
    if from == to {
        return Ok(());
    }
    reserve(path, from, to, &place)?;
    let block = if logical_block < STAMPED_MIN { SECTOR } else { logical_block };
    let Filling { seed, stop, progress } = filling;
    let mut blocks = Blocks::new(seed, block);
    let mut written = Bytes(0);
    for (device, part) in parts(path, from, to)? {
        let pool = Pool::new(PoolShape { buffer: PIECE, count: DEPTH, alignment: ALIGNMENT })?;
        let queue = device.open_queue(QueueOptions { depth: DEPTH, pool: pool.clone() })?;
        let layout = Layout {
            queue,
            pool,
            place: &place,
            to: Bytes(part.end),
            blocks: &mut blocks,
            device_block: device.info().logical_block,
            stop,
            progress,
            next: Bytes(part.start),
            written,
            unsynced: Bytes(0),
            completions: Vec::with_capacity(DEPTH as usize),
            in_flight: 0,
        };
        written = layout.run()?;
    }
    Ok(())
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

/// Makes the file if need be, at least `to` long, with room for the range if the file system can reserve it.
fn reserve(path: &Path, from: Bytes, to: Bytes, place: &str) -> Result<()> {
    use rustix::io::Errno as Os;
    let failed = |errno: Os| failed(Errno(errno.raw_os_error()), "reserve", place, Bytes(to.0 - from.0));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH)
        .map_err(|errno| Error::io(&errno.into(), "open", place))?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Error::new(ErrorKind::Invalid, "lay out", place).because("it is no regular file"));
    }
    // Asked first, because ext4 reserves until the disk is full before it says so.
    let missing = to.0.saturating_sub(from.0.max(stat.st_size.unsigned_abs()));
    let system = rustix::fs::fstatvfs(&file).map_err(failed)?;
    // A file system without a size (ramfs) does not say.
    if system.f_blocks > 0 && system.f_bavail.saturating_mul(system.f_frsize) < missing {
        return Err(failed(Os::NOSPC));
    }
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), from.0, to.0 - from.0) {
        Ok(()) => Ok(()),
        // Not every file system can reserve; writing then finds out.
        Err(Os::OPNOTSUPP | Os::NOSYS) if stat.st_size.unsigned_abs() < to.0 => {
            rustix::fs::ftruncate(&file, to.0).map_err(failed)
        }
        Err(Os::OPNOTSUPP | Os::NOSYS) => Ok(()),
        Err(errno) => Err(failed(errno)),
    }
}

/// The range in parts, each with the file as the device to write it through: what lies on the grid of direct I/O past
/// the page cache, if its file system has that, and then the rest.
fn parts(path: &Path, from: Bytes, to: Bytes) -> Result<Vec<(FileDevice, Range<u64>)>> {
    let clock = || Arc::new(RealClock::start());
    let buffered =
        || FileDevice::open(path, FileOptions::write_buffered().logical_block(Some(Bytes(1))), clock());
    let direct = match FileDevice::open(path, FileOptions::write_direct(), clock()) {
        Ok(device) => Some(device).filter(|device| device.info().dma_alignment <= ALIGNMENT),
        // Unsupported: no direct I/O there. Invalid: the file is shorter than a block of it.
        Err(error) if matches!(error.kind, ErrorKind::Unsupported | ErrorKind::Invalid) => None,
        Err(error) => return Err(error),
    };
    let Some(device) = direct else { return Ok(vec![(buffered()?, from.0..to.0)]) };
    let block = device.info().logical_block;
    let (first, end) = (from.0.next_multiple_of(block.0), to.round_down(block).0);
    if first >= end {
        return Ok(vec![(buffered()?, from.0..to.0)]);
    }
    let mut parts = vec![(device, first..end)];
    for rest in [from.0..first, end..to.0] {
        if !rest.is_empty() {
            parts.push((buffered()?, rest));
        }
    }
    Ok(parts)
}

/// A file that is nothing but blocks with the patterns of a seed.
struct Blocks {
    seed: u64,
    length: usize,
    /// The last block of which only a part was asked for: the next piece begins with what is left of it.
    cut: Vec<u8>,
    cut_lba: Option<u64>,
}

impl Blocks {
    fn new(seed: u64, logical_block: Bytes) -> Self {
        Self { seed, length: logical_block.0 as usize, cut: Vec::new(), cut_lba: None }
    }

    /// The bytes from `offset` on.
    fn fill(&mut self, offset: Bytes, into: &mut [u8]) {
        let (lba, skipped) = (offset.0 / self.length as u64, (offset.0 % self.length as u64) as usize);
        let head_length = if skipped == 0 { 0 } else { (self.length - skipped).min(into.len()) };
        let (head, rest) = into.split_at_mut(head_length);
        let (blocks, tail) = rest.split_at_mut(rest.len() - rest.len() % self.length);
        if !head.is_empty() {
            head.copy_from_slice(&self.cut(lba)[skipped..skipped + head_length]);
        }
        let next = lba + u64::from(skipped > 0);
        self.of(next).fill(self.length, blocks);
        if !tail.is_empty() {
            let last = next + (blocks.len() / self.length) as u64;
            tail.copy_from_slice(&self.cut(last)[..tail.len()]);
        }
    }

    fn of(&self, lba: u64) -> Pattern {
        Pattern { seed: self.seed, lba: Lba(lba), generation: 0 }
    }

    fn cut(&mut self, lba: u64) -> &[u8] {
        if self.cut_lba != Some(lba) {
            let pattern = self.of(lba);
            self.cut.resize(self.length, 0);
            pattern.fill(self.length, &mut self.cut);
            self.cut_lba = Some(lba);
        }
        &self.cut
    }
}

fn failed(errno: Errno, operation: &'static str, place: &str, size: Bytes) -> Error {
    let error = Error::new(ErrorKind::Os(errno), operation, place);
    if errno.is_full() {
        return error.because(format!("{size} do not fit there"));
    }
    error
}

/// A part of a range being written. The tag of a write is its length, that of a flush 0.
struct Layout<'a> {
    queue: Box<dyn Queue>,
    pool: Pool,
    place: &'a str,
    to: Bytes,
    blocks: &'a mut Blocks,
    device_block: Bytes,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Bytes),
    /// What is written next.
    next: Bytes,
    written: Bytes,
    unsynced: Bytes,
    completions: Vec<Completion>,
    in_flight: u32,
}

impl Layout<'_> {
    /// Writes it; how much is written then, with what was before.
    fn run(mut self) -> Result<Bytes> {
        while self.next < self.to || self.in_flight > 0 {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Os(Errno::EINTR), "lay out", self.place)
                    .because("stopped as asked"));
            }
            if self.unsynced >= SYNC_EVERY {
                self.flush()?;
            } else if self.next < self.to
                && let Some(buffer) = self.pool.take(self.next_length())
            {
                self.submit(buffer)?;
                self.reap(Wait::NONE)?;
            } else {
                self.reap(Wait::ONE)?;
            }
        }
        self.flush()?;
        Ok(self.written)
    }

    fn next_length(&self) -> Bytes {
        PIECE.min(Bytes(self.to.0 - self.next.0))
    }

    fn submit(&mut self, mut buffer: BufferMut) -> Result<()> {
        self.blocks.fill(self.next, &mut buffer);
        let bytes: Buffer = buffer.freeze();
        let length = bytes.len() as u64;
        let range = LbaRange::new(Lba(self.next.0 / self.device_block.0), length / self.device_block.0);
        self.hand_over(Request::write(Tag(length), range, Payload::Bytes(bytes)))?;
        self.next += Bytes(length);
        Ok(())
    }

    fn hand_over(&mut self, request: Request) -> Result<()> {
        self.in_flight += 1;
        self.queue.submit(request).map_err(|_| {
            Error::new(ErrorKind::Invalid, "lay out", self.place)
                .because("the queue has less room than asked")
        })
    }

    /// Fetches what has completed.
    fn reap(&mut self, wait: Wait) -> Result<()> {
        self.queue.poll(wait, &mut self.completions)?;
        for completion in self.completions.drain(..) {
            self.in_flight -= 1;
            let length = Bytes(completion.tag.0);
            match completion.outcome {
                Outcome::Done => {
                    self.written += length;
                    self.unsynced += length;
                }
                Outcome::Failed(errno) => return Err(failed(errno, "lay out", self.place, self.to)),
                Outcome::Unknown | Outcome::PowerLost => {
                    return Err(Error::new(ErrorKind::PowerLost, "lay out", self.place));
                }
            }
        }
        (self.progress)(self.written);
        Ok(())
    }

    /// Waits for everything, and makes it durable.
    fn flush(&mut self) -> Result<()> {
        while self.in_flight > 0 {
            self.reap(Wait::ONE)?;
        }
        self.hand_over(Request::flush(Tag(0)))?;
        while self.in_flight > 0 {
            self.reap(Wait::ONE)?;
        }
        self.unsynced = Bytes(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::AtomicBool;

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

    #[test]
    fn every_block_is_written_with_its_own_pattern() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        // Not a multiple of the piece, and not of a page.
        let size = (3 << 20) + 1536;
        assert_eq!(lay_out(&path, 0, size).unwrap(), Bytes(size));
        assert_eq!(path.metadata().unwrap().len(), size);
        assert_stamped(&path, 0, size);
        let device =
            FileDevice::open(&path, FileOptions::read_buffered(), Arc::new(RealClock::start())).unwrap();
        let extents = device.extents(LbaRange::new(Lba(0), device.info().blocks())).unwrap();
        let is_written = |state| matches!(state, ExtentState::Written | ExtentState::Unknown);
        assert!(extents.iter().all(|extent| is_written(extent.state)), "{extents:?}");
    }

    #[test]
    fn blocks_of_any_length_are_laid_out_to_the_last_byte() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        // Straddling pieces and pages, beginning off every grid, longer than a piece, and shorter than a stamp.
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

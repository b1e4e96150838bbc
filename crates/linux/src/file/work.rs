//! The system calls of one request: a state machine without any I/O, shared by both engines.
//!
//! Most requests need one call. More are needed after a short transfer, to make zeroes durable, or when one
//! way to write zeroes is not supported and the next is tried. The buffer is not stored here: a call gives
//! the position in it.
//!
//! Fallocate and discard use the file description that claims a block device, other calls the queue's own.
//! While one description claims the device, the kernel refuses to drop dirty pages of a range through any
//! other (EBUSY, block/bdev.c truncate_bdev_range).

use plumb_block::{Caching, DurableWrite, Errno, FlushCall, Lba, Op, Outcome, Request};
use rustix::io::ReadWriteFlags;

use super::uncached::DONTCACHE;
use super::zeroes::ZEROES_BYTES;
use super::{Grid, TargetKind};

/// `RWF_ATOMIC` of include/uapi/linux/fs.h, Linux 6.11: the write is atomic or refused. It is also refused
/// for memory registered with a ring (`generic_atomic_write_valid` in fs/read_write.c).
pub(crate) const ATOMIC: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x40);

/// One system call. Offsets and lengths are bytes of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// Read `length` bytes at `offset` into the buffer from position `done` on, with `flags` of preadv2(2).
    Read { offset: u64, length: u64, done: u64, flags: ReadWriteFlags },
    /// Write `length` bytes at `offset` from the buffer from position `done` on, with `flags` of pwritev2(2).
    Write { offset: u64, length: u64, done: u64, flags: ReadWriteFlags },
    /// Write `length` bytes of [`zeroes`](super::zeroes::zeroes) at `offset`, with `flags` of pwritev2(2).
    WriteZeroes { offset: u64, length: u64, flags: ReadWriteFlags },
    /// fallocate(2) in `mode`.
    Fallocate { mode: i32, offset: u64, length: u64 },
    /// BLKDISCARD.
    Discard { offset: u64, length: u64 },
    /// Sync of the whole file by this call.
    Flush(FlushCall),
    /// ftruncate(2) to zero, only for append-only files.
    Truncate,
    /// msync(2) of the pages that hold `length` bytes at `offset`, only for mapped targets.
    SyncPages { offset: u64, length: u64 },
}

/// State of a request after the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Another call is needed.
    Again,
    /// The request is complete.
    Ended(Outcome),
    /// The request failed in its flush: the device must be latched.
    Latching(Errno),
}

/// A request in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    stage: Stage,
    offset: u64,
    length: u64,
    done: u64,
    /// Unit to which a short direct transfer is rounded down, so that the rest starts on the grid.
    grain: u64,
    /// Flags of every transfer of the request.
    flags: ReadWriteFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Read,
    Write {
        durable: bool,
        /// True for a copy into a mapping, whose durability needs a separate call.
        mapped: bool,
    },
    /// Truncation before a write at offset 0 of an append-only file.
    Truncate {
        durable: bool,
    },
    /// Sync after a durable write to a mapping.
    WriteSync,
    Flush(FlushCall),
    PunchHole,
    Discard,
    Zero {
        way: ZeroWay,
        then: ZeroRest,
    },
    /// Sync after durable zeroes.
    ZeroSync(FlushCall),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ZeroWay {
    PunchHole,
    ZeroRange,
    Bytes,
}

/// Parameters for the next step after one way to write zeroes succeeded or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ZeroRest {
    fua: bool,
    fast_only: bool,
    kind: TargetKind,
    durable_write: DurableWrite,
}

impl Work {
    /// Returns the work for `request` on a target of `blocks` logical blocks, or the error number with which
    /// it fails immediately.
    #[inline]
    pub(crate) fn admit(
        request: &Request,
        grid: &Grid,
        blocks: u64,
        latched: Option<Errno>,
    ) -> Result<Self, Errno> {
        let stage = match request.op {
            Op::Read => Stage::Read,
            Op::Write { fua } if grid.append && request.range.lba == Lba(0) => {
                Stage::Truncate { durable: fua }
            }
            Op::Write { fua } => Stage::Write { durable: fua, mapped: grid.caching == Caching::Mapped },
            Op::Flush => {
                return match latched {
                    Some(errno) => Err(errno),
                    None => Ok(Self::flush(grid.flush)),
                };
            }
            Op::Discard => match grid.kind {
                TargetKind::RegularFile => Stage::PunchHole,
                TargetKind::BlockDevice => Stage::Discard,
            },
            Op::WriteZeroes { fua, no_hole, fast_only } => {
                let durable_write = grid.durable_write;
                let then = ZeroRest { fua, fast_only, kind: grid.kind, durable_write };
                Stage::Zero { way: if no_hole { ZeroWay::ZeroRange } else { ZeroWay::PunchHole }, then }
            }
        };
        let range = request.range;
        let within = range.nlb > 0 && range.lba.0.checked_add(range.nlb).is_some_and(|end| end <= blocks);
        if !within {
            return Err(Errno::EINVAL);
        }
        let length = grid.logical_block * range.nlb;
        let is_transfer = matches!(request.op, Op::Read | Op::Write { .. });
        if !request.carries(length) || is_transfer && length > grid.transfer_max {
            return Err(Errno::EINVAL);
        }
        if request.op != Op::Read && !grid.writable {
            return Err(Errno::EROFS);
        }
        match request.op {
            Op::Discard if !grid.can_discard => return Err(Errno::EOPNOTSUPP),
            // The kernel would write the zeroes itself instead of reporting that the device cannot.
            Op::WriteZeroes { no_hole: true, fast_only: true, .. } if !grid.fast_zeroes => {
                return Err(Errno::EOPNOTSUPP);
            }
            _ => {}
        }
        let grain = if grid.caching == Caching::Direct { grid.logical_block.0 } else { 1 };
        let offset = range.lba.0 * grid.logical_block.0;
        Ok(Self { stage, offset, length: length.0, done: 0, grain, flags: flags_of(stage, grid) })
    }

    const fn flush(call: FlushCall) -> Self {
        let flags = ReadWriteFlags::empty();
        Self { stage: Stage::Flush(call), offset: 0, length: 0, done: 0, grain: 1, flags }
    }

    /// Returns the next system call.
    #[inline]
    pub(crate) fn call(&self) -> Call {
        let (offset, length, done) = (self.offset + self.done, self.length - self.done, self.done);
        let flags = self.flags;
        match self.stage {
            Stage::Read => Call::Read { offset, length, done, flags },
            Stage::Write { .. } => Call::Write { offset, length, done, flags },
            Stage::Truncate { .. } => Call::Truncate,
            Stage::WriteSync => Call::SyncPages { offset: self.offset, length: self.length },
            Stage::Flush(call) | Stage::ZeroSync(call) => Call::Flush(call),
            Stage::Discard => Call::Discard { offset, length },
            Stage::PunchHole | Stage::Zero { way: ZeroWay::PunchHole, .. } => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                Call::Fallocate { mode, offset, length }
            }
            Stage::Zero { way: ZeroWay::ZeroRange, .. } => {
                let mode = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
                Call::Fallocate { mode, offset, length }
            }
            Stage::Zero { way: ZeroWay::Bytes, .. } => {
                Call::WriteZeroes { offset, length: length.min(ZEROES_BYTES as u64), flags }
            }
        }
    }

    /// Processes the result of the last [`call`](Self::call): bytes moved (0 for calls that move none), or an
    /// error number.
    #[inline]
    pub(crate) fn answered(&mut self, answer: Result<u64, Errno>) -> Progress {
        match answer {
            // Fast path for the usual result: everything in one call.
            Ok(moved) if moved == self.length && self.is_plain() => Progress::Ended(Outcome::Done),
            Ok(moved) => self.succeeded(moved),
            Err(Errno(libc::EINTR)) => Progress::Again,
            Err(errno) => self.failed(errno),
        }
    }

    /// Returns true if the request is complete once all bytes were moved.
    #[inline]
    fn is_plain(&self) -> bool {
        matches!(self.stage, Stage::Read | Stage::Write { mapped: false, .. })
    }

    fn succeeded(&mut self, moved: u64) -> Progress {
        match self.stage {
            Stage::Truncate { durable } => {
                self.stage = Stage::Write { durable, mapped: false };
                Progress::Again
            }
            Stage::Write { durable: true, mapped: true } => {
                match self.moved(moved, Progress::Ended(Outcome::Done)) {
                    Progress::Ended(Outcome::Done) => {
                        self.stage = Stage::WriteSync;
                        Progress::Again
                    }
                    other => other,
                }
            }
            Stage::Read | Stage::Write { .. } => self.moved(moved, Progress::Ended(Outcome::Done)),
            Stage::Zero { way: ZeroWay::Bytes, then } => {
                match self.moved(moved, Progress::Ended(Outcome::Done)) {
                    Progress::Ended(Outcome::Done) => self.zeroed(then),
                    other => other,
                }
            }
            Stage::Zero { then, .. } => self.zeroed(then),
            Stage::WriteSync | Stage::Flush(_) | Stage::PunchHole | Stage::Discard | Stage::ZeroSync(_) => {
                Progress::Ended(Outcome::Done)
            }
        }
    }

    fn moved(&mut self, moved: u64, when_all: Progress) -> Progress {
        let moved = if self.done + moved >= self.length { moved } else { moved - moved % self.grain };
        if moved == 0 {
            // End of a file that has shrunk: the requested bytes do not exist.
            return Progress::Ended(Outcome::Failed(Errno::EIO));
        }
        self.done += moved;
        if self.done >= self.length { when_all } else { Progress::Again }
    }

    fn zeroed(&mut self, then: ZeroRest) -> Progress {
        if then.fua {
            self.stage = Stage::ZeroSync(match then.durable_write {
                DurableWrite::Dsync => FlushCall::Fdatasync,
                DurableWrite::Sync => FlushCall::Fsync,
            });
            return Progress::Again;
        }
        Progress::Ended(Outcome::Done)
    }

    fn failed(&mut self, errno: Errno) -> Progress {
        match self.stage {
            Stage::WriteSync | Stage::Flush(_) | Stage::ZeroSync(_) => Progress::Latching(errno),
            Stage::Write { durable: true, mapped: false } if may_be_of_the_sync(errno) => {
                Progress::Latching(errno)
            }
            Stage::Zero { way, then } if errno == Errno::EOPNOTSUPP => match next_way(way, then) {
                Some(way) => {
                    self.stage = Stage::Zero { way, then };
                    Progress::Again
                }
                None => Progress::Ended(Outcome::Failed(errno)),
            },
            _ => Progress::Ended(Outcome::Failed(errno)),
        }
    }
}

/// Returns the flags for the transfers of a request.
#[inline]
fn flags_of(stage: Stage, grid: &Grid) -> ReadWriteFlags {
    let caching = match grid.caching {
        Caching::DropBehind => DONTCACHE,
        Caching::Cached | Caching::Direct | Caching::Mapped => ReadWriteFlags::empty(),
    };
    let caching = match stage {
        Stage::Write { mapped: false, .. } if grid.untorn => caching | ATOMIC,
        _ => caching,
    };
    match (stage, grid.durable_write) {
        (
            Stage::Write { durable: true, mapped: false } | Stage::Truncate { durable: true },
            DurableWrite::Dsync,
        ) => caching | ReadWriteFlags::DSYNC,
        (
            Stage::Write { durable: true, mapped: false } | Stage::Truncate { durable: true },
            DurableWrite::Sync,
        ) => caching | ReadWriteFlags::SYNC,
        _ => caching,
    }
}

/// Returns true if a failed durable write may have failed in its sync. The excluded errors occur before the
/// kernel has written anything (mm/filemap.c generic_write_checks, fs/read_write.c).
fn may_be_of_the_sync(errno: Errno) -> bool {
    !matches!(
        errno.0,
        libc::EINVAL | libc::EOPNOTSUPP | libc::EFBIG | libc::EROFS | libc::EPERM | libc::EBADF
    )
}

/// Returns the next way to write zeroes if `way` is not supported, if there is one.
fn next_way(way: ZeroWay, then: ZeroRest) -> Option<ZeroWay> {
    match way {
        // On a block device, zero range falls back to writing zeroes, which is not fast.
        ZeroWay::PunchHole if then.fast_only && then.kind == TargetKind::BlockDevice => None,
        ZeroWay::PunchHole => Some(ZeroWay::ZeroRange),
        ZeroWay::ZeroRange if then.fast_only => None,
        ZeroWay::ZeroRange => Some(ZeroWay::Bytes),
        ZeroWay::Bytes => None,
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Bytes, LbaRange, Pattern, Payload, Tag};

    use super::*;

    const GRID: Grid = Grid {
        kind: TargetKind::RegularFile,
        caching: Caching::Direct,
        flush: FlushCall::Fdatasync,
        durable_write: DurableWrite::Dsync,
        untorn: false,
        append: false,
        writable: true,
        logical_block: Bytes(512),
        transfer_max: Bytes(1 << 20),
        can_discard: true,
        fast_zeroes: true,
    };

    const NONE: ReadWriteFlags = ReadWriteFlags::empty();

    fn write(lba: u64, nlb: u64, fua: bool) -> Request {
        let pattern = Payload::Pattern(Pattern { seed: 0, lba: Lba(lba), generation: 0 });
        let range = LbaRange::new(Lba(lba), nlb);
        if fua { Request::write_fua(Tag(0), range, pattern) } else { Request::write(Tag(0), range, pattern) }
    }

    fn zeroes_of(no_hole: bool, fast_only: bool) -> Request {
        let op = Op::WriteZeroes { fua: true, no_hole, fast_only };
        Request { op, ..Request::discard(Tag(0), LbaRange::new(Lba(0), 256)) }
    }

    fn admit(request: &Request) -> Result<Work, Errno> {
        Work::admit(request, &GRID, 1000, None)
    }

    #[test]
    fn untorn_writes_carry_the_flag_and_nothing_else_does() {
        let grid = Grid { untorn: true, ..GRID };
        for (durable, flags) in [(false, ATOMIC), (true, ATOMIC | ReadWriteFlags::DSYNC)] {
            assert_eq!(flags_of(Stage::Write { durable, mapped: false }, &grid), flags);
        }
        assert_eq!(flags_of(Stage::Read, &grid), ReadWriteFlags::empty());
        assert_eq!(flags_of(Stage::Write { durable: false, mapped: false }, &GRID), ReadWriteFlags::empty());
    }

    #[test]
    fn a_short_transfer_goes_on_from_the_grid() {
        let mut work = admit(&write(2, 8, false)).unwrap();
        assert_eq!(work.call(), Call::Write { offset: 1024, length: 4096, done: 0, flags: NONE });
        assert_eq!(work.answered(Ok(1500)), Progress::Again);
        assert_eq!(work.call(), Call::Write { offset: 2048, length: 3072, done: 1024, flags: NONE });
        assert_eq!(work.answered(Err(Errno(libc::EINTR))), Progress::Again);
        assert_eq!(work.answered(Ok(3072)), Progress::Ended(Outcome::Done));
        let mut nothing = admit(&write(2, 8, false)).unwrap();
        assert_eq!(nothing.answered(Ok(100)), Progress::Ended(Outcome::Failed(Errno::EIO)));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for range in [(0, 0), (999, 2), (1000, 1), (u64::MAX, 1), (1, u64::MAX)] {
            assert_eq!(admit(&write(range.0, range.1, false)), Err(Errno::EINVAL), "{range:?}");
        }
        let empty = Request { payload: Payload::None, ..write(0, 1, false) };
        assert_eq!(admit(&empty), Err(Errno::EINVAL), "a write without bytes");
        let read_only = Grid { writable: false, ..GRID };
        assert_eq!(Work::admit(&write(0, 1, false), &read_only, 1000, None), Err(Errno::EROFS));
        let small = Grid { transfer_max: Bytes(4096), ..GRID };
        assert_eq!(Work::admit(&write(0, 9, false), &small, 1000, None), Err(Errno::EINVAL), "too large");
        let latched = Work::admit(&Request::flush(Tag(0)), &GRID, 1000, Some(Errno::EIO));
        assert_eq!(latched, Err(Errno::EIO));
    }

    #[test]
    fn failed_flushes_and_durable_writes_latch_but_refusals_do_not() {
        let mut flush = admit(&Request::flush(Tag(0))).unwrap();
        assert_eq!(flush.answered(Err(Errno::EIO)), Progress::Latching(Errno::EIO));
        let mut durable = admit(&write(0, 1, true)).unwrap();
        assert_eq!(durable.answered(Err(Errno::ENOSPC)), Progress::Latching(Errno::ENOSPC));
        assert_eq!(durable.answered(Err(Errno::EINVAL)), Progress::Ended(Outcome::Failed(Errno::EINVAL)));
        let mut plain = admit(&write(0, 1, false)).unwrap();
        assert_eq!(plain.answered(Err(Errno::EIO)), Progress::Ended(Outcome::Failed(Errno::EIO)));
    }

    #[test]
    fn a_durable_write_to_a_mapping_is_a_copy_and_a_sync_of_its_pages() {
        let grid = Grid { caching: Caching::Mapped, ..GRID };
        let mut work = Work::admit(&write(2, 8, true), &grid, 1000, None).unwrap();
        assert_eq!(work.call(), Call::Write { offset: 1024, length: 4096, done: 0, flags: NONE });
        assert_eq!(work.answered(Ok(1000)), Progress::Again);
        assert_eq!(work.answered(Ok(3096)), Progress::Again);
        assert_eq!(work.call(), Call::SyncPages { offset: 1024, length: 4096 });
        assert_eq!({ work }.answered(Err(Errno::EIO)), Progress::Latching(Errno::EIO));
        assert_eq!(work.answered(Ok(0)), Progress::Ended(Outcome::Done));
        let mut copy = Work::admit(&write(2, 8, true), &grid, 1000, None).unwrap();
        let failed = Progress::Ended(Outcome::Failed(Errno::EIO));
        assert_eq!(copy.answered(Err(Errno::EIO)), failed, "no sync has failed, so nothing is latched");
        let mut plain = Work::admit(&write(2, 8, false), &grid, 1000, None).unwrap();
        assert_eq!(plain.answered(Ok(4096)), Progress::Ended(Outcome::Done));
    }

    #[test]
    fn a_file_that_is_appended_to_starts_again_with_a_write_at_its_start() {
        let grid = Grid { append: true, caching: Caching::Cached, ..GRID };
        let mut first = Work::admit(&write(0, 8, true), &grid, 1000, None).unwrap();
        assert_eq!(first.call(), Call::Truncate);
        assert_eq!(first.answered(Ok(0)), Progress::Again);
        let flags = ReadWriteFlags::DSYNC;
        assert_eq!(first.call(), Call::Write { offset: 0, length: 4096, done: 0, flags });
        let next = Work::admit(&write(8, 8, false), &grid, 1000, None).unwrap();
        assert_eq!(next.call(), Call::Write { offset: 4096, length: 4096, done: 0, flags: NONE });
    }

    #[test]
    fn zeroes_fall_back_to_slower_ways_unless_told_not_to() {
        let unsupported = Err(Errno::EOPNOTSUPP);
        let mut work = admit(&zeroes_of(false, false)).unwrap();
        assert_eq!(work.answered(unsupported), Progress::Again);
        assert!(
            matches!(work.call(), Call::Fallocate { mode, .. } if mode & libc::FALLOC_FL_ZERO_RANGE != 0)
        );
        assert_eq!(work.answered(unsupported), Progress::Again);
        assert_eq!(work.call(), Call::WriteZeroes { offset: 0, length: ZEROES_BYTES as u64, flags: NONE });
        assert_eq!(work.answered(Ok(ZEROES_BYTES as u64)), Progress::Again);
        assert_eq!(work.answered(Ok(ZEROES_BYTES as u64)), Progress::Again);
        assert_eq!(work.call(), Call::Flush(FlushCall::Fdatasync), "durable zeroes end with a sync");
        assert_eq!(work.answered(Ok(0)), Progress::Ended(Outcome::Done));

        let mut fast = admit(&zeroes_of(true, true)).unwrap();
        assert_eq!(fast.answered(unsupported), Progress::Ended(Outcome::Failed(Errno::EOPNOTSUPP)));
        let slow_disk = Grid { kind: TargetKind::BlockDevice, fast_zeroes: false, ..GRID };
        assert_eq!(Work::admit(&zeroes_of(true, true), &slow_disk, 1000, None), Err(Errno::EOPNOTSUPP));
    }

    #[test]
    fn requests_become_the_calls_that_were_asked_for() {
        let call = |request: &Request, grid: &Grid| Work::admit(request, grid, 1000, None).unwrap().call();
        let flags = |request: &Request, grid: &Grid| match call(request, grid) {
            Call::Read { flags, .. } | Call::Write { flags, .. } => flags,
            other => panic!("{other:?}"),
        };
        let read = Request::read(Tag(0), LbaRange::new(Lba(0), 1));
        let (plain, durable) = (write(0, 1, false), write(0, 1, true));
        for (durable_write, expected) in
            [(DurableWrite::Dsync, ReadWriteFlags::DSYNC), (DurableWrite::Sync, ReadWriteFlags::SYNC)]
        {
            for (caching, always) in
                [(Caching::Direct, NONE), (Caching::Cached, NONE), (Caching::DropBehind, DONTCACHE)]
            {
                let grid = Grid { durable_write, caching, ..GRID };
                assert_eq!(flags(&durable, &grid), expected | always, "{grid:?}");
                assert_eq!(flags(&plain, &grid), always, "{grid:?}");
                assert_eq!(flags(&read, &grid), always, "{grid:?}");
            }
        }
        for flush in [FlushCall::Fdatasync, FlushCall::Fsync, FlushCall::Range] {
            let grid = Grid { flush, ..GRID };
            assert_eq!(call(&Request::flush(Tag(0)), &grid), Call::Flush(flush));
        }
    }

    #[test]
    fn durable_zeroes_are_synced_for_good_even_where_flushes_are_not() {
        for (durable_write, expected) in
            [(DurableWrite::Dsync, FlushCall::Fdatasync), (DurableWrite::Sync, FlushCall::Fsync)]
        {
            let grid = Grid { durable_write, flush: FlushCall::Range, ..GRID };
            let mut work = Work::admit(&zeroes_of(false, false), &grid, 1000, None).unwrap();
            assert_eq!(work.answered(Ok(0)), Progress::Again);
            assert_eq!(work.call(), Call::Flush(expected));
        }
    }
}

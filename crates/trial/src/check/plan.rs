//! Scenario of a check: its phases, their order, and their time limits.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Caching, EngineChoice, FlushCall, Nanos, Opening, SyncMethod};
use plumb_workload::{
    Access, BlockSizes, ByteRange, Content, Durability, Job, PageCache, Role, Scenario, Span, Stop, Workload,
};

/// Length of the durable writes.
const SYNC_BLOCK: Bytes = Bytes::kib(4);
/// Block size of the loads: the page of PostgreSQL and SQL Server, and the block of field report B.
pub(super) const IO_BLOCK: Bytes = Bytes::kib(8);
/// Number of direct requests in flight. Cached ones complete in the call, so their depth is 1.
const IO_DEPTH: u32 = 32;
/// Block size for overwriting a drive.
const DRIVE_FILL: Bytes = Bytes::mib(1);
/// Divisor of the size of the test file that gives the maximum size of the appended file, which then starts
/// over.
pub(super) const APPEND_SHARE: u64 = 4;
/// Maximum number of operations of a phase on a simulated drive, which may complete millions per second of
/// virtual time: this many are enough for its figures.
const DRIVE_OPERATIONS_MAX: u64 = 1_000_000;

/// Shares of the time in hundredths: for preparation, for the calibration of flush counts, and for each
/// phase.
const PREPARE_SHARE: u64 = 12;
const CALIBRATE_SHARE: u64 = 1;
const SYNC_SHARE: u64 = 12;
/// Share of a phase with fsync: a median needs few operations, and 0.9 s of 30 s is 60 of them at 15 ms.
const FSYNC_SHARE: u64 = 3;
const IO_SHARE: u64 = 12;

/// Name of the job that prepares a drive.
const PREPARE: &str = "prepare";

/// Place that a check runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    /// A test file in a directory.
    TestFile,
    /// Simulated drive, which has no page cache and counts its flushes separately.
    Drive,
}

impl On {
    /// Returns true if a write changes metadata, such as the times of a file.
    fn has_metadata(self) -> bool {
        self == Self::TestFile
    }
}

/// Load in the table of application and storage.
#[derive(Debug, Clone, Copy)]
struct Io {
    name: &'static str,
    write: bool,
    caching: Caching,
}

/// Loads in the order in which they run. The cached write comes last, because the dirty data that it leaves
/// would disturb any later load.
const IO: [Io; 4] = [
    Io { name: "read-direct", write: false, caching: Caching::Direct },
    Io { name: "write-direct", write: true, caching: Caching::Direct },
    Io { name: "read-cached", write: false, caching: Caching::Cached },
    Io { name: "write-cached", write: true, caching: Caching::Cached },
];

/// Methods of durable writes. They run first, on a device that is not warmed up.
const METHODS: [(&str, SyncMethod); 4] = [
    ("overwrite-fdatasync", SyncMethod::OverwriteFdatasync),
    ("overwrite-fsync", SyncMethod::OverwriteFsync),
    ("append-fdatasync", SyncMethod::AppendFdatasync),
    ("direct-dsync", SyncMethod::DirectDsync),
];

/// Returns the time for preparation in a check of `total`.
pub(super) fn time_to_prepare(total: Nanos) -> Nanos {
    Nanos(total.0 / 100 * PREPARE_SHARE)
}

/// Returns a check of `size` bytes of `target`, a directory or a drive, in about `total`.
pub(super) fn scenario(target: &str, on: On, size: Bytes, total: Nanos, seed: u64) -> Scenario {
    let plan = Plan { target, on, size, total, seed };
    // A drive has no metadata, so an fsync of it is an fdatasync.
    let methods =
        METHODS.into_iter().filter(|(_, method)| on.has_metadata() || *method != SyncMethod::OverwriteFsync);
    let syncs = methods.map(|(name, method)| plan.durable_writes(name, method));
    let loads = IO.into_iter().filter(|io| on == On::TestFile || io.caching == Caching::Direct);
    let phases = syncs.chain(loads.map(|io| plan.io(io)));
    let prepare = (on == On::Drive).then(|| plan.write_over());
    Scenario { spans: prepare.into_iter().chain(phases).map(|job| Span::new(vec![job])).collect() }
}

struct Plan<'a> {
    target: &'a str,
    on: On,
    size: Bytes,
    total: Nanos,
    seed: u64,
}

impl Plan<'_> {
    /// Returns the time for a share.
    fn time(&self, share: u64) -> Nanos {
        let (ready, loads) = match self.on {
            On::TestFile => (PREPARE_SHARE + CALIBRATE_SHARE + FSYNC_SHARE, 4),
            On::Drive => (PREPARE_SHARE, 2),
        };
        Nanos(self.total.0 / (ready + 3 * SYNC_SHARE + loads * IO_SHARE) * share)
    }

    fn job(&self, name: &str, workload: Workload, opening: Opening) -> Job {
        let in_file = self.on == On::TestFile;
        let operations = (!in_file).then_some(DRIVE_OPERATIONS_MAX);
        let range = match self.on {
            On::TestFile => ByteRange::ALL,
            On::Drive => ByteRange { offset: Bytes(0), length: self.size },
        };
        let stop = Stop { operations: workload.stop.operations.or(operations), ..workload.stop };
        Job {
            name: name.to_owned(),
            size: in_file.then_some(self.size),
            opening,
            page_cache: if in_file { PageCache::Evicted } else { PageCache::AsIs },
            ..Job::on(self.target, Workload { range, stop, seed: self.seed, ..workload })
        }
    }

    /// Writes a drive once in order, so that no read is of unwritten blocks, and flushes it, so that no load
    /// finds its cache full.
    fn write_over(&self) -> Job {
        let block = DRIVE_FILL.min(self.size);
        let workload = Workload {
            access: Access::SEQUENTIAL,
            write_percent: 100,
            stop: Stop::operations(self.size.0.div_ceil(block.0)),
            durability: Durability { flush_at_end: true, ..Durability::default() },
            ..Workload::over(ByteRange::ALL, block)
        };
        Job { role: Role::Prepare, ..self.job(PREPARE, workload, Opening::DIRECT) }
    }

    /// Returns durable writes, one at a time by pwrite and fdatasync as databases do them: io_uring would add
    /// a switch to a kernel thread.
    fn durable_writes(&self, name: &str, method: SyncMethod) -> Job {
        let is_dsync = method == SyncMethod::DirectDsync;
        let is_fsync = method == SyncMethod::OverwriteFsync;
        let appends = method == SyncMethod::AppendFdatasync;
        let plain = Workload::over(ByteRange::ALL, SYNC_BLOCK);
        let workload = Workload {
            blocks: BlockSizes::one(SYNC_BLOCK),
            access: if appends { Access::SEQUENTIAL } else { plain.access.clone() },
            write_percent: 100,
            stop: Stop::after(self.time(if is_fsync { FSYNC_SHARE } else { SYNC_SHARE })),
            durability: match is_dsync {
                true => Durability::EACH_WRITE,
                false => Durability::flush_every(NonZeroU32::MIN),
            },
            ..plain
        };
        let caching = if is_dsync { Opening::DIRECT } else { Opening::CACHED };
        let flush = if is_fsync { FlushCall::Fsync } else { FlushCall::Fdatasync };
        let job = self.job(name, workload, Opening { engine: EngineChoice::Synchronous, flush, ..caching });
        let job = Job { role: Role::DurableWrites(method), ..job };
        match (appends, self.on) {
            (true, On::TestFile) => Job {
                append: true,
                page_cache: PageCache::AsIs,
                size: Some(Bytes(self.size.0 / APPEND_SHARE).round_down(SYNC_BLOCK)),
                ..job
            },
            _ => job,
        }
    }

    /// Returns a load. Direct requests use io_uring if permitted; cached ones are calls, as in applications.
    fn io(&self, io: Io) -> Job {
        let is_direct = io.caching == Caching::Direct;
        let workload = Workload {
            write_percent: if io.write { 100 } else { 0 },
            depth: if is_direct { IO_DEPTH } else { 1 },
            stop: Stop::after(self.time(IO_SHARE)),
            // For writes to memory, generating new noise for each would cost more than the write, so one
            // block is repeated.
            content: if is_direct { Content::Pattern } else { Content::Repeated },
            ..Workload::over(ByteRange::ALL, IO_BLOCK)
        };
        let opening = match is_direct {
            true => Opening::DIRECT,
            false => Opening { engine: EngineChoice::Synchronous, ..Opening::CACHED },
        };
        let job = self.job(io.name, workload, opening);
        match (io.write, is_direct) {
            // Loading the page cache first ensures that only cached data is measured.
            (false, false) => Job { page_cache: PageCache::Loaded, ..job },
            _ => job,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phases_are_valid_and_fill_the_time_and_no_more() {
        let total = Nanos::secs(30);
        for (on, ready, phases) in [(On::TestFile, 13, 8), (On::Drive, 12, 6)] {
            let scenario = scenario("x", on, Bytes::mib(256), total, 7);
            scenario.validate().unwrap();
            assert_eq!(scenario.spans.len(), phases);
            let durations = scenario.spans.iter().filter_map(|span| span.jobs[0].workload.stop.duration);
            let all = if on == On::TestFile { 100 } else { 72 };
            let sum: Nanos = durations.sum();
            assert!(
                sum <= Nanos(total.0 / all * (all - ready)) && sum > Nanos(total.0 / all * (all - ready - 1))
            );
        }
    }
}

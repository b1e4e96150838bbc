//! Options for opening the targets of a job.

use plumb_block::{Bytes, Caching, EngineChoice, Opening};
use plumb_linux::{Access, FileOptions};
use plumb_workload::{Job, Span};

/// Sector, the usual unit of addresses.
const SECTOR: Bytes = Bytes(512);
/// Length above which blocks are laid out and verified in parts if possible.
const BLOCK_MAX: u64 = 64 << 10;
/// Minimum length of a part that holds a stamp.
const BLOCK_MIN: u64 = 32;

/// Returns the options for the targets of `job` in `span`, opened for writing or not, if all offsets and
/// lengths are multiples of `unit`.
pub(crate) fn options(span: &Span, job: &Job, writes: bool, unit: Bytes) -> FileOptions {
    let access = if writes { Access::ReadWrite } else { Access::ReadOnly };
    FileOptions {
        append: job.size.filter(|_| job.append),
        logical_block: logical_block(unit),
        ..FileOptions::new(access, Opening { engine: engine(span, job), ..job.opening })
    }
}

/// Returns the engine. Buffered requests one at a time are plain calls, as in applications. Most file systems
/// cannot begin a buffered write without waiting; io_uring then passes it to a kernel thread, which takes
/// many times as long as the copy: 45 µs compared with 2.3 µs on ext4, Linux 6.18. A search varies the depth,
/// and needs a queue.
fn engine(span: &Span, job: &Job) -> EngineChoice {
    let is_one_at_a_time = job.workload.depth == 1 && span.latency_target.is_none();
    match job.opening {
        Opening { caching: Caching::Cached, engine: EngineChoice::Auto, .. } if is_one_at_a_time => {
            EngineChoice::Synchronous
        }
        opening => opening.engine,
    }
}

/// Returns the length of the blocks to address, if not sectors. With direct I/O it is that of the device in
/// any case.
fn logical_block(unit: Bytes) -> Option<Bytes> {
    if unit.0.is_multiple_of(SECTOR.0) {
        return None;
    }
    let part = (BLOCK_MIN..=BLOCK_MAX).rev().find(|part| unit.0.is_multiple_of(*part));
    Some(part.filter(|_| unit.0 > BLOCK_MAX).map_or(unit, Bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_the_unit_and_are_sectors_where_these_do() {
        for (unit, expected) in [(512, None), (4096, None), (1 << 30, None), (2300, Some(2300)), (1, Some(1))]
        {
            assert_eq!(logical_block(Bytes(unit)), expected.map(Bytes), "{unit}");
        }
        assert_eq!(logical_block(Bytes(100_000_000)), Some(Bytes(62_500)));
        assert_eq!(logical_block(Bytes(1_000_003)), Some(Bytes(1_000_003)), "a prime");
    }
    #[test]
    fn one_request_at_a_time_through_the_page_cache_is_a_call_unless_io_uring_is_asked_for() {
        let workload = plumb_workload::Workload::over(plumb_workload::ByteRange::ALL, Bytes(4096));
        let mut job = Job { opening: Opening::CACHED, ..Job::on("x", workload) };
        let mut span = Span::new(vec![job.clone()]);
        assert_eq!(engine(&span, &job), EngineChoice::Synchronous);
        job.opening.engine = EngineChoice::IoUring;
        assert_eq!(engine(&span, &job), EngineChoice::IoUring);
        job.opening = Opening::DIRECT;
        assert_eq!(engine(&span, &job), EngineChoice::Auto);
        job.opening = Opening::CACHED;
        span.latency_target =
            Some(plumb_workload::LatencyTarget { latency: plumb_block::Nanos::millis(1), percentile: 99.0 });
        assert_eq!(engine(&span, &job), EngineChoice::Auto, "the depth varies");
        (span.latency_target, job.workload.depth) = (None, 32);
        assert_eq!(engine(&span, &job), EngineChoice::Auto);
    }
}

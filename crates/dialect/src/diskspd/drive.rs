//! Opening and workload of one target of a profile.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Access, Amount, Arrival, BlockSizes, Burst, ByteRange, Caching, Content, Distribution, Division,
    Durability, EngineChoice, Opening, Priority, Random, Rate, Runs, Sequential, Stop, Walk, Workload, Zone,
    ZoneLength,
};

use super::distribution::Unit;
use super::profile::{CacheMode, IoPriority, Target, Throughput, TimeSpan, WriteContent};

pub(super) const fn priority(priority: IoPriority) -> Priority {
    match priority {
        IoPriority::VeryLow => Priority::Idle,
        IoPriority::Low => Priority::Low,
        IoPriority::Normal => Priority::Normal,
    }
}

pub(super) fn opening(span: &TimeSpan, target: &Target) -> Opening {
    let caching = match target.cache {
        _ if target.mapped => Caching::Mapped,
        _ if target.is_drive() => Caching::Direct,
        CacheMode::Cached => Caching::Cached,
        CacheMode::Off | CacheMode::LocalOff => Caching::Direct,
    };
    let one_at_a_time = match (span.thread_count, span.request_count) {
        (0, _) => target.requests == 1,
        (1, 0) => target.requests == 1 && span.targets.len() == 1,
        (_, requests) => requests == 1,
    };
    let engine = if one_at_a_time && !target.mapped { EngineChoice::Synchronous } else { EngineChoice::Auto };
    Opening { caching, engine, ..Opening::CACHED }
}

/// Returns the workload of `threads` on a target. `end` is the end of the range; `None` for the end of the
/// target.
pub(super) fn workload(span: &TimeSpan, target: &Target, threads: u32, end: Option<u64>) -> Workload {
    let block = Bytes(u64::from(target.block));
    Workload {
        blocks: BlockSizes::one(block),
        access: access(target),
        write_percent: target.write_percent,
        depth: depth(span, target),
        // DiskSpd runs warm-up and cool-down for -d0, and measures nothing.
        stop: Stop::after(Nanos::secs(u64::from(span.duration)).max(Stop::NO_TIME)),
        durability: durability(target),
        rate: rate(target, threads),
        burst: burst(target, threads),
        division: match target.thread_stride {
            0 => Division::Overlap,
            stride => Division::Offset(Bytes(stride)),
        },
        content: content(span, target),
        ..Workload::over(range(target, end), block)
    }
}

/// Returns the depth. Loads and stores to a mapping are always synchronous.
const fn depth(span: &TimeSpan, target: &Target) -> u32 {
    match (target.mapped, span.requests_are_shared()) {
        (true, _) => 1,
        (false, true) => span.request_count,
        (false, false) => target.requests,
    }
}

fn range(target: &Target, end: Option<u64>) -> ByteRange {
    let length = end.map_or(u64::MAX, |end| end.saturating_sub(target.base));
    ByteRange { offset: Bytes(target.base), length: Bytes(length) }
}

fn access(target: &Target) -> Access {
    let block = u64::from(target.block);
    let aligned = Some(Bytes(target.alignment)).filter(|align| ![0, block].contains(&align.0));
    if target.random_percent == 0 {
        let walk = match (target.parallel, target.interlocked) {
            (true, _) => Walk::Parallel,
            (false, true) => Walk::Interlocked,
            (false, false) => Walk::Each,
        };
        return Access::Sequential(Sequential { stride: aligned, walk });
    }
    let runs = match target.random_percent {
        100 => Runs::Single,
        random_percent => Runs::Geometric { random_percent },
    };
    Access::Random(Random { align: aligned, distribution: distribution(target), runs })
}

fn distribution(target: &Target) -> Distribution {
    let Some(shares) = &target.distribution else { return Distribution::Uniform };
    // The last part, of length 0, is not a zone: it gets the remaining I/Os.
    let parts = shares.parts.iter().filter(|part| part.length > 0);
    let zones = parts.map(|part| Zone {
        io_percent: f64::from(part.io_percent),
        length: match shares.unit {
            Unit::Percent => ZoneLength::Percent(part.length as f64),
            Unit::Absolute => ZoneLength::Bytes(Bytes(part.length)),
        },
    });
    Distribution::Zoned(zones.collect())
}

fn durability(target: &Target) -> Durability {
    if target.write_percent == 0 {
        return Durability::default();
    }
    match (target.mapped, target.write_through, target.flush) {
        (true, true, _) | (true, _, Some(_)) => Durability::flush_every(NonZeroU32::MIN),
        (false, true, _) => Durability::EACH_WRITE,
        _ => Durability::default(),
    }
}

/// Returns the rate of all threads. DiskSpd limits each thread.
fn rate(target: &Target, threads: u32) -> Rate {
    let all = |each: u32| f64::from(each) * f64::from(threads);
    let amount = match target.throughput {
        None => return Rate::Unlimited,
        Some(Throughput::Iops(iops)) => Amount::Iops(all(iops)),
        Some(Throughput::BytesPerMillisecond(bytes)) => Amount::BytesPerSecond(all(bytes) * 1000.0),
    };
    Rate::Scheduled { amount, arrival: Arrival::Fixed }
}

/// Returns the burst of each thread. DiskSpd divides a burst among the threads; a throttle replaces it.
fn burst(target: &Target, threads: u32) -> Option<Burst> {
    let operations = (target.burst / threads.max(1)).max(1);
    (target.burst > 0 && target.throughput.is_none())
        .then(|| Burst { operations, pause: Nanos::millis(u64::from(target.think_ms)) })
}

fn content(span: &TimeSpan, target: &Target) -> Content {
    match &target.content {
        WriteContent::Counting if span.random_write_data => Content::Pattern,
        WriteContent::Counting => Content::Counting,
        WriteContent::Zero => Content::Zeroes,
        WriteContent::Random => Content::Pattern,
        WriteContent::Buffer { size, file: None } => Content::Buffer(Bytes(*size)),
        WriteContent::Buffer { size, file: Some(path) } => {
            Content::File { size: Bytes(*size), path: path.clone() }
        }
    }
}

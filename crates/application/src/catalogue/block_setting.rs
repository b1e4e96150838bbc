//! What the block workloads have in common.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{BlockSizes, BlockSplit, ByteRange, Durability, Job, Opening, Stop, Workload};

/// How a scenario is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockSetting<'a> {
    /// The name of the variant.
    pub(crate) variant: &'static str,
    /// On what, as typed.
    pub(crate) target: &'a str,
    /// When each job is over.
    pub(crate) stop: Stop,
    /// What all choices follow from.
    pub(crate) seed: u64,
    /// So many threads, rather than the profile's own number.
    pub(crate) threads: Option<u32>,
    /// So large a part of the profile's own size, above 0, at most 1.
    pub(crate) scale: f64,
}

impl BlockSetting<'_> {
    /// A file of this size is made where a target file is missing; at least 64 MiB.
    pub(crate) fn size(&self, full: Bytes) -> Bytes {
        let scaled = (full.0 as f64 * self.scale) as u64;
        Bytes(scaled.max(64 << 20)).round_down(Bytes::mib(1))
    }

    /// When a job is over that does one operation while the others do `times`, or their time is up.
    pub(crate) fn stop_of_slower(&self, times: u64) -> Stop {
        Stop { operations: self.stop.operations.map(|operations| operations.div_ceil(times)), ..self.stop }
    }

    /// A job past the page cache.
    pub(crate) fn job(&self, name: &str, size: Bytes, workload: Workload) -> Job {
        let workload = Workload { stop: self.stop, seed: self.seed, ..workload };
        Job {
            name: name.to_owned(),
            size: Some(size),
            opening: Opening::DIRECT,
            ..Job::on(self.target, workload)
        }
    }
}

/// Random writes of one length over `range`.
pub(super) fn random_writes(range: ByteRange, block: Bytes, depth: u32) -> Workload {
    Workload { write_percent: 100, depth, ..Workload::over(range, block) }
}

/// Writes of different lengths one after the other, each durable when it completes: a log.
pub(super) fn log_writes(range: ByteRange, lengths: Vec<(Bytes, u8)>) -> Workload {
    let split = BlockSplit(lengths);
    let longest = split.max();
    Workload {
        blocks: BlockSizes { read: split.clone(), write: split.clone(), trim: split },
        access: plumb_workload::Access::SEQUENTIAL,
        write_percent: 100,
        durability: Durability::EACH_WRITE,
        ..Workload::over(range, longest)
    }
}

/// A flush after each write.
pub(super) const FLUSH_EACH: Durability = Durability::flush_every(NonZeroU32::MIN);

/// The first part of a target, for logs.
pub(super) const LOG_RANGE: ByteRange = ByteRange { offset: Bytes(0), length: Bytes::mib(32) };
/// What comes after it, to the end of the target.
pub(super) const DATA_RANGE: ByteRange = ByteRange { offset: Bytes::mib(32), length: Bytes(u64::MAX) };

/// How long block workloads run unless that is said.
pub(super) const EXTENT: crate::profile::Extent = crate::profile::Extent::Time(Nanos::secs(30));

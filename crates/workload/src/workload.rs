//! Description of a workload.
//!
//! The plain data behind a phrase like "4 KiB random writes at depth 32 with a flush after each", stored in
//! recordings and sent to other hosts. Offsets and lengths are bytes; code that knows the device checks
//! whether they fit its blocks.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::block_sizes::{BlockSizes, BlockSplit};
use crate::byte_range::ByteRange;
use crate::grid::Grid;
use crate::invalid::Invalid;
use crate::pace::{Burst, Rate, Stop};
use crate::share::Share;

/// Operations of each worker of a job on one target: what to write and read, at which rate, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Lengths of the operations.
    pub blocks: BlockSizes,
    /// Offsets of the operations.
    pub access: Access,
    /// Percentage of writes, 0 to 100.
    pub write_percent: u8,
    /// Percentage of trims, 0 to 100 minus the writes.
    pub trim_percent: u8,
    /// Number of requests that each worker keeps in flight.
    pub depth: u32,
    /// Limits that end the workload.
    pub stop: Stop,
    /// Frequency and method of making writes durable.
    pub durability: Durability,
    /// Rate of starts, summed over all workers. Flushes are not limited, since each belongs to its writes.
    pub rate: Rate,
    /// Bursts with pauses between them.
    pub burst: Option<Burst>,
    /// Seed that determines all random choices and the bytes written.
    pub seed: u64,
    /// Part of the target that is accessed.
    pub range: ByteRange,
    /// Division of the range among workers.
    pub division: Division,
    /// Content of writes.
    pub content: Content,
    /// Check every byte read against what was written, and read back everything at the end. Blocks written by
    /// an earlier run with the same seed are checked against their own stamps.
    pub verify: bool,
}

/// Frequency and method of making writes durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Durability {
    /// Number of writes of a worker after which it waits for them, flushes, and only then continues. `None`:
    /// never.
    pub flush_every: Option<NonZeroU32>,
    /// Flush once more at the end if anything was written since the last flush.
    pub flush_at_end: bool,
    /// Treat the flush as part of the next operation, so that no flush follows the last operation of the
    /// workload (fio).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flush_before_next: bool,
    /// Interval, in writes of a worker, of writes with force unit access; 1 is each.
    pub fua_every: Option<NonZeroU32>,
}

/// Division of the range among workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Division {
    /// Separate part for each worker; no two write the same block. A distribution applies to each part
    /// separately. Zones are an exception: each zone is divided, so that all workers together have the zones
    /// of the range.
    Parts,
    /// Whole range for each worker; sequential ones start at the same place.
    Overlap,
    /// Whole range for each worker; sequential worker `n` starts `n` times this distance from the start
    /// (DiskSpd `-T`).
    Offset(Bytes),
}

/// Content of writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Stamped noise, unique for every block of every write, which neither compresses nor deduplicates and
    /// can be regenerated: see [`Pattern`](plumb_block::Pattern).
    Pattern,
    /// Noise as in `Pattern`, but a part of each block is zeroes, and a share of the blocks are copies of
    /// others, for devices that reduce data.
    Reducible {
        /// Percentage of a block that compresses to nothing, 0 to 99.
        compress_percent: u8,
        /// Percentage of blocks that repeat one of a few, 0 to 99. They carry no stamp.
        dedup_percent: u8,
    },
    /// One block of noise, written again and again: costs no processor time, but deduplicates.
    Repeated,
    /// Zeroes. Only to detect whether the device reduces data.
    Zeroes,
    /// Bytes 0 to 255, repeated: DiskSpd's default. Compresses and deduplicates.
    Counting,
    /// Noise in a buffer of this size; each write starts at another position in it (DiskSpd `-Z<size>`).
    Buffer(Bytes),
    /// Contents of a file in a buffer of this size; each write starts at another position in it (DiskSpd
    /// `-Z<size>,file`).
    File {
        /// Size of the buffer.
        size: Bytes,
        /// Path of the file. A shorter file is repeated.
        path: String,
    },
}

impl Durability {
    /// No durability.
    pub const NEVER: Self =
        Self { flush_every: None, flush_at_end: false, flush_before_next: false, fua_every: None };

    /// Every write is durable when it completes.
    pub const EACH_WRITE: Self = Self { fua_every: Some(NonZeroU32::MIN), ..Self::NEVER };

    /// Creates a flush after every `writes` writes of a worker.
    pub const fn flush_every(writes: NonZeroU32) -> Self {
        Self { flush_every: Some(writes), ..Self::NEVER }
    }

    /// Returns true if anything is made durable.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }
}

impl Workload {
    /// Maximum queue depth.
    pub const DEPTH_MAX: u32 = 32_768;
    /// Maximum block size.
    pub const BLOCK_MAX: Bytes = Bytes::gib(1);

    /// Creates random reads of `block` all over `range` at depth 1 for one second, as a base for other
    /// workloads.
    pub fn over(range: ByteRange, block: Bytes) -> Self {
        Self {
            blocks: BlockSizes::one(block),
            access: Access::RANDOM,
            write_percent: 0,
            trim_percent: 0,
            depth: 1,
            stop: Stop::after(Nanos::secs(1)),
            durability: Durability::default(),
            rate: Rate::Unlimited,
            burst: None,
            seed: 0,
            range,
            division: Division::Parts,
            content: Content::Pattern,
            verify: false,
        }
    }

    /// Returns the workload for a target of `size` bytes, where an open-ended range ends with the target.
    ///
    /// # Errors
    /// If the range starts or ends beyond the target.
    pub fn within(&self, size: Bytes) -> Result<Self, Invalid> {
        let left = size.0.checked_sub(self.range.offset.0).filter(|left| *left > 0).ok_or_else(|| {
            Invalid::new("offset", self.range.offset, format!("less than the size of the target, {size}"))
        })?;
        let length = match self.range.length {
            Bytes(u64::MAX) => Bytes(left),
            length if length.0 <= left => length,
            length => {
                let expected = format!("at most what the target holds from there on, {}", Bytes(left));
                return Err(Invalid::new("length", length, expected));
            }
        };
        Ok(Self { range: ByteRange { length, ..self.range }, ..self.clone() })
    }

    /// Returns true if any operation writes.
    pub fn writes(&self) -> bool {
        self.write_percent > 0
    }

    /// Returns true if any operation changes the target.
    pub fn changes(&self) -> bool {
        self.writes() || self.trim_percent > 0
    }

    /// Returns the length of the shortest operation.
    pub fn block_min(&self) -> Bytes {
        self.splits().map(|(split, _)| split.min()).min().unwrap_or(Bytes(0))
    }

    /// Returns the length of the longest operation.
    pub fn block_max(&self) -> Bytes {
        self.splits().map(|(split, _)| split.max()).max().unwrap_or(Bytes(0))
    }

    /// Returns the mean length of operations, at least 1 byte.
    pub fn block_mean(&self) -> u64 {
        let weighed = |(block, percent): &(Bytes, u8)| u128::from(block.0) * u128::from(*percent);
        let of_split = |split: &BlockSplit| split.0.iter().map(weighed).sum::<u128>();
        let sum: u128 = self.splits().map(|(split, percent)| of_split(split) * u128::from(percent)).sum();
        (sum / 10_000).max(1) as u64
    }

    /// Returns the lengths of each kind of operation that occurs, with its percentage.
    pub(crate) fn splits(&self) -> impl Iterator<Item = (&BlockSplit, u8)> {
        let changes = self.write_percent.saturating_add(self.trim_percent);
        let read_percent = 100_u8.saturating_sub(changes);
        let blocks = &self.blocks;
        [(&blocks.read, read_percent), (&blocks.write, self.write_percent), (&blocks.trim, self.trim_percent)]
            .into_iter()
            .filter(|(_, percent)| *percent > 0)
    }

    /// Returns the grid of possible starts. The workload must be valid.
    pub(crate) fn grid(&self) -> Grid {
        let longest = self.block_max();
        let step = match &self.access {
            Access::Random(random) => random.align.unwrap_or(self.block_min()),
            Access::Sequential(sequential) => {
                sequential.stride.filter(|stride| *stride > Bytes(0)).unwrap_or(longest)
            }
        };
        Grid { step: step.0, longest: longest.0 }
    }

    /// Returns the number of reads, writes and trims of a share, which may be zero; `None` if it is unknown,
    /// because the share ends by time, or by bytes with operations of different lengths.
    pub fn operations_of(&self, share: Share) -> Option<u64> {
        let counted = self.stop.operations.map(|total| share.count_of(total));
        let length = self.block_min().0;
        let by_bytes = self.stop.bytes.filter(|_| self.block_max().0 == length);
        let by_bytes = by_bytes.map(|total| share.count_of(total.div_ceil(length)));
        counted.into_iter().chain(by_bytes).min()
    }

    /// Returns the minimum number of bytes that a share moves before it ends; `None` if it does not end by
    /// bytes. Rounded down to the shortest length, so that shares with operations of one length do not exceed
    /// the workload's total.
    pub fn bytes_of(&self, share: Share) -> Option<u64> {
        let length = self.block_min().0;
        self.stop.bytes.map(|total| share.count_of(total.div_ceil(length)).saturating_mul(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn shares_of_operations_and_bytes_add_up(
            of in 1_u32..64, operations in 1_u64..u64::MAX, bytes in 1_u64..u64::MAX / 2
        ) {
            let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
            let base = Workload::over(range, Bytes(4096));
            let counted = Workload { stop: Stop::operations(operations), ..base.clone() };
            let stop = Stop { bytes: Some(bytes), ..Stop::default() };
            let moved = Workload { stop, ..base };
            let shares = || Share::all(NonZeroU32::new(of).unwrap());
            let sum: u64 = shares().map(|share| counted.operations_of(share).unwrap()).sum();
            proptest::prop_assert_eq!(sum, operations);
            let sum: u64 = shares().map(|share| moved.bytes_of(share).unwrap()).sum();
            proptest::prop_assert_eq!(sum, bytes.next_multiple_of(4096));
            let sum: u64 = shares().map(|share| moved.operations_of(share).unwrap()).sum();
            proptest::prop_assert_eq!(sum, bytes.div_ceil(4096));
        }
    }
}

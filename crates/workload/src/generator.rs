//! From a workload to its operations: a pure, endless (or counted) stream.
//!
//! Each read or write takes one draw from xoshiro256++, seeded from the run's seed and the worker's index. The draw,
//! taken as a fraction of 2^64, is spread over the blocks; the whole part of the product is the block, and what is
//! left over, still evenly spread, decides between read and write.
//!
//! Payloads regenerate from (seed, LBA, generation). The generation of a write is the ordinal of the operation among
//! its worker's reads and writes, counted from 1. It needs no memory per block, every rewrite of a block takes a
//! higher one, and 0 is free to mean "never written". Which generation a block should hold after `n` operations
//! follows from running a fresh generator over `n` operations.

use std::num::NonZeroU32;

use plumb_block::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::invalid::Invalid;
use crate::share::Share;
use crate::workload::{Access, Workload};

/// One step of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Read a block.
    Read {
        /// Where in the target.
        offset: Bytes,
    },
    /// Write a block.
    Write {
        /// Where in the target.
        offset: Bytes,
        /// The version that the block takes: higher than any that this worker gave it before.
        generation: u64,
    },
    /// Wait until the writes before this have completed, then make them durable. Operations after it wait for it.
    Flush,
}

/// The operations of one worker, in order.
#[derive(Debug, Clone)]
pub struct Generator {
    random: Xoshiro256PlusPlus,
    access: Access,
    offset: Bytes,
    block: u64,
    blocks: u64,
    /// Writes happen where the left-over fraction of the draw is below this: 2^64 is always.
    write_below: u128,
    flush_every: Option<NonZeroU32>,
    writes_until_flush: u32,
    ordinal: u64,
    limit: Option<u64>,
    position: u64,
}

impl Generator {
    /// The operations of `share` of `workload`.
    ///
    /// # Errors
    /// If the workload is invalid, or has fewer blocks than workers.
    pub fn new(workload: &Workload, share: Share) -> Result<Self, Invalid> {
        workload.validate()?;
        let range = share.range_of(workload)?;
        Ok(Self {
            random: Xoshiro256PlusPlus::seed_from_u64(stream_seed(workload.seed, share.index())),
            access: workload.access,
            offset: range.offset,
            block: workload.block.0,
            blocks: range.length.0 / workload.block.0,
            write_below: (u128::from(workload.write_percent) << 64) / 100,
            flush_every: workload.flush_every,
            writes_until_flush: workload.flush_every.map_or(0, NonZeroU32::get),
            ordinal: 0,
            limit: share.operations_of(workload),
            position: 0,
        })
    }

    /// How many reads and writes have been handed out. The next one has this ordinal.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// How many reads and writes it hands out in all; `None` if it is endless.
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// The next block, and the fraction of 2^64 that chooses between read and write.
    fn draw(&mut self) -> (u64, u64) {
        let spread = u128::from(self.random.next_u64()) * u128::from(self.blocks);
        let fraction = spread as u64;
        let block = match self.access {
            Access::Random => (spread >> 64) as u64,
            Access::Sequential => {
                let block = self.position;
                self.position = if block + 1 == self.blocks { 0 } else { block + 1 };
                block
            }
        };
        (block, fraction)
    }
}

impl Iterator for Generator {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if let Some(every) = self.flush_every
            && self.writes_until_flush == 0
        {
            self.writes_until_flush = every.get();
            return Some(Operation::Flush);
        }
        if self.limit == Some(self.ordinal) {
            return None;
        }
        let (block, fraction) = self.draw();
        let offset = Bytes(self.offset.0 + block * self.block);
        self.ordinal += 1;
        if u128::from(fraction) < self.write_below {
            self.writes_until_flush = self.writes_until_flush.wrapping_sub(1);
            Some(Operation::Write { offset, generation: self.ordinal })
        } else {
            Some(Operation::Read { offset })
        }
    }
}

/// Distinct seeds for the workers of a run; the first worker's is the run's.
fn stream_seed(seed: u64, index: u32) -> u64 {
    seed ^ u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests;

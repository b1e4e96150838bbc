//! Generator of a workload's operations: a pure, endless (or counted) stream.
//!
//! Each operation takes one number from xoshiro256++, seeded from the run's seed and the worker's index. The
//! number, as a fraction of 2^64, is multiplied by the number of places: the integer part selects the place,
//! and the rest, which is still uniformly distributed, selects read, write or trim. Skewed distributions,
//! runs and variable lengths need further numbers. The workload alone determines the streams of all workers,
//! except that interlocked workers divide the places among them in order of arrival.
//!
//! # Generations, and what verification can promise
//!
//! Payloads are functions of (seed, LBA, generation). The generation of a write is its ordinal, from 1, among
//! the worker's reads, writes and trims. This needs no memory per block. Every rewrite of a block by a worker
//! has a higher generation, and 0 means "never written". To find the generation of a block after `n`
//! operations, run a fresh generator for `n` operations.
//!
//! If `m` workers share the range, worker `i` uses the generations `i + 1`, `i + 1 + m`, `i + 1 + 2m` and so
//! on, so that no two writes of a run leave equal bytes in a block. The content of a block then identifies
//! its write, but not whether that was the last one, since the order in which writes of different workers
//! arrived is unknown. A stale block could pass for a fresh one, so verification with several overlapping
//! workers is refused.

mod mix;
mod permutation;
mod places;
mod runs;
mod walk;
mod zipf;
pub(crate) mod zones;

use std::num::NonZeroU32;

use plumb_block::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::access::{Access, Distribution, Runs};
use crate::byte_range::ByteRange;
use crate::generator::mix::{Kind, Lengths, Mix};
use crate::generator::places::{Places, Uniform};
use crate::generator::runs::Drawn;
use crate::generator::walk::Walker;
use crate::invalid::{Invalid, invalid_if};
use crate::seed;
use crate::share::Share;
use crate::workload::{Division, Durability, Workload};

pub use walk::Cursor;
pub use zones::EffectiveZone;

/// One step of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Read.
    Read {
        /// Offset in the target.
        offset: Bytes,
        /// Length in bytes.
        length: Bytes,
    },
    /// Write.
    Write {
        /// Offset in the target.
        offset: Bytes,
        /// Length in bytes.
        length: Bytes,
        /// Version of the blocks: higher than any earlier one by this worker, and used by no other worker of
        /// the job.
        generation: u64,
        /// True if the write must be durable when it completes.
        fua: bool,
    },
    /// Tell the device that the contents of these bytes are no longer needed.
    Trim {
        /// Offset in the target.
        offset: Bytes,
        /// Length in bytes.
        length: Bytes,
    },
    /// Wait for the writes before it, then make them durable. Later operations wait for the flush.
    Flush,
}

/// The operations of one worker, in order.
///
/// Ends after its share of `stop.operations` or `stop.bytes` (with the operation that reaches the limit), and
/// after the final flush if one is due. The caller, who has a clock, applies the time limit.
#[derive(Debug, Clone)]
pub struct Generator {
    random: Xoshiro256PlusPlus,
    order: Order,
    mix: Mix,
    lengths: Lengths,
    limits: Limits,
    durable: Durable,
    /// Number of operations generated so far.
    ordinal: u64,
    /// Generation of the next operation.
    generation: u64,
    /// Increment from the generation of an operation to that of the next one.
    generation_step: u64,
}

/// Order of the places. The first variant is a special case of the second that must be fast.
#[derive(Debug, Clone)]
enum Order {
    Uniform(Uniform),
    Drawn(Box<Drawn>),
    Walk(Walker),
}

/// End of the workload; the largest number means never.
#[derive(Debug, Clone)]
struct Limits {
    operations: u64,
    bytes_left: u64,
    /// Shortest operation: the last operation is shortened to a multiple of it.
    unit: u64,
}

impl Limits {
    /// Returns the length of the longest operation, in whole units, that does not exceed the remaining bytes.
    #[inline]
    fn longest(&self) -> u64 {
        self.bytes_left.checked_next_multiple_of(self.unit).unwrap_or(u64::MAX)
    }
}

/// Frequency of durability; the largest number means never.
#[derive(Debug, Clone)]
struct Durable {
    unflushed: u64,
    flush_at: u64,
    flush_at_end: bool,
    flush_before_next: bool,
    writes_until_fua: u64,
    fua_every: u64,
}

impl Generator {
    /// Creates the generator for `share` of `workload`, whose range must be resolved: see
    /// [`Workload::within`]. Interlocked workers of a target share `cursor`; others ignore it.
    ///
    /// # Errors
    /// If the workload is invalid, its range is open-ended, or it is too small for that many workers.
    pub fn new(workload: &Workload, share: Share, cursor: &Cursor) -> Result<Self, Invalid> {
        workload.validate()?;
        let expected = "a number of bytes: the range of a workload is open-ended until its target is known";
        invalid_if!(workload.range.is_open_ended(), "length", "open-ended", expected);
        workload.validate_workers(share.shares())?;
        let (first, step) = match workload.division {
            Division::Parts => (1, 1),
            Division::Overlap | Division::Offset(_) => {
                (u64::from(share.index()) + 1, u64::from(share.shares().get()))
            }
        };
        Ok(Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed::of_worker(workload.seed, share.index())),
            order: Order::new(workload, share, cursor)?,
            mix: Mix::new(workload),
            lengths: Lengths::new(workload),
            limits: Limits {
                operations: workload.operations_of(share).unwrap_or(u64::MAX),
                bytes_left: workload.bytes_of(share).unwrap_or(u64::MAX),
                unit: workload.block_min().0.max(1),
            },
            durable: Durable::new(workload.durability),
            ordinal: 0,
            generation: first,
            generation_step: step,
        })
    }

    /// Returns the number of reads, writes and trims generated so far, which is the ordinal of the next one.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Returns the total number of reads, writes and trims; `None` if the stream is endless, or limited by
    /// bytes with operations of different lengths.
    pub fn limit(&self) -> Option<u64> {
        Some(self.limits.operations).filter(|operations| *operations < u64::MAX)
    }

    /// Returns the next read, write or trim: kind, offset and length.
    #[inline]
    fn place(&mut self) -> (Kind, u64, u64) {
        match &mut self.order {
            Order::Uniform(uniform) => {
                let place = uniform.draw(&mut self.random);
                let kind = self.mix.kind(place.fraction);
                (kind, place.offset, self.lengths.draw(kind, &mut self.random))
            }
            Order::Walk(walker) => {
                let kind = self.mix.kind(self.random.next_u64());
                let length = self.lengths.draw(kind, &mut self.random);
                (kind, walker.next(length), length)
            }
            Order::Drawn(drawn) => drawn.next(&self.mix, &self.lengths, &mut self.random),
        }
    }
}

impl Iterator for Generator {
    type Item = Operation;

    #[inline]
    fn next(&mut self) -> Option<Operation> {
        let is_over = self.ordinal >= self.limits.operations || self.limits.bytes_left == 0;
        if self.durable.unflushed >= self.durable.flush_at && !(is_over && self.durable.flush_before_next) {
            self.durable.unflushed = 0;
            return Some(Operation::Flush);
        }
        if is_over {
            return self.durable.at_end();
        }
        let (kind, offset, length) = self.place();
        let length = length.min(self.limits.longest());
        let generation = self.generation;
        self.ordinal += 1;
        self.generation += self.generation_step;
        self.limits.bytes_left = self.limits.bytes_left.saturating_sub(length);
        let (offset, length) = (Bytes(offset), Bytes(length));
        Some(match kind {
            Kind::Read => Operation::Read { offset, length },
            Kind::Trim => Operation::Trim { offset, length },
            Kind::Write => Operation::Write { offset, length, generation, fua: self.durable.count_write() },
        })
    }
}

impl Order {
    fn new(workload: &Workload, share: Share, cursor: &Cursor) -> Result<Self, Invalid> {
        let grid = workload.grid();
        match &workload.access {
            Access::Sequential(sequential) => {
                let (range, first) = match workload.division {
                    Division::Offset(each) => (workload.range, first_of(workload, share, each)?),
                    Division::Parts | Division::Overlap => (range_of(workload, share)?, 0),
                };
                Ok(Self::Walk(
                    Walker::new(*sequential, range, grid, workload.depth, cursor).starting_at(first),
                ))
            }
            Access::Random(random) => {
                let divided = (workload.division == Division::Parts).then_some(share);
                // Zones are divided one by one; all other distributions apply to the worker's part of the
                // range.
                let range = match random.distribution {
                    Distribution::Zoned(_) => workload.range,
                    _ => range_of(workload, share)?,
                };
                let places = Places::new(&random.distribution, workload, range, grid, divided)?;
                Ok(match (places, random.runs) {
                    (Places::Uniform(uniform), Runs::Single) => Self::Uniform(uniform),
                    (places, runs) => {
                        Self::Drawn(Box::new(Drawn::new(places, runs, random.align.map(|align| align.0))))
                    }
                })
            }
        }
    }
}

impl Durable {
    fn new(durability: Durability) -> Self {
        let every = |every: Option<NonZeroU32>| every.map_or(u64::MAX, |every| u64::from(every.get()));
        Self {
            unflushed: 0,
            flush_at: every(durability.flush_every),
            flush_at_end: durability.flush_at_end,
            flush_before_next: durability.flush_before_next,
            writes_until_fua: every(durability.fua_every),
            fua_every: every(durability.fua_every),
        }
    }

    /// Counts a write. Returns true if it must be durable when it completes.
    #[inline]
    fn count_write(&mut self) -> bool {
        self.unflushed += 1;
        self.writes_until_fua -= 1;
        let fua = self.writes_until_fua == 0;
        if fua {
            self.writes_until_fua = self.fua_every;
        }
        fua
    }

    /// Returns the final flush, once, if it was requested and something was written since the last flush.
    fn at_end(&mut self) -> Option<Operation> {
        let due = self.flush_at_end && self.unflushed > 0;
        if due {
            self.unflushed = 0;
        }
        due.then_some(Operation::Flush)
    }
}

/// Returns the range of `share`.
fn range_of(workload: &Workload, share: Share) -> Result<ByteRange, Invalid> {
    if workload.division != Division::Parts {
        return Ok(workload.range);
    }
    workload.grid().part(workload.range, share).ok_or_else(|| {
        let room = format!("room for a block of {} for each of", workload.block_max());
        Invalid::new("length", workload.range.length, format!("{room} {} workers", share.shares()))
    })
}

/// Returns the offset of the start of `share` in the range, if each share starts `each` after the previous
/// one.
fn first_of(workload: &Workload, share: Share, each: Bytes) -> Result<u64, Invalid> {
    let skipped = u128::from(each.0) * u128::from(share.index());
    let room = workload.range.length.0 - workload.grid().longest;
    u64::try_from(skipped).ok().filter(|skipped| *skipped <= room).ok_or_else(|| {
        let expected = format!("at most {room} bytes for all of the {} workers together", share.shares());
        Invalid::new("division.offset", skipped, expected)
    })
}

#[cfg(test)]
mod tests;

//! Generator of a workload's operations: a pure, endless (or counted) stream.
//!
//! Each operation takes one draw from xoshiro256++, seeded from the run's seed and the worker's index. The
//! draw, taken as a fraction of 2^64, is spread over the places; the whole part of the product is the place,
//! and what is left over, still evenly spread, decides between read, write and trim. Skewed distributions,
//! runs and lengths that differ take further draws. All workers' streams follow from the workload alone,
//! except that interlocked workers divide the places among them as they happen to come.
//!
//! # Generations, and what verification can promise
//!
//! Payloads regenerate from (seed, LBA, generation). The generation of a write is the ordinal of the
//! operation among its worker's reads, writes and trims, counted from 1. It needs no memory per block, every
//! rewrite of a block by that worker takes a higher one, and 0 is free to mean "never written". Which
//! generation a block should hold after `n` operations follows from running a fresh generator over `n`
//! operations.
//!
//! Where workers share the range, the `i`th of `m` workers takes the generations `i + 1`, `i + 1 + m`,
//! `i + 1 + 2m` and so on instead, so that no two writes of a run ever leave the same bytes in a block. A
//! block that was read then says which write it holds, but not whether that was the last one: nobody knows in
//! which order the writes of different workers arrived. So a stale block could pass for a fresh one, and
//! verification with several overlapping workers is refused.

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
        /// How much.
        length: Bytes,
    },
    /// Write.
    Write {
        /// Offset in the target.
        offset: Bytes,
        /// How much.
        length: Bytes,
        /// The version that the blocks take: higher than any that this worker gave them before, and no other
        /// worker of the job gives it to them.
        generation: u64,
        /// True if it is to be durable when it completes.
        fua: bool,
    },
    /// Tell the device that what these bytes hold is no longer needed.
    Trim {
        /// Offset in the target.
        offset: Bytes,
        /// How much.
        length: Bytes,
    },
    /// Wait until the writes before this have completed, then make them durable. Operations after it wait for
    /// it.
    Flush,
}

/// The operations of one worker, in order.
///
/// It ends after its share of `stop.operations` or `stop.bytes` (the operation that reaches the bytes is the
/// last), and after the flush that is then due. How long it lasts is for the one to say who has a clock.
#[derive(Debug, Clone)]
pub struct Generator {
    random: Xoshiro256PlusPlus,
    order: Order,
    mix: Mix,
    lengths: Lengths,
    limits: Limits,
    durable: Durable,
    /// Operations handed out.
    ordinal: u64,
    /// The generation of the next operation, and how much higher the one after it is.
    generation: u64,
    generation_step: u64,
}

/// Where operations go. The first is a special case of the second that must be fast.
#[derive(Debug, Clone)]
enum Order {
    Uniform(Uniform),
    Drawn(Box<Drawn>),
    Walk(Walker),
}

/// When it is over; the largest number is never.
#[derive(Debug, Clone)]
struct Limits {
    operations: u64,
    bytes_left: u64,
    /// The shortest operation: the last one is cut to so many of these as there are bytes left.
    unit: u64,
}

impl Limits {
    /// Returns the longest operation that moves no more than what is left, in whole units.
    #[inline]
    fn longest(&self) -> u64 {
        self.bytes_left.checked_next_multiple_of(self.unit).unwrap_or(u64::MAX)
    }
}

/// When writes are made durable; the largest number is never.
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
    /// Returns the operations of `share` of `workload`, whose range is resolved: see [`Workload::within`].
    /// Interlocked workers of a target share `cursor`; others do not look at it.
    ///
    /// # Errors
    /// If the workload is invalid, its range is open-ended, or there is no room for so many workers.
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

    /// Returns how many reads, writes and trims have been handed out. The next one has this ordinal.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Returns how many reads, writes and trims it hands out in all; `None` if it is endless, or ended by
    /// bytes in operations of different lengths.
    pub fn limit(&self) -> Option<u64> {
        Some(self.limits.operations).filter(|operations| *operations < u64::MAX)
    }

    /// Returns the next read, write or trim: its kind, where, and how long.
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
                // Zones are divided one by one; everything else applies to the worker's part of the range.
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

    /// Counts a write, and says whether it is to be durable when it completes.
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

    /// Returns the operation that is left to do at the end: a flush, once, if it was requested and anything
    /// was written since the last.
    fn at_end(&mut self) -> Option<Operation> {
        let due = self.flush_at_end && self.unflushed > 0;
        if due {
            self.unflushed = 0;
        }
        due.then_some(Operation::Flush)
    }
}

/// Returns the range that `share` works on.
fn range_of(workload: &Workload, share: Share) -> Result<ByteRange, Invalid> {
    if workload.division != Division::Parts {
        return Ok(workload.range);
    }
    workload.grid().part(workload.range, share).ok_or_else(|| {
        let room = format!("room for a block of {} for each of", workload.block_max());
        Invalid::new("length", workload.range.length, format!("{room} {} workers", share.shares()))
    })
}

/// Returns how far from the start of the range `share` begins, if each begins `each` after the one before.
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

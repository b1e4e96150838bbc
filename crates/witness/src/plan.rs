//! Plan of the writes of a run. All writes follow from a few numbers, so the verification can compute every
//! byte from the plan.
//!
//! First the region is filled from its beginning to its end and flushed. Then writes go to random places,
//! half of them in the first eighth of the region, so that blocks are often overwritten.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;

use plumb_block::{Bytes, DeviceInfo, Lba, LbaRange, Nanos, unix_time};
use plumb_crash::{below, happens};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, cannot};

/// Length of the writes that fill the region.
const FILL: Bytes = Bytes::mib(1);
/// Maximum number of blocks of a run; verifying this many takes 1 GiB of memory.
const BLOCKS_MAX: u64 = 1 << 26;
/// Maximum number of writes of a run, so that its record fits into memory.
pub(crate) const WRITES_MAX: u64 = 1 << 26;
/// Maximum window, so that the answers to its batches fit into a pipe.
const WINDOW_MAX: u64 = 1024;

/// Plan of what a run writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Seed, which also identifies the run: every block carries it.
    pub seed: u64,
    /// Length of a logical block of the target.
    pub logical_block: Bytes,
    /// Number of logical blocks in the region, which begins at block 0 of the target.
    pub blocks: u64,
    /// Length of a write in logical blocks. Writes may overlap in part, even while in flight together.
    pub write_blocks: u64,
    /// Number of writes in flight.
    pub depth: u32,
    /// Number of writes after which a flush follows; 0 for no flush except that of the filling.
    pub flush_every: u64,
    /// Percentage of the writes that have FUA.
    pub fua_percent: u8,
    /// Number of writes that may be issued beyond those in the last confirmed batch.
    pub window: u64,
}

impl Plan {
    /// Checks the plan, also against a target.
    ///
    /// # Errors
    /// A usage error that names the value and the valid range.
    pub fn check(&self, target: &DeviceInfo) -> Result<()> {
        let block = self.logical_block;
        let size = |blocks: u64| Bytes(block.0.saturating_mul(blocks));
        let blocks_max = target.blocks().min(BLOCKS_MAX);
        let write_max = self.blocks.min(FILL.0 / block.0.max(1)).max(1);
        let is_durable = self.flush_every > 0 || self.fua_percent > 0;
        let rules = [
            (
                block == target.logical_block,
                format!("the logical block of the target is {}: expected {block}", target.logical_block),
            ),
            (
                (2..=blocks_max).contains(&self.blocks),
                format!("the size is {}: expected {} to {}", size(self.blocks), size(2), size(blocks_max)),
            ),
            (
                (1..=write_max).contains(&self.write_blocks),
                format!(
                    "the block size is {}: expected a multiple of {block} up to {FILL} and the size",
                    size(self.write_blocks)
                ),
            ),
            (
                (1..=WINDOW_MAX).contains(&u64::from(self.depth)),
                format!("the depth is {}: expected 1 to {WINDOW_MAX}", self.depth),
            ),
            (
                (u64::from(self.depth)..=WINDOW_MAX).contains(&self.window),
                format!("the window is {}: expected the depth to {WINDOW_MAX}", self.window),
            ),
            (
                self.fua_percent <= 100 && is_durable,
                format!(
                    "{} % of the writes have FUA, with a flush every {} writes: expected up to 100 %, and not both 0",
                    self.fua_percent, self.flush_every
                ),
            ),
        ];
        let broken = rules.into_iter().find(|(is_kept, _)| !is_kept);
        broken.map_or(Ok(()), |(_, what)| Err(Error::usage(what)))
    }

    /// Returns a new random seed that identifies the run. Its upper half is the time in seconds since 1970.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn new_seed() -> Result<u64> {
        let mut chance = [0; 4];
        let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut chance));
        read.map_err(cannot("draw a seed"))?;
        Ok(seconds(unix_time()) << 32 | u64::from(u32::from_ne_bytes(chance)))
    }

    /// Returns the range of seeds of runs that began after the one with `seed`, until `now`. Returns `None`
    /// if the clocks contradict each other.
    pub(crate) fn seeds_between(seed: u64, now: Nanos) -> Option<Range<u64>> {
        let after = ((seed >> 32) + 1) << 32;
        let until = (seconds(now) + 1) << 32;
        (seed >> 32 > 0 && after < until).then_some(after..until)
    }

    /// Returns the number of logical blocks of a write that fills the region.
    pub fn fill_blocks(&self) -> u64 {
        (FILL.0 / self.logical_block.0).max(self.write_blocks)
    }

    /// Returns the number of writes that fill the region.
    pub fn fills(&self) -> u64 {
        self.blocks.div_ceil(self.fill_blocks())
    }

    /// Returns the range of write `number`, and whether it has FUA.
    pub fn write(&self, number: u64) -> (LbaRange, bool) {
        if number < self.fills() {
            let first = number * self.fill_blocks();
            return (LbaRange::new(Lba(first), self.fill_blocks().min(self.blocks - first)), false);
        }
        let mut chance =
            Xoshiro256PlusPlus::seed_from_u64(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let places = self.blocks - self.write_blocks + 1;
        let among = if happens(&mut chance, 0.5) { (places / 8).max(1) } else { places };
        let first = below(&mut chance, among);
        let fua = happens(&mut chance, f64::from(self.fua_percent) / 100.0);
        (LbaRange::new(Lba(first), self.write_blocks), fua)
    }

    /// Returns true if a flush follows the writes below `next`. The flush after the filling covers all of it.
    pub fn flush_before(&self, next: u64) -> bool {
        match next.checked_sub(self.fills()) {
            None => false,
            Some(0) => true,
            Some(random) => self.flush_every > 0 && random.is_multiple_of(self.flush_every),
        }
    }

    /// Returns the name of the run in files and reports.
    pub fn name(&self) -> String {
        format!("{:016x}", self.seed)
    }
}

/// Returns the seconds since 1970, in 32 bits (until 2106).
fn seconds(time: Nanos) -> u64 {
    (time.0 / 1_000_000_000).min(u64::from(u32::MAX - 1))
}

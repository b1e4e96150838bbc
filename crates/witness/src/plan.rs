//! Plan of what a run writes: all of it follows from a few figures, so that whoever verifies knows every byte
//! without having been told.
//!
//! First the region is filled from its beginning to its end, and flushed. Then come writes at random places,
//! half of them in the first eighth of the region, so that blocks are often written again.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;

use plumb_block::{Bytes, DeviceInfo, Lba, LbaRange, Nanos, unix_time};
use plumb_crash::{below, happens};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, cannot};

/// The longest write of the filling.
const FILL: Bytes = Bytes::mib(1);
/// Maximum number of blocks of a run; so many take 1 GiB of memory to verify.
const BLOCKS_MAX: u64 = 1 << 26;
/// Maximum number of writes in one run, so that its record fits into memory.
pub(crate) const WRITES_MAX: u64 = 1 << 26;
/// Maximum number of batches of events for which the answer fits a pipe.
const WINDOW_MAX: u64 = 1024;

/// Plan of what a run writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed, which names the run: every block carries it.
    pub seed: u64,
    /// The logical block of the target.
    pub logical_block: Bytes,
    /// Number of logical blocks that are written, from the first of the target on.
    pub blocks: u64,
    /// Logical blocks of each write. Writes may overlap in part, also those in flight together.
    pub write_blocks: u64,
    /// Number of writes that are in flight.
    pub depth: u32,
    /// A flush follows every so many writes; 0: none but that of the filling.
    pub flush_every: u64,
    /// Percentage of the writes that have FUA.
    pub fua_percent: u8,
    /// Number of writes that may be issued beyond those that the last confirmed batch tells of.
    pub window: u64,
}

impl Plan {
    /// Checks the plan, also against a target.
    ///
    /// # Errors
    /// A usage error, with what it is and what was expected.
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

    /// Returns a seed that no other run has and that says when this one began: seconds since 1970 in its
    /// upper half.
    ///
    /// # Errors
    /// If there are no random numbers.
    pub fn new_seed() -> Result<u64> {
        let mut chance = [0; 4];
        let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut chance));
        read.map_err(cannot("draw a seed"))?;
        Ok(seconds(unix_time()) << 32 | u64::from(u32::from_ne_bytes(chance)))
    }

    /// Returns the seeds of runs that began after the one with `seed`, until `now`. None by clocks that
    /// contradict each other.
    pub(crate) fn seeds_between(seed: u64, now: Nanos) -> Option<Range<u64>> {
        let after = ((seed >> 32) + 1) << 32;
        let until = (seconds(now) + 1) << 32;
        (seed >> 32 > 0 && after < until).then_some(after..until)
    }

    /// Returns the number of logical blocks of a write of the filling.
    pub fn fill_blocks(&self) -> u64 {
        (FILL.0 / self.logical_block.0).max(self.write_blocks)
    }

    /// Returns how many writes fill the region.
    pub fn fills(&self) -> u64 {
        self.blocks.div_ceil(self.fill_blocks())
    }

    /// Returns where write `number` goes, and whether it has FUA.
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

    /// Returns true if a flush follows the writes below `next`: that after the filling covers all of it.
    pub fn flush_before(&self, next: u64) -> bool {
        match next.checked_sub(self.fills()) {
            None => false,
            Some(0) => true,
            Some(random) => self.flush_every > 0 && random.is_multiple_of(self.flush_every),
        }
    }

    /// Returns the run as it is named in files and reports.
    pub fn name(&self) -> String {
        format!("{:016x}", self.seed)
    }
}

/// Returns the seconds since 1970; in 32 bits until 2106.
fn seconds(time: Nanos) -> u64 {
    (time.0 / 1_000_000_000).min(u64::from(u32::MAX - 1))
}

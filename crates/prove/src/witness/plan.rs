//! What a run writes: all of it follows from a few figures, so that whoever verifies knows every byte without having been told.
//!
//! First the region is filled from its beginning to its end, and flushed. Then come writes at random places, half of them in the
//! first eighth of the region, so that blocks are often written again.

use std::fmt;
use std::str::FromStr;

use plumb_block::{Bytes, DeviceInfo, Lba, LbaRange};
use plumb_crash::{below, happens};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use serde::{Deserialize, Serialize};

/// The longest write of the filling.
const FILL: Bytes = Bytes::mib(1);
/// So many blocks take 1 GiB of memory to verify.
const BLOCKS_MAX: u64 = 1 << 26;
/// So many writes are in one run, so that its record fits into memory.
pub(super) const WRITES_MAX: u64 = 1 << 26;
/// Of so many batches of events the answer fits a pipe.
const WINDOW_MAX: u64 = 1024;

/// What makes writes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durable {
    /// Every write has FUA.
    Fua,
    /// A flush after every so many writes.
    Flush(u64),
    /// The same, and one write in four has FUA.
    Mixed(u64),
}

impl FromStr for Durable {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let expected =
            || format!("`{typed}`: expected fua, flush:N or mixed:N, where N writes are between two flushes");
        let (name, every) = typed.split_once(':').map_or((typed, None), |(name, every)| (name, Some(every)));
        let every = every
            .map(|every| every.parse().ok().filter(|every| *every > 0).ok_or_else(expected))
            .transpose()?;
        match (name, every) {
            ("fua", None) => Ok(Self::Fua),
            ("flush", every) => Ok(Self::Flush(every.unwrap_or(16))),
            ("mixed", every) => Ok(Self::Mixed(every.unwrap_or(16))),
            _ => Err(expected()),
        }
    }
}

/// As it is typed.
impl fmt::Display for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fua => f.write_str("fua"),
            Self::Flush(every) => write!(f, "flush:{every}"),
            Self::Mixed(every) => write!(f, "mixed:{every}"),
        }
    }
}

/// What a run writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed, which names the run: every block carries it.
    pub seed: u64,
    /// The logical block of the target.
    pub logical_block: Bytes,
    /// How many logical blocks are written, from the first of the target on.
    pub blocks: u64,
    /// Logical blocks of each write.
    pub write_blocks: u64,
    /// How many writes are in flight.
    pub depth: u32,
    /// Whether writes may overlap in part.
    pub overlap: bool,
    /// What makes writes durable.
    pub durable: Durable,
    /// How many writes may be issued beyond those that the last confirmed batch tells of.
    pub window: u64,
}

/// A plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}: expected {expected}")]
pub struct PlanError {
    field: &'static str,
    found: String,
    expected: String,
}

impl Plan {
    /// Checks the plan, also against a target.
    ///
    /// # Errors
    /// With the field, what it is and what was expected.
    pub fn check(&self, target: &DeviceInfo) -> Result<(), PlanError> {
        let wrong = |field, found: String, expected: String| Err(PlanError { field, found, expected });
        let block = self.logical_block;
        if block != target.logical_block {
            return wrong(
                "the logical block of the target",
                target.logical_block.to_string(),
                block.to_string(),
            );
        }
        let most = target.blocks().min(BLOCKS_MAX);
        if !(2..=most).contains(&self.blocks) {
            let expected = format!("{} to {}", block * 2, block * most);
            return wrong("the size", (block * self.blocks).to_string(), expected);
        }
        if !(1..=self.blocks.min(FILL.0 / block.0).max(1)).contains(&self.write_blocks) {
            let expected = format!("a multiple of {block} up to {FILL} and the size");
            return wrong("the block size", (block * self.write_blocks).to_string(), expected);
        }
        if !(1..=1024).contains(&self.depth) {
            return wrong("the depth", self.depth.to_string(), "1 to 1024".to_owned());
        }
        if !(u64::from(self.depth)..=WINDOW_MAX).contains(&self.window) {
            return wrong("the window", self.window.to_string(), format!("the depth to {WINDOW_MAX}"));
        }
        Ok(())
    }

    /// Logical blocks of a write of the filling.
    pub fn fill_blocks(&self) -> u64 {
        (FILL.0 / self.logical_block.0).max(self.write_blocks)
    }

    /// How many writes fill the region.
    pub fn fills(&self) -> u64 {
        self.blocks.div_ceil(self.fill_blocks())
    }

    /// Where write `number` goes, and whether it has FUA.
    pub fn write(&self, number: u64) -> (LbaRange, bool) {
        if number < self.fills() {
            let first = number * self.fill_blocks();
            return (LbaRange::new(Lba(first), self.fill_blocks().min(self.blocks - first)), false);
        }
        let mut chance =
            Xoshiro256PlusPlus::seed_from_u64(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let unit = if self.overlap { 1 } else { self.write_blocks };
        let places = (self.blocks - self.write_blocks) / unit + 1;
        let among = if happens(&mut chance, 0.5) { (places / 8).max(1) } else { places };
        let first = below(&mut chance, among) * unit;
        let fua = match self.durable {
            Durable::Fua => true,
            Durable::Flush(_) => false,
            Durable::Mixed(_) => happens(&mut chance, 0.25),
        };
        (LbaRange::new(Lba(first), self.write_blocks), fua)
    }

    /// Whether a flush follows the writes below `next`: that after the filling covers all of it.
    pub fn flush_before(&self, next: u64) -> bool {
        match self.durable {
            _ if next <= self.fills() => next == self.fills(),
            Durable::Fua => false,
            Durable::Flush(every) | Durable::Mixed(every) => (next - self.fills()).is_multiple_of(every),
        }
    }

    /// The run as it is named in files and reports.
    pub fn name(&self) -> String {
        format!("{:016x}", self.seed)
    }
}

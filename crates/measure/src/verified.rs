//! Results of comparing blocks with the data that was written.

use plumb_block::{Lba, Nanos, Stamp};
use serde::{Deserialize, Serialize};

/// Maximum number of wrong blocks recorded individually.
const EXAMPLES_MAX: usize = 16;

/// Results of verification. Counts are logical blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyResult {
    /// Blocks read and compared.
    pub blocks: u64,
    /// Lost acknowledged writes.
    pub lost: u64,
    /// Torn blocks.
    pub torn: u64,
    /// Blocks written for another address.
    pub misdirected: u64,
    /// Blocks with an older version.
    pub stale: u64,
    /// Blocks that were acknowledged but not durable when power or connection were lost, and that hold the
    /// written data.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at_risk: u64,
    /// Blocks at risk that hold an older version, which is allowed; not included in [`blocks`](Self::blocks).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub older: u64,
    /// Blocks that could not be read because the target no longer answered; their state is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreached: u64,
    /// Bytes read back for comparison after the load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_back_bytes: u64,
    /// Time for reading back, summed over several targets, since they are read one after the other. Not
    /// serialized.
    #[serde(skip)]
    pub read_back_time: Nanos,
    /// First wrong blocks.
    pub examples: Vec<WrongBlock>,
}

/// A block with wrong contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongBlock {
    /// Logical block of the target.
    pub lba: Lba,
    /// Kind of the error.
    pub kind: WrongKind,
    /// Acknowledged version; `None` if this run had not written the block.
    pub expected: Option<u64>,
    /// Stamp found in the block, if any.
    pub found: Option<Stamp>,
}

/// Kind of error in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WrongKind {
    /// An acknowledged write is missing.
    Lost,
    /// The block is torn.
    Torn,
    /// The block was written for another address.
    Misdirected,
    /// The block has an older version.
    Stale,
}

impl VerifyResult {
    /// Returns the number of wrong blocks.
    pub fn wrong(&self) -> u64 {
        [self.lost, self.torn, self.misdirected, self.stale].into_iter().fold(0, u64::saturating_add)
    }

    /// Counts a wrong block.
    pub fn count(&mut self, wrong: WrongBlock) {
        let counter = match wrong.kind {
            WrongKind::Lost => &mut self.lost,
            WrongKind::Torn => &mut self.torn,
            WrongKind::Misdirected => &mut self.misdirected,
            WrongKind::Stale => &mut self.stale,
        };
        *counter += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(wrong);
        }
    }

    /// Adds the results of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.lost += other.lost;
        self.torn += other.torn;
        self.misdirected += other.misdirected;
        self.stale += other.stale;
        self.at_risk += other.at_risk;
        self.older += other.older;
        self.unreached += other.unreached;
        self.read_back_bytes += other.read_back_bytes;
        self.read_back_time += other.read_back_time;
        let room = EXAMPLES_MAX - self.examples.len().min(EXAMPLES_MAX);
        self.examples.extend(other.examples.iter().take(room));
    }
}

impl WrongKind {
    /// Returns the name of the kind in the document.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Torn => "torn",
            Self::Misdirected => "misdirected",
            Self::Stale => "stale",
        }
    }
}

/// Returns true if the count is zero. `skip_serializing_if` passes a reference.
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

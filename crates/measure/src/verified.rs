//! Findings in blocks that were read and compared with what was written.

use plumb_block::{Lba, Nanos, Stamp};
use serde::{Deserialize, Serialize};

/// Number of wrong blocks that are kept one by one.
const EXAMPLES_MAX: usize = 16;

/// Results of verification. Counts are logical blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyResult {
    /// Blocks that were read and compared.
    pub blocks: u64,
    /// Acknowledged writes that are not there.
    pub lost: u64,
    /// Blocks that are not whole.
    pub torn: u64,
    /// Blocks that were written for another address.
    pub misdirected: u64,
    /// Older versions.
    pub stale: u64,
    /// Blocks that were acknowledged and not durable when power or connection were lost, and that hold what
    /// was written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at_risk: u64,
    /// Such blocks that hold something older, as they may; not among [`blocks`](Self::blocks).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub older: u64,
    /// Blocks that could not be read because nobody answered any more; nothing is said of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreached: u64,
    /// Bytes that were read back when the load was over, to be compared.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_back_bytes: u64,
    /// Time for that; that of several targets in sum, since they are read one after the other. Not in
    /// documents.
    #[serde(skip)]
    pub read_back_time: Nanos,
    /// The first that are wrong.
    pub examples: Vec<WrongBlock>,
}

/// A block that is not as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongBlock {
    /// Logical block of the target.
    pub lba: Lba,
    /// How it is wrong.
    pub kind: WrongKind,
    /// The version that was acknowledged; `None` if this run had not written the block.
    pub expected: Option<u64>,
    /// Stamp that the block bears, if it bears one.
    pub found: Option<Stamp>,
}

/// How a block is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WrongKind {
    /// An acknowledged write is not there.
    Lost,
    /// The block is not whole.
    Torn,
    /// The block was written for another address.
    Misdirected,
    /// The block is an older version.
    Stale,
}

impl VerifyResult {
    /// Returns the number of blocks that are wrong.
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

    /// Adds what another worker found.
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

/// `skip_serializing_if` passes a reference.
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

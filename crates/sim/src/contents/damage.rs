//! Damage by a power cut: how the survivors are chosen, what goes wrong beyond the rules, and the account of
//! it.

use serde::{Deserialize, Serialize};

use plumb_crash::{Strategy, Survival};

/// How a drive behaves when its power is cut; `[behaviour.damage]` of a model. The probabilities are from 0
/// to 1, and 0 where a model does not say.
///
/// Faults as in Zheng et al., "Understanding the Robustness of SSDs under Power Fault", FAST 2013: shorn
/// writes, unserializable writes, bit corruption (here: torn inside a block), and writes to the wrong place.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Damage {
    /// Choice of what survives of the commands at risk. All that it may choose is legal. No model sets it.
    #[serde(skip)]
    pub survival: Survival,
    /// Probability that a block of a command in flight becomes unreadable. Legal, unless the command is
    /// atomic.
    pub unreadable: f64,
    /// Probability that one block of a surviving command is torn inside.
    pub torn: f64,
    /// Probability that only the first three or seven eighths of each 4 KiB of a surviving write land.
    pub shorn: f64,
    /// Probability that a surviving write lands elsewhere.
    pub misdirected: f64,
    /// Probability, for each cut, that survivors land in reverse order.
    pub unserialized: f64,
    /// Probability that a block of an acknowledged write at risk becomes unreadable. No model sets it.
    #[serde(skip)]
    pub latent: f64,
}

impl Damage {
    /// Damage that the contract allows and no more; blocks in flight become unreadable one time in fifty.
    pub const LEGAL: Self = Self {
        survival: Survival::Mixed,
        unreadable: 0.02,
        torn: 0.0,
        shorn: 0.0,
        misdirected: 0.0,
        unserialized: 0.0,
        latent: 0.0,
    };
}

impl Default for Damage {
    fn default() -> Self {
        Self { unreadable: 0.0, ..Self::LEGAL }
    }
}

/// Account of a power cut. The status of a drive has the fields that are not skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CutReport {
    /// How the survivors were chosen.
    #[serde(skip)]
    pub strategy: Strategy,
    /// Commands that were in flight, those that were lost track of included.
    pub in_flight: u64,
    /// Commands that were answered and not durable.
    pub at_risk: u64,
    /// Commands in flight or at risk of which all blocks survived.
    pub survived: u64,
    /// Commands in flight or at risk of which some blocks survived.
    pub torn: u64,
    /// Blocks of which an answered version is gone and something older, or what nobody wrote there, is left.
    /// Lost discards are not counted.
    #[serde(skip)]
    pub lost_blocks: u64,
    /// Lost blocks of which the drive had said that they were durable, by answering FUA or a flush. Zero for
    /// a drive that does not lie.
    #[serde(skip)]
    pub promised_lost_blocks: u64,
    /// Blocks that cannot be read.
    pub unreadable_blocks: u64,
    /// Blocks torn inside.
    pub torn_inside_blocks: u64,
    /// Writes of which the ends of each 4 KiB are missing.
    pub shorn: u64,
    /// Writes that landed elsewhere.
    pub misdirected: u64,
    /// Blocks that held something and over which those landed: they are lost, too, however long they had been
    /// durable.
    pub misdirected_over_blocks: u64,
    /// True if survivors landed in the reverse of their order.
    #[serde(skip)]
    pub unserialized: bool,
}

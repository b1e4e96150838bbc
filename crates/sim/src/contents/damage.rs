//! Damage by a power cut: selection of the survivors, corruption beyond the rules, and the report.

use serde::{Deserialize, Serialize};

use plumb_crash::{Strategy, Survival};

/// Behaviour of a drive in a power cut; `[behaviour.damage]` of a model. Probabilities are from 0 to 1, with
/// a default of 0.
///
/// Faults as in Zheng et al., "Understanding the Robustness of SSDs under Power Fault", FAST 2013: shorn
/// writes, unserializable writes, bit corruption (here: torn inside a block), and misdirected writes.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Damage {
    /// Selection of the surviving commands at risk. All choices are legal. Not set by models.
    #[serde(skip)]
    pub survival: Survival,
    /// Probability that a block of a command in flight becomes unreadable. Legal, unless the command is
    /// atomic.
    pub unreadable: f64,
    /// Probability that one block of a surviving command is torn inside.
    pub torn: f64,
    /// Probability that only the first three or seven eighths of each 4 KiB of a surviving write land.
    pub shorn: f64,
    /// Probability that a surviving write is misdirected.
    pub misdirected: f64,
    /// Probability, for each cut, that survivors land in reverse order.
    pub unserialized: f64,
    /// Probability that a block of an acknowledged write at risk becomes unreadable. Not set by models.
    #[serde(skip)]
    pub latent: f64,
}

impl Damage {
    /// Only damage that the contract allows; blocks in flight become unreadable with a probability of 2 %.
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

/// Report of a power cut. The status of a drive includes the fields that are serialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CutReport {
    /// Strategy that selected the survivors.
    #[serde(skip)]
    pub strategy: Strategy,
    /// Commands in flight, including those that never got an answer.
    pub in_flight: u64,
    /// Commands answered but not durable.
    pub at_risk: u64,
    /// Commands in flight or at risk of which all blocks survived.
    pub survived: u64,
    /// Commands in flight or at risk of which some blocks survived.
    pub torn: u64,
    /// Blocks that lost an answered version to an older or foreign one. Lost discards are not counted.
    #[serde(skip)]
    pub lost_blocks: u64,
    /// Lost blocks that the drive had reported as durable, by answering FUA or a flush. Zero for an honest
    /// drive.
    #[serde(skip)]
    pub promised_lost_blocks: u64,
    /// Unreadable blocks.
    pub unreadable_blocks: u64,
    /// Internally torn blocks.
    pub torn_inside_blocks: u64,
    /// Writes that lack the end of each 4 KiB.
    pub shorn: u64,
    /// Misdirected writes.
    pub misdirected: u64,
    /// Blocks with data overwritten by misdirected writes; these are lost, too, however long they had been
    /// durable.
    pub misdirected_over_blocks: u64,
    /// True if survivors landed in reverse order.
    #[serde(skip)]
    pub unserialized: bool,
}

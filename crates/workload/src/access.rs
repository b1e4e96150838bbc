//! Access pattern: the offsets of operations within the range.

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// Order in which the range is accessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Random places from a distribution.
    Random(Random),
    /// Sequential places, starting over after the last that fits.
    Sequential(Sequential),
}

/// Random access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// Alignment of offsets from the start of the range; `None`: the shortest block that occurs.
    pub align: Option<Bytes>,
    /// Probability of each place.
    pub distribution: Distribution,
    /// Number of sequential operations from each drawn place.
    pub runs: Runs,
}

/// Length of sequential runs from a drawn place. All operations of a run are of one kind. A run ends at the
/// end of the range or of its zone at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runs {
    /// Runs of one: every operation draws a place.
    Single,
    /// Each operation draws a new place with this probability, 1 to 99 percent, so run lengths are
    /// geometrically distributed (DiskSpd `-rs`).
    Geometric {
        /// Percentage of operations that draw a new place.
        random_percent: u8,
    },
    /// Fixed number of operations from each drawn place (fio `rw=randread:N`), at least 2.
    Fixed(u32),
}

/// Probability with which each place is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Equal probability for all places.
    Uniform,
    /// Random order in which every place occurs once before any repeats: a permutation, without memory for
    /// each place. Every pass has another order. Only for single operations, since runs would access places
    /// out of turn.
    EachOnce,
    /// Zipf's law: the k-th most likely place has the weight k^-theta. Likely places are scattered over the
    /// range.
    Zipf {
        /// Exponent, above 0 and not 1; 0.99 to 1.2 are common.
        theta: f64,
    },
    /// Pareto's 80/20 rule in fio's form: `power` 0.2 sends 80 % of operations to 20 % of the places. Likely
    /// places are scattered over the range.
    Pareto {
        /// Power, between 0 and 1.
        power: f64,
    },
    /// Normal distribution around the middle of the range.
    Normal {
        /// Standard deviation in percent of the range, above 0, at most 100.
        deviation_percent: f64,
    },
    /// Consecutive zones from the start of the range, each with a share of the operations, uniformly
    /// distributed inside. The rest of the range after the last zone gets the remaining share.
    Zoned(Vec<Zone>),
}

/// One zone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Percentage of operations in the zone, 0 to 100; 0 is a hole. The sum must not exceed 100.
    pub io_percent: f64,
    /// Length of the zone.
    pub length: ZoneLength,
}

/// Length of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneLength {
    /// Percentage of the range, above 0. The sum must not exceed 100.
    Percent(f64),
    /// Length in bytes.
    Bytes(Bytes),
}

/// Sequential access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {
    /// Distance between the starts of two operations; `None`: the length of the operation. Zero repeats one
    /// place.
    pub stride: Option<Bytes>,
    /// Way in which workers advance.
    pub walk: Walk,
}

/// Way in which workers or requests advance through a sequential range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Walk {
    /// Each worker advances separately.
    Each,
    /// All workers take the next place from one shared position (DiskSpd `-si`). Requires an overlapping
    /// share.
    Interlocked,
    /// Each request slot of a worker advances separately from the same start, so `depth` operations go to
    /// each place (DiskSpd `-p`).
    Parallel,
}

impl Access {
    /// Random access to any block with equal probability.
    pub const RANDOM: Self =
        Self::Random(Random { align: None, distribution: Distribution::Uniform, runs: Runs::Single });
    /// Sequential access to all blocks.
    pub const SEQUENTIAL: Self = Self::Sequential(Sequential { stride: None, walk: Walk::Each });

    /// Returns true if places are random.
    pub const fn is_random(&self) -> bool {
        matches!(self, Self::Random(_))
    }
}

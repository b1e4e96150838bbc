//! Access pattern: the places of operations within the range.

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// The order in which the range is touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Places drawn from a distribution.
    Random(Random),
    /// One after the other, and from the start again after the last that fits.
    Sequential(Sequential),
}

/// Random access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// Offsets are multiples of this from the start of the range; `None`: of the shortest block that
    /// occurs.
    pub align: Option<Bytes>,
    /// How likely each place is.
    pub distribution: Distribution,
    /// Number of operations that go on where the one before ended before a new place is drawn.
    pub runs: Runs,
}

/// Number of operations that follow one another from a drawn place. Each run is all reads, all writes or all
/// trims, and ends at the end of the range or of its zone at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runs {
    /// One: every operation draws.
    Single,
    /// Each operation draws with this probability, 1 to 99 percent, so that the runs are of geometric length
    /// (DiskSpd `-rs`).
    Geometric {
        /// The share of operations that draw.
        random_percent: u8,
    },
    /// Fixed number of operations from each drawn place (fio `rw=randread:N`), at least 2.
    Fixed(u32),
}

/// How likely each place is to be drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All places alike.
    Uniform,
    /// Every place once, in random order, before any comes again: a permutation, without memory for each
    /// place. Each pass is in an order of its own. Only for single operations: runs go over places that have
    /// a turn already.
    EachOnce,
    /// Zipf's law: the k-th most likely place has the weight k^-theta. The likely ones are spread over the
    /// range.
    Zipf {
        /// Exponent, above 0 and not 1; 0.99 to 1.2 are common.
        theta: f64,
    },
    /// Pareto's 80/20 rule in fio's form: `power` 0.2 sends 80 % of operations to 20 % of the places. The
    /// likely ones are spread over the range.
    Pareto {
        /// Power, between 0 and 1.
        power: f64,
    },
    /// A bell around the middle of the range.
    Normal {
        /// The standard deviation in percent of the range, above 0, at most 100.
        deviation_percent: f64,
    },
    /// Zones one after the other from the start of the range, each with a share of the operations, uniform
    /// within. What the last zone leaves over of the range gets the remaining share.
    Zoned(Vec<Zone>),
}

/// One zone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Share of the operations that the zone receives, 0 to 100; 0 is a hole. All together at most 100.
    pub io_percent: f64,
    /// How long it is.
    pub length: ZoneLength,
}

/// How long a zone is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneLength {
    /// Share of the range in percent, above 0; all together at most 100.
    Percent(f64),
    /// Length in bytes.
    Bytes(Bytes),
}

/// Sequential access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {
    /// Distance between the starts of two operations; `None`: the length of the operation. Zero stays in
    /// place.
    pub stride: Option<Bytes>,
    /// Kind of walk: whether workers advance alone or together.
    pub walk: Walk,
}

/// Kind of walk through a sequential range: whether workers or requests advance alone or together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Walk {
    /// Each worker on its own.
    Each,
    /// All workers together take the next place from one position (DiskSpd `-si`). Needs an overlapping
    /// share.
    Interlocked,
    /// Each of the requests that a worker has in flight walks for itself, all from the same start: so `depth`
    /// operations go to each place (DiskSpd `-p`).
    Parallel,
}

impl Access {
    /// Random access to any block with the same probability.
    pub const RANDOM: Self =
        Self::Random(Random { align: None, distribution: Distribution::Uniform, runs: Runs::Single });
    /// One block after the other.
    pub const SEQUENTIAL: Self = Self::Sequential(Sequential { stride: None, walk: Walk::Each });

    /// Returns true if places are drawn.
    pub const fn is_random(&self) -> bool {
        matches!(self, Self::Random(_))
    }
}

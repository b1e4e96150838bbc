//! Findings in a log when it was opened, beside what is taken from it: for whoever wants to know whether it
//! is sound.

use plumb_block::{Bytes, LbaRange};
use serde::{Deserialize, Serialize};

/// Findings of recovery in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Records that were taken, and how much of the log they are.
    pub records: u64,
    /// See `records`.
    pub record_bytes: Bytes,
    /// Records at the end that a power cut tore or cut off from those before, and that are given up. No
    /// record says that they are durable; whether the last flush was answered for them the log does not know.
    pub given_up_records: u64,
    /// Records that the log knows to be durable and that are given up all the same, as was allowed: they are
    /// damaged or gone, or come after one that is. That the last ones were flushed no record says.
    pub lost_records: u64,
    /// Findings on each leg.
    pub legs: Vec<LegFindings>,
    /// Blocks of the cached device of which no leg has what was written durably: reads of them fail.
    #[serde(skip)]
    pub damaged: Vec<LbaRange>,
}

/// Accepted records that a leg lacks. Recovery copies them from another leg.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegFindings {
    /// Amount that it lacks of records that were not said to be durable yet, as after any power cut.
    pub behind_bytes: Bytes,
    /// Amount that it lacks of records that were said to be durable: the leg was damaged since.
    pub damaged_bytes: Bytes,
    /// True if no superblock at its front is whole any more, which no power cut does: it was found by those
    /// at its end.
    #[serde(default)]
    pub front_lost: bool,
}

impl Findings {
    pub(super) fn for_legs(legs: usize) -> Self {
        Self { legs: vec![LegFindings::default(); legs], ..Self::default() }
    }

    /// Notes that a leg lacks so many bytes of a record.
    pub(super) fn lacks(&mut self, leg: usize, bytes: u64, is_durable: bool) {
        let LegFindings { behind_bytes, damaged_bytes, .. } = &mut self.legs[leg];
        let lacking = if is_durable { damaged_bytes } else { behind_bytes };
        lacking.0 += bytes;
    }

    /// Returns true if every leg has all durable records and the headers needed to find them.
    pub fn is_sound(&self) -> bool {
        self.lost_records == 0
            && self.damaged.is_empty()
            && self.legs.iter().all(|leg| leg.damaged_bytes == Bytes(0) && !leg.front_lost)
    }
}

//! Condition of a log when it was opened, in addition to the data taken from it.

use plumb_block::{Bytes, LbaRange};
use serde::{Deserialize, Serialize};

/// Condition of a log as found by recovery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Number of accepted records.
    pub records: u64,
    /// Total size of the accepted records.
    pub record_bytes: Bytes,
    /// Number of records at the end that a power cut tore or separated from earlier ones, and that are given
    /// up. No record states that they are durable; whether the last flush was answered is unknown.
    pub given_up_records: u64,
    /// Number of durable records that were given up as permitted: they are damaged or missing, or follow one
    /// that is. No record states that the last ones were flushed.
    pub lost_records: u64,
    /// Condition of each leg.
    pub legs: Vec<LegFindings>,
    /// Blocks of the cached device whose durable data no leg has: reads of them fail.
    #[serde(skip)]
    pub damaged: Vec<LbaRange>,
}

/// Accepted records that a leg lacks, which recovery copies from another leg.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegFindings {
    /// Bytes that the leg lacks of records not known to be durable, as after any power cut.
    pub behind_bytes: Bytes,
    /// Bytes that the leg lacks of durable records: it was damaged.
    pub damaged_bytes: Bytes,
    /// True if no superblock at the start of the leg is intact, which a power cut cannot cause; one at its
    /// end is.
    #[serde(default)]
    pub front_lost: bool,
}

impl Findings {
    pub(super) fn for_legs(legs: usize) -> Self {
        Self { legs: vec![LegFindings::default(); legs], ..Self::default() }
    }

    /// Records that a leg lacks this many bytes of a record.
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

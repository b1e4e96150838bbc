//! Which writes are all or nothing across a power cut.

use plumb_block::LbaRange;

use super::planted::{Bug, planted};

/// How much a drive writes all or nothing, in logical blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Atomicity {
    /// The longest atomic write, at least 1 (NVMe AWUPF + 1).
    pub unit: u64,
    /// A write that crosses a multiple of this is not atomic; 0: there is no boundary (NVMe NABSPF).
    pub boundary: u64,
}

impl Atomicity {
    /// One logical block.
    pub const BLOCK: Self = Self { unit: 1, boundary: 0 };
}

/// Whether a write of `range` survives whole or not at all.
pub fn is_atomic(range: LbaRange, atomicity: Atomicity) -> bool {
    if range.nlb > atomicity.unit {
        return false;
    }
    if atomicity.boundary == 0 || range.nlb == 0 || planted(Bug::BoundaryIgnored) {
        return true;
    }
    let last = range.end().0 - 1;
    range.lba.0 / atomicity.boundary == last / atomicity.boundary
}

//! Atomicity of writes: those that survive a power cut whole or not at all.

use plumb_block::LbaRange;

/// How much a device writes all or nothing, in logical blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Atomicity {
    /// The longest atomic write (NVMe AWUPF + 1). 0: not even a block is known to be readable after a cut.
    pub unit: u64,
    /// A write that crosses a multiple of this is not atomic; 0: there is no boundary (NVMe NABSPF).
    pub boundary: u64,
}

impl Atomicity {
    /// One logical block.
    pub const BLOCK: Self = Self { unit: 1, boundary: 0 };

    /// Returns true if a write of `range` survives whole or not at all.
    pub const fn is_atomic(self, range: LbaRange) -> bool {
        if range.nlb > self.unit {
            return false;
        }
        if self.boundary == 0 || range.nlb == 0 {
            return true;
        }
        range.lba.0 / self.boundary == (range.end().0 - 1) / self.boundary
    }
}

//! Atomicity of writes: which writes survive a power cut completely or not at all.

use plumb_block::LbaRange;

/// Atomic write size of a device, in logical blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Atomicity {
    /// Length of the longest atomic write (NVMe AWUPF + 1). 0: even a single block may be unreadable after a
    /// cut.
    pub unit: u64,
    /// A write that crosses a multiple of this is not atomic; 0: no boundary (NVMe NABSPF).
    pub boundary: u64,
}

impl Atomicity {
    /// Atomicity of single logical blocks.
    pub const BLOCK: Self = Self { unit: 1, boundary: 0 };

    /// Returns true if a write of `range` survives completely or not at all.
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

//! Share of each worker in a workload divided among several.
//!
//! Each worker has its own random stream, and a fraction of the operations, bytes and rate. The workload's
//! [`Division`](crate::Division) determines whether it also has a separate part of the range. If so, no two
//! workers write the same block, and one worker's operations alone determine the contents of a block. Depth,
//! flushes and bursts are per worker and not divided.

use std::num::NonZeroU32;

/// Share number `index` of `of` workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    index: u32,
    of: NonZeroU32,
}

impl Share {
    /// Share of a single worker: everything.
    pub const WHOLE: Self = Self { index: 0, of: NonZeroU32::MIN };

    /// Returns the shares of `of` workers, in order.
    pub fn all(of: NonZeroU32) -> impl Iterator<Item = Self> {
        (0..of.get()).map(move |index| Self { index, of })
    }

    /// Returns the index of this share, from 0.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Returns the number of shares.
    pub const fn shares(self) -> NonZeroU32 {
        self.of
    }

    /// Returns this share of `total` items: shares differ by at most one and add up to `total`.
    pub fn count_of(self, total: u64) -> u64 {
        self.start_of(total, self.index + 1) - self.start_of(total, self.index)
    }

    /// Returns the start of share `index` of `total`. Computed in 128 bits, so no total overflows.
    pub(crate) fn start_of(self, total: u64, index: u32) -> u64 {
        (u128::from(total) * u128::from(index) / u128::from(self.of.get())) as u64
    }
}

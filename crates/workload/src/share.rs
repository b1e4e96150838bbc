//! Share of each worker in a workload that several carry out.
//!
//! Each worker gets its own random stream, and its fraction of the operations, of the bytes and of the rate.
//! Whether it also gets a part of the range of its own is for the workload's [`Division`](crate::Division) to
//! say: where it does, two workers never write the same block, and what a block should hold follows from one
//! worker's operations alone. Depth, flushes and bursts are per worker and not divided.

use std::num::NonZeroU32;

/// The part of one worker: the `index`th of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    index: u32,
    of: NonZeroU32,
}

impl Share {
    /// All of it, for a single worker.
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

    /// Returns this share of `total` things: the shares differ by at most one and add up.
    pub fn count_of(self, total: u64) -> u64 {
        self.start_of(total, self.index + 1) - self.start_of(total, self.index)
    }

    /// Returns where the `index`th share of `total` starts. Widened so that no total overflows.
    pub(crate) fn start_of(self, total: u64, index: u32) -> u64 {
        (u128::from(total) * u128::from(index) / u128::from(self.of.get())) as u64
    }
}

//! How one workload is divided among several workers.
//!
//! Each worker gets its own random stream, and its fraction of the operations, of the bytes and of the rate. Whether
//! it also gets a part of the range of its own is for the workload's [`Division`](crate::Division) to say: where it
//! does, two workers never write the same block, and what a block should hold follows from one worker's operations
//! alone. Depth, flushes and bursts are per worker and not divided.

use std::num::NonZeroU32;

use crate::workload::Workload;

/// The part of one worker: the `index`th of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    index: u32,
    of: NonZeroU32,
}

impl Share {
    /// All of it, for a single worker.
    pub const WHOLE: Self = Self { index: 0, of: NonZeroU32::MIN };

    /// The shares of `of` workers, in order.
    pub fn all(of: NonZeroU32) -> impl Iterator<Item = Self> {
        (0..of.get()).map(move |index| Self { index, of })
    }

    /// Which share this is, from 0.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How many shares there are.
    pub const fn of(self) -> NonZeroU32 {
        self.of
    }

    /// This share of `total` things: the shares differ by at most one and add up.
    pub fn count_of(self, total: u64) -> u64 {
        self.start_of(total, self.index + 1) - self.start_of(total, self.index)
    }

    /// How many reads, writes and trims this share does; `None` if that is not known, because time ends it, or bytes
    /// do in operations of different lengths. May be zero.
    pub fn operations_of(self, workload: &Workload) -> Option<u64> {
        let counted = workload.stop.operations.map(|total| self.count_of(total));
        let length = workload.block_min().0;
        let by_bytes = workload.stop.bytes.filter(|_| workload.block_max().0 == length);
        let by_bytes = by_bytes.map(|total| self.count_of(total.div_ceil(length)));
        counted.into_iter().chain(by_bytes).min()
    }

    /// How many bytes this share moves at least before it ends; `None` if that does not end it. Whole operations of
    /// the shortest length, so that shares of operations of one length move no more together than was asked for.
    pub fn bytes_of(self, workload: &Workload) -> Option<u64> {
        let length = workload.block_min().0;
        workload.stop.bytes.map(|total| self.count_of(total.div_ceil(length)).saturating_mul(length))
    }

    /// Where the `index`th share of `total` starts. Widened so that no total overflows.
    pub(crate) fn start_of(self, total: u64, index: u32) -> u64 {
        (u128::from(total) * u128::from(index) / u128::from(self.of.get())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Stop;
    use crate::workload::ByteRange;
    use plumb_block::Bytes;

    proptest::proptest! {
        #[test]
        fn shares_of_operations_and_bytes_add_up(
            of in 1_u32..64, operations in 1_u64..u64::MAX, bytes in 1_u64..u64::MAX / 2
        ) {
            let range = ByteRange { offset: Bytes(0), length: Bytes::mib(1) };
            let base = Workload::over(range, Bytes(4096));
            let counted = Workload { stop: Stop::operations(operations), ..base.clone() };
            let stop = Stop { bytes: Some(bytes), ..Stop::default() };
            let moved = Workload { stop, ..base };
            let shares = || Share::all(NonZeroU32::new(of).unwrap());
            let sum: u64 = shares().map(|share| share.operations_of(&counted).unwrap()).sum();
            proptest::prop_assert_eq!(sum, operations);
            let sum: u64 = shares().map(|share| share.bytes_of(&moved).unwrap()).sum();
            proptest::prop_assert_eq!(sum, bytes.next_multiple_of(4096));
            let sum: u64 = shares().map(|share| share.operations_of(&moved).unwrap()).sum();
            proptest::prop_assert_eq!(sum, bytes.div_ceil(4096));
        }
    }
}

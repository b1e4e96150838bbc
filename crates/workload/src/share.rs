//! How one workload is divided among several workers.
//!
//! Each worker gets its own part of the range, its own random stream, and its fraction of the operations and of the
//! rate. The parts are disjoint, so that two workers never write the same block: sequential workers do not overlap,
//! and what a block should hold follows from one worker's operations alone. Depth and `flush_every` are per worker
//! and not divided.

use std::num::NonZeroU32;

use plumb_block::Bytes;

use crate::invalid::Invalid;
use crate::workload::{ByteRange, Stop, Workload};

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

    /// The part of the range that is this share's: whole blocks of the workload.
    ///
    /// # Errors
    /// If there are fewer blocks than workers.
    pub fn range_of(self, workload: &Workload) -> Result<ByteRange, Invalid> {
        let blocks = workload.blocks();
        let count = self.count_of(blocks);
        if count == 0 {
            let expected =
                format!("at least one block of {} for each of {} workers", workload.block, self.of);
            return Err(Invalid::new("range.length", workload.range.length, expected));
        }
        let skipped = workload.block * self.start_of(blocks, self.index);
        Ok(ByteRange { offset: Bytes(workload.range.offset.0 + skipped.0), length: workload.block * count })
    }

    /// How many reads and writes this share does; `None` if only time ends it. May be zero.
    pub fn operations_of(self, workload: &Workload) -> Option<u64> {
        match workload.stop {
            Stop::Duration(_) => None,
            Stop::Operations(total) => Some(self.count_of(total)),
        }
    }

    /// Where the `index`th share of `total` starts. Widened so that no total overflows.
    fn start_of(self, total: u64, index: u32) -> u64 {
        (u128::from(total) * u128::from(index) / u128::from(self.of.get())) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn shares_are_disjoint_and_add_up(blocks in 1_u64..100_000, of in 1_u32..64, total in 1_u64..u64::MAX) {
            let of = NonZeroU32::new(of).unwrap();
            let range = ByteRange { offset: Bytes(512), length: Bytes(blocks * 4096 + 100) };
            let workload = Workload { stop: Stop::Operations(total), ..Workload::over(range, Bytes(4096)) };
            let mut end = 512;
            let mut operations = 0;
            for share in Share::all(of) {
                operations += share.operations_of(&workload).unwrap();
                match share.range_of(&workload) {
                    Ok(part) => {
                        proptest::prop_assert_eq!(part.offset.0, end);
                        end += part.length.0;
                    }
                    Err(_) => proptest::prop_assert!(blocks < u64::from(of.get())),
                }
            }
            proptest::prop_assert_eq!(end, 512 + blocks * 4096);
            proptest::prop_assert_eq!(operations, total);
        }
    }
}

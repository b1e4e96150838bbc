//! Set of the surviving blocks of a command.

use plumb_block::mixed;

/// A subset of the blocks of a command, numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// No blocks.
    Nothing,
    /// All blocks.
    All,
    /// The first blocks, this many.
    First(u64),
    /// All but the first blocks, this many.
    AllButFirst(u64),
    /// All but the block with this index.
    Without(u64),
    /// Each block with probability 1/2, determined by the seed.
    Some {
        /// Seed of the random choice.
        seed: u64,
    },
}

/// Maximum number of random bits for a command; longer commands survive in equal pieces.
const PIECES_MAX: u64 = 1 << 12;

impl Keep {
    /// Returns true if block `index` of `blocks` survives.
    pub const fn keeps(self, index: u64, blocks: u64) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::First(count) => index < count,
            Self::AllButFirst(count) => index >= count,
            Self::Without(lost) => index != lost,
            Self::Some { seed } => toss(seed, index / piece(blocks)),
        }
    }

    /// Returns the surviving blocks as runs `(first, count)` in order. At most 4,096 of them, however long
    /// the command.
    pub fn runs(self, blocks: u64) -> Vec<(u64, u64)> {
        let run = |from: u64, to: u64| (from, to.min(blocks).saturating_sub(from));
        let mut runs = match self {
            Self::Nothing => Vec::new(),
            Self::All => vec![run(0, blocks)],
            Self::First(count) => vec![run(0, count)],
            Self::AllButFirst(count) => vec![run(count, blocks)],
            Self::Without(lost) => vec![run(0, lost), run(lost + 1, blocks)],
            Self::Some { seed } => {
                let piece = piece(blocks);
                let kept = (0..blocks.div_ceil(piece)).filter(|number| toss(seed, *number));
                kept.map(|number| run(number * piece, (number + 1) * piece)).collect()
            }
        };
        runs.retain(|(_, count)| *count > 0);
        runs
    }
}

const fn piece(blocks: u64) -> u64 {
    let piece = blocks.div_ceil(PIECES_MAX);
    if piece == 0 { 1 } else { piece }
}

/// Returns the top bit of number `index` of the SplitMix64 sequence.
const fn toss(seed: u64, index: u64) -> bool {
    mixed(seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 63 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_blocks_say_the_same() {
        let shapes = [
            Keep::Nothing,
            Keep::All,
            Keep::First(3),
            Keep::AllButFirst(2),
            Keep::Without(4),
            Keep::Some { seed: 9 },
        ];
        for keep in shapes {
            for blocks in [1, 5, 64, 10_000] {
                let mut seen = vec![false; blocks as usize];
                for (first, count) in keep.runs(blocks) {
                    seen[first as usize..(first + count) as usize].fill(true);
                }
                for (index, kept) in seen.iter().enumerate() {
                    assert_eq!(
                        keep.keeps(index as u64, blocks),
                        *kept,
                        "{keep:?}, block {index} of {blocks}"
                    );
                }
            }
        }
        assert!(Keep::Some { seed: 1 }.runs(u64::MAX / 8).len() as u64 <= PIECES_MAX);
    }
}

//! Corruption of one command that survives a power cut, beyond the crash rules.

use std::ops::Range;

use plumb_block::{Lba, LbaRange};
use plumb_crash::{below, happens};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::damage::Damage;

/// An eighth of the 4 KiB of which a shorn write lacks the end.
const EIGHTH: usize = 512;

/// Corruption of one command.
#[derive(Debug, Default)]
pub(super) struct Corruption {
    /// How many eighths of each 4 KiB land, if the write is shorn.
    shorn: Option<usize>,
    /// Block of the command that is torn inside.
    torn_block: Option<Lba>,
    /// Block from which on the command lands, instead of its own.
    pub(super) misdirected_to: Option<u64>,
}

impl Corruption {
    /// Draws it for a command over `range`; for a write of data `blocks` is the length of the drive.
    pub(super) fn draw(
        chance: &mut Xoshiro256PlusPlus,
        damage: &Damage,
        range: LbaRange,
        blocks: Option<u64>,
    ) -> Self {
        let mut corruption = Self::default();
        if happens(chance, damage.torn) {
            corruption.torn_block = Some(range.lba + below(chance, range.nlb));
        }
        let Some(blocks) = blocks else { return corruption };
        if happens(chance, damage.shorn) {
            corruption.shorn = Some(if below(chance, 2) == 0 { 3 } else { 7 });
        }
        if happens(chance, damage.misdirected) {
            let target = below(chance, blocks - range.nlb + 1);
            // At its own place it is not misdirected.
            corruption.misdirected_to = (target != range.lba.0).then_some(target);
        }
        corruption
    }

    /// Returns true if nothing goes wrong.
    pub(super) const fn is_none(&self) -> bool {
        self.shorn.is_none() && self.torn_block.is_none() && self.misdirected_to.is_none()
    }

    /// Returns true if the write is shorn.
    pub(super) const fn is_shorn(&self) -> bool {
        self.shorn.is_some()
    }

    /// Returns the parts of a block's bytes that stay as they were; they do not overlap.
    pub(super) fn old_parts(&self, lba: Lba, block_bytes: usize) -> Vec<Range<usize>> {
        let is_torn = self.torn_block == Some(lba);
        let from = if is_torn { block_bytes / 2 } else { block_bytes };
        let first = (lba.0 as usize).wrapping_mul(block_bytes / EIGHTH);
        let is_shorn = |eighth: usize| self.shorn.is_some_and(|landed| (first + eighth) % 8 >= landed);
        let eighths = (0..block_bytes / EIGHTH).filter(|eighth| is_shorn(*eighth));
        let shorn = eighths.map(|eighth| eighth * EIGHTH..((eighth + 1) * EIGHTH).min(from));
        let torn = is_torn.then_some(from..block_bytes);
        shorn.filter(|part| !part.is_empty()).chain(torn).collect()
    }
}

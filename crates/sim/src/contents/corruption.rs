//! Corruption, beyond the crash rules, of a command that survives a power cut.

use std::ops::Range;

use plumb_block::{Lba, LbaRange};
use plumb_crash::{below, happens};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::damage::Damage;

/// An eighth of 4 KiB, the unit in which a shorn write lacks its end.
const EIGHTH: usize = 512;

/// Corruption of a command.
#[derive(Debug, Default)]
pub(super) struct Corruption {
    /// Number of eighths of each 4 KiB that land, if the write is shorn.
    shorn: Option<usize>,
    /// Block that is torn internally.
    torn_block: Option<Lba>,
    /// First block of the wrong place where the command lands.
    pub(super) misdirected_to: Option<u64>,
}

impl Corruption {
    /// Draws the corruption of a command over `range`; for a write of data, `blocks` is the size of the
    /// drive.
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
            // The command's own address would not be misdirected.
            corruption.misdirected_to = (target != range.lba.0).then_some(target);
        }
        corruption
    }

    /// Returns true if there is no corruption.
    pub(super) const fn is_none(&self) -> bool {
        self.shorn.is_none() && self.torn_block.is_none() && self.misdirected_to.is_none()
    }

    /// Returns true if the write is shorn.
    pub(super) const fn is_shorn(&self) -> bool {
        self.shorn.is_some()
    }

    /// Returns the disjoint byte ranges of a block that keep their old contents.
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

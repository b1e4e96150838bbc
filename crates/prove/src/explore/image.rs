//! Durable content of a device at a moment of a recording.

use std::collections::BTreeMap;

use plumb_block::{LbaRange, mixed};

use crate::recording::{Command, Content};

/// Content of each block of a device; blocks without an entry are zeroes. A hash of the whole is updated at a
/// cost proportional to the changed blocks (Zobrist, "A New Hashing Method with Application for Game
/// Playing", 1970).
#[derive(Debug, Clone, Default)]
pub struct Image {
    blocks: BTreeMap<u64, Content>,
    hash: u128,
}

/// Returns the contribution of one block to the hash of an image. Zeroes contribute nothing.
pub(super) fn hash_of(lba: u64, content: Content) -> u128 {
    if content == Content::ZEROES {
        return 0;
    }
    let low = mixed(mixed(lba ^ 0x243f_6a88_85a3_08d3) ^ u64::from(content.0));
    let high = mixed(mixed(lba ^ 0x1319_8a2e_0370_7344).wrapping_add(u64::from(content.0)));
    u128::from(high) << 64 | u128::from(low)
}

/// Returns the contribution of a number to a hash that also covers blocks.
pub(super) fn hash_of_number(number: Option<u64>) -> u128 {
    let part = |seed| number.map_or(0, |number| u128::from(mixed(mixed(number) ^ seed)));
    part(0xa409_3822_299f_31d0) << 64 | part(0x082e_fa98_ec4e_6c89)
}

impl Image {
    /// Returns the content of a block.
    pub fn content(&self, lba: u64) -> Content {
        self.blocks.get(&lba).copied().unwrap_or_default()
    }

    /// Returns a hash that is equal for equal images. Different images have equal hashes with a probability
    /// of about 2^-127.
    pub const fn hash(&self) -> u128 {
        self.hash
    }

    /// Returns the blocks that are not zeroes, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, Content)> {
        self.blocks.iter().map(|(lba, content)| (*lba, *content))
    }

    /// Returns the blocks of `range` that are not zeroes, in order.
    pub fn blocks_in(&self, range: LbaRange) -> impl Iterator<Item = (u64, Content)> {
        self.blocks.range(range.lba.0..range.end().0).map(|(lba, content)| (*lba, *content))
    }

    /// Sets the content of a block.
    pub fn set(&mut self, lba: u64, content: Content) {
        let old = match content {
            Content::ZEROES => self.blocks.remove(&lba),
            _ => self.blocks.insert(lba, content),
        };
        self.hash ^= hash_of(lba, old.unwrap_or_default()) ^ hash_of(lba, content);
    }

    /// Applies `command` to `range`, which is a part of the command's range. A discard may be as long as the
    /// device, so only blocks that are not zeroes are visited.
    pub fn apply(&mut self, range: LbaRange, command: &Command) {
        let blocks: Vec<u64> = if command.contents.is_empty() {
            self.blocks_in(range).map(|(lba, _)| lba).collect()
        } else {
            (range.lba.0..range.end().0).collect()
        };
        for lba in blocks {
            self.set(lba, command.content(lba));
        }
    }
}

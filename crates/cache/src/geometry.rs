//! Positions of segments: mapping from (segment, block) to legs and their blocks.
//!
//! Segments are numbered from 0 without end; the log is a ring of `count` positions, and segment N is at
//! position (N + rotation) mod count. In a mirror each leg has every position; in a stripe position P is on
//! leg P mod legs.

use plumb_block::{Bytes, LbaRange};

use crate::settings::{LOG_BLOCK, Layout};

/// Number of log blocks before the first segment: two superblocks, and the rest of 16 KiB.
const FRONT: u64 = 4;
/// Number of log blocks after the last segment: two superblocks.
const BACK: u64 = 2;
/// Minimum and maximum length of a segment, in log blocks.
pub(crate) const SEGMENT_BLOCKS: std::ops::RangeInclusive<u64> = 8..=16384;
/// Maximum number of segments of a leg: 1 PiB with the largest segment.
const PER_LEG_MAX: u64 = 1 << 24;

/// Shape of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Size of the cache's logical block, in bytes.
    pub(crate) logical_block: u64,
    /// Length of a segment in log blocks.
    pub(crate) segment_blocks: u32,
    /// Number of segments on a leg.
    pub(crate) per_leg: u64,
    /// Position of segment 0 in the ring. Changes when the ring grows, so that no segment moves.
    pub(crate) rotation: u64,
    pub(crate) layout: Layout,
    pub(crate) legs: u8,
}

impl Geometry {
    /// Returns the number of segments that fit into `size` bytes of a leg.
    pub(crate) fn per_leg(size: Bytes, segment_blocks: u32) -> u64 {
        (size.0 / LOG_BLOCK).saturating_sub(FRONT + BACK) / u64::from(segment_blocks)
    }

    /// Returns true if the shape is valid, so that no computation with it overflows.
    pub(crate) fn is_sound(&self) -> bool {
        self.logical_block.is_power_of_two()
            && (512..=LOG_BLOCK).contains(&self.logical_block)
            && SEGMENT_BLOCKS.contains(&u64::from(self.segment_blocks))
            && self.legs > 0
            && (1..=PER_LEG_MAX).contains(&self.per_leg)
            && self.count() >= 3
            && self.rotation < self.count()
    }

    /// Returns the length of a segment, in bytes.
    pub(crate) fn segment_bytes(&self) -> u64 {
        u64::from(self.segment_blocks) * LOG_BLOCK
    }

    /// Returns the number of segments in the ring.
    pub(crate) fn count(&self) -> u64 {
        match self.layout {
            Layout::Mirror => self.per_leg,
            Layout::Stripe => self.per_leg * u64::from(self.legs),
        }
    }

    /// Returns the length of the used part of a leg, in log blocks.
    pub(crate) fn leg_blocks(&self) -> u64 {
        FRONT + self.per_leg * u64::from(self.segment_blocks) + BACK
    }

    /// Returns the length of the used part of a leg, in bytes.
    pub(crate) fn leg_size(&self) -> Bytes {
        Bytes(self.leg_blocks() * LOG_BLOCK)
    }

    /// Returns the position of segment `segment` in the ring.
    pub(crate) fn position(&self, segment: u64) -> u64 {
        (segment + self.rotation) % self.count()
    }

    /// Returns true if leg `leg` holds segment `segment`.
    pub(crate) fn is_on(&self, leg: usize, segment: u64) -> bool {
        match self.layout {
            Layout::Mirror => true,
            Layout::Stripe => self.position(segment) % u64::from(self.legs) == leg as u64,
        }
    }

    /// Returns the log block of a leg for block `block` of segment `segment`.
    pub(crate) fn leg_block(&self, segment: u64, block: u32) -> u64 {
        let slot = match self.layout {
            Layout::Mirror => self.position(segment),
            Layout::Stripe => self.position(segment) / u64::from(self.legs),
        };
        FRONT + slot * u64::from(self.segment_blocks) + u64::from(block)
    }

    /// Returns the number of logical blocks in a log block.
    pub(crate) fn per_block(&self) -> u64 {
        LOG_BLOCK / self.logical_block
    }

    /// Returns the length of a range of logical blocks, in bytes.
    pub(crate) fn bytes(&self, range: LbaRange) -> u64 {
        range.nlb * self.logical_block
    }

    /// Returns the address of a block of the log, in logical blocks from the start of segment 0. It never
    /// repeats.
    pub(crate) fn address(&self, segment: u64, block: u32) -> u64 {
        (segment * u64::from(self.segment_blocks) + u64::from(block)) * self.per_block()
    }

    /// Returns the segment of an address, the block in it, and the byte offset in that block.
    pub(crate) fn locate(&self, address: u64) -> (u64, u32, u64) {
        let (block, rest) = (address / self.per_block(), address % self.per_block());
        let blocks = u64::from(self.segment_blocks);
        (block / blocks, (block % blocks) as u32, rest * self.logical_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_the_ring_has_a_place_of_its_own() {
        for layout in [Layout::Mirror, Layout::Stripe] {
            let geometry =
                Geometry { logical_block: 512, segment_blocks: 8, per_leg: 5, rotation: 3, layout, legs: 2 };
            let mut taken = std::collections::BTreeSet::new();
            for segment in 100..100 + geometry.count() {
                for block in 0..8 {
                    for leg in (0..2).filter(|leg| geometry.is_on(*leg, segment)) {
                        let at = geometry.leg_block(segment, block);
                        assert!((4..geometry.leg_blocks() - 2).contains(&at));
                        assert!(
                            taken.insert((leg, at)),
                            "{layout:?}: segment {segment}, block {block} twice"
                        );
                    }
                    let address = geometry.address(segment, block) + 3;
                    assert_eq!(geometry.locate(address), (segment, block, 3 * 512));
                }
            }
            assert_eq!(taken.len(), 2 * 5 * 8);
        }
    }
}

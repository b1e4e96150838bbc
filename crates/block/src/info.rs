//! Description of a device, as the device itself gives it.

use serde::{Deserialize, Serialize};

use crate::request::LbaRange;
use crate::units::{Bytes, Nanos};

/// State of the volatile cache: acknowledged writes may still sit in memory that a power cut empties. An
/// unknown is reported as such, not guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolatileCache {
    /// No cache, or one that is off: an acknowledged write is durable.
    None,
    /// Cache that is on: only a flush or FUA makes writes durable.
    Enabled,
    /// The device does not report it.
    Unknown,
}

/// The properties of a device. They may change while it is in use (size, write cache): `generation` then
/// grows, so a holder of a copy compares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// A name for people: a path, a model.
    pub name: String,
    /// Capacity. A whole number of logical blocks.
    pub size: Bytes,
    /// The unit of addressing: the smallest request.
    pub logical_block: Bytes,
    /// The unit in which the medium writes without reading first.
    pub physical_block: Bytes,
    /// Alignment of payloads: their memory addresses must be multiples of it.
    pub dma_alignment: Bytes,
    /// The largest single transfer that the device takes.
    pub transfer_max: Bytes,
    /// The largest discard, zero if the device has none.
    pub discard_max: Bytes,
    /// True if discarded blocks read back as zeroes, promised by the device (NVMe DLFEAT, SCSI LBPRZ).
    pub discard_zeroes: bool,
    /// How much is written all or nothing across a power cut: at least one logical block (NVMe AWUPF).
    pub atomic_unit: Bytes,
    /// The smallest write that is promised so: the kernel refuses `RWF_ATOMIC` below a block of the file
    /// system (statx(2), `stx_atomic_write_unit_min`).
    pub atomic_unit_min: Bytes,
    /// A write that crosses a multiple of this is not atomic; zero if there is no such boundary (NVMe
    /// NABSPF).
    pub atomic_boundary: Bytes,
    /// Where acknowledged writes are.
    pub volatile_cache: VolatileCache,
    /// True if the cache that the device reports as volatile survives a power cut. Simulated drives alone say
    /// so, by their model.
    #[serde(default)]
    pub is_cache_protected: bool,
    /// True if the device has a volatile cache that is switched off. Simulated drives alone say so.
    #[serde(default)]
    pub is_cache_switched_off: bool,
    /// True if the device refuses writes: an export of an NBD server.
    #[serde(default)]
    pub is_read_only: bool,
    /// True if the device drops what is written: a null device. Nothing can be durable there, whatever
    /// `volatile_cache` says.
    pub keeps_nothing: bool,
    /// True if the driver of the device answers flushes and sends none on, as a model of one may do.
    #[serde(default)]
    pub is_flush_dropped: bool,
    /// True if the device itself understands FUA; without it FUA is a write and a flush.
    pub fua_native: bool,
    /// The time of one revolution, only where the drive itself states that it rotates.
    pub revolution: Option<Nanos>,
    /// Grows whenever any of the above changed.
    pub generation: u64,
}

impl DeviceInfo {
    /// Says what the device reports of its write cache.
    pub const fn cache_words(&self) -> &'static str {
        match self.volatile_cache {
            VolatileCache::None if self.is_cache_switched_off => "its volatile cache is off",
            VolatileCache::None => "no volatile cache is on",
            VolatileCache::Enabled if self.is_cache_protected => "a protected cache is on",
            VolatileCache::Enabled => "a volatile cache is on",
            VolatileCache::Unknown => "a volatile cache is neither reported nor ruled out",
        }
    }

    /// Creates a plain device of `size` bytes in `logical_block`s: no cache, no FUA, no discard.
    pub fn plain(name: impl Into<String>, size: Bytes, logical_block: Bytes) -> Self {
        Self {
            name: name.into(),
            size: size.round_down(logical_block),
            logical_block,
            physical_block: logical_block,
            dma_alignment: logical_block,
            transfer_max: Bytes::mib(1),
            discard_max: Bytes(0),
            discard_zeroes: false,
            atomic_unit: logical_block,
            atomic_unit_min: logical_block,
            atomic_boundary: Bytes(0),
            volatile_cache: VolatileCache::None,
            is_cache_protected: false,
            is_cache_switched_off: false,
            is_read_only: false,
            keeps_nothing: false,
            is_flush_dropped: false,
            fua_native: false,
            revolution: None,
            generation: 0,
        }
    }

    /// Returns the capacity in logical blocks.
    pub fn blocks(&self) -> u64 {
        self.size.0 / self.logical_block.0
    }

    /// Returns the length of `range` in bytes.
    pub fn length_of(&self, range: LbaRange) -> Bytes {
        self.logical_block * range.nlb
    }

    /// Returns true if `range` is not empty and lies within the device.
    pub fn holds(&self, range: LbaRange) -> bool {
        range.nlb > 0 && range.lba.0.checked_add(range.nlb).is_some_and(|end| end <= self.blocks())
    }
}

/// State of a run of blocks on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtentState {
    /// Written: reads come from the medium.
    Written,
    /// Reserved but never written: reads are answered with zeroes without the medium.
    Unwritten,
    /// Nothing is there: reads are answered with zeroes without the medium.
    Hole,
    /// The device cannot say.
    Unknown,
}

/// Returns the share of the blocks of `extents` that were written before, 0 to 1; `None` if that is not known
/// of all.
pub fn written_share(extents: &[Extent]) -> Option<f64> {
    let mut all = 0;
    let mut written = 0;
    for extent in extents {
        all += extent.range.nlb;
        match extent.state {
            ExtentState::Unknown => return None,
            ExtentState::Written => written += extent.range.nlb,
            ExtentState::Unwritten | ExtentState::Hole => {}
        }
    }
    (all > 0).then(|| written as f64 / all as f64)
}

/// Returns the number of blocks that were written or reserved in `before` and are holes in `after`.
pub fn lost_blocks(before: &[Extent], after: &[Extent]) -> u64 {
    let is_kept = |extent: &&Extent| matches!(extent.state, ExtentState::Written | ExtentState::Unwritten);
    let mut kept = before.iter().filter(is_kept).map(|extent| extent.range).peekable();
    let mut lost = 0;
    for hole in after.iter().filter(|extent| extent.state == ExtentState::Hole).map(|extent| extent.range) {
        while let Some(range) = kept.peek() {
            let (first, end) = (range.lba.max(hole.lba), range.end().min(hole.end()));
            lost += end.0.saturating_sub(first.0);
            if range.end() > hole.end() {
                break;
            }
            kept.next();
        }
    }
    lost
}

/// A run of blocks in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Blocks of the extent.
    pub range: LbaRange,
    /// State of these blocks.
    pub state: ExtentState,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lba;

    proptest::proptest! {
        /// Compares with the number that one gets by looking at each block by itself.
        #[test]
        fn lost_blocks_are_those_that_each_block_tells(
            before in proptest::collection::vec((1_u64..5, 0_usize..4), 0..12),
            after in proptest::collection::vec((1_u64..5, 0_usize..4), 0..12),
        ) {
            const STATES: [ExtentState; 4] =
                [ExtentState::Written, ExtentState::Unwritten, ExtentState::Hole, ExtentState::Unknown];
            let [before, after] = [before, after].map(|runs| {
                let mut next = 0;
                let extent = |(nlb, state): (u64, usize)| {
                    next += nlb;
                    Extent { range: LbaRange::new(Lba(next - nlb), nlb), state: STATES[state] }
                };
                runs.into_iter().map(extent).collect::<Vec<_>>()
            });
            let state = |extents: &[Extent], lba: u64| {
                let has = |extent: &&Extent| (extent.range.lba.0..extent.range.end().0).contains(&lba);
                extents.iter().find(has).map(|extent| extent.state)
            };
            let is_lost = |lba: &u64| {
                matches!(state(&before, *lba), Some(ExtentState::Written | ExtentState::Unwritten))
                    && state(&after, *lba) == Some(ExtentState::Hole)
            };
            proptest::prop_assert_eq!(lost_blocks(&before, &after), (0..64).filter(is_lost).count() as u64);
        }
    }
}

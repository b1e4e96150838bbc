//! Description of a device, as the device itself gives it.

use serde::{Deserialize, Serialize};

use crate::request::LbaRange;
use crate::units::{Bytes, Nanos};

/// State of the volatile cache, which holds acknowledged writes that a power cut loses. An unknown state is
/// reported as such, not guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolatileCache {
    /// Absent or disabled: an acknowledged write is durable.
    None,
    /// Enabled: only a flush or FUA makes writes durable.
    Enabled,
    /// The device does not report it.
    Unknown,
}

/// Properties of a device. Some (size, write cache) may change while it is in use: `generation` then grows,
/// so that the holder of a copy can tell that it is outdated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Name for display: a path, a model.
    pub name: String,
    /// Capacity, a whole number of logical blocks.
    pub size: Bytes,
    /// Unit of addressing: the smallest request.
    pub logical_block: Bytes,
    /// Unit that the medium writes without a read-modify-write.
    pub physical_block: Bytes,
    /// Required alignment of payloads in memory.
    pub dma_alignment: Bytes,
    /// Largest single transfer that the device accepts.
    pub transfer_max: Bytes,
    /// Largest discard, zero if the device supports none.
    pub discard_max: Bytes,
    /// True if the device guarantees that discarded blocks read back as zeroes (NVMe DLFEAT, SCSI LBPRZ).
    pub discard_zeroes: bool,
    /// Size up to which a write is atomic across a power cut: at least one logical block (NVMe AWUPF).
    pub atomic_unit: Bytes,
    /// Size from which on a write is atomic across a power cut: the kernel refuses `RWF_ATOMIC` below a block
    /// of the file system (statx(2), `stx_atomic_write_unit_min`).
    pub atomic_unit_min: Bytes,
    /// Boundary of atomic writes: a write that crosses a multiple of it is not atomic. Zero if there is none
    /// (NVMe NABSPF).
    pub atomic_boundary: Bytes,
    /// State of the volatile write cache.
    pub volatile_cache: VolatileCache,
    /// True if the cache that the device reports as volatile survives a power cut. Only simulated drives set
    /// this, from their model.
    #[serde(default)]
    pub is_cache_protected: bool,
    /// True if the device has a volatile cache that is disabled. Only simulated drives set this.
    #[serde(default)]
    pub is_cache_switched_off: bool,
    /// True if the device refuses writes, as a read-only export of an NBD server does.
    #[serde(default)]
    pub is_read_only: bool,
    /// True if the device discards everything written to it: a null device. Nothing can be durable there,
    /// whatever `volatile_cache` says.
    pub keeps_nothing: bool,
    /// True if the device's driver completes flushes without passing them on, as the model of a faulty driver
    /// may.
    #[serde(default)]
    pub is_flush_dropped: bool,
    /// True if the device implements FUA; otherwise FUA is a write followed by a flush.
    pub fua_native: bool,
    /// Time of one revolution; only set if the drive itself reports that it rotates.
    pub revolution: Option<Nanos>,
    /// Number that grows whenever any of the other fields changes.
    pub generation: u64,
}

impl DeviceInfo {
    /// Describes what the device reports about its write cache.
    pub const fn cache_words(&self) -> &'static str {
        match self.volatile_cache {
            VolatileCache::None if self.is_cache_switched_off => "its volatile cache is off",
            VolatileCache::None => "no volatile cache is on",
            VolatileCache::Enabled if self.is_cache_protected => "a protected cache is on",
            VolatileCache::Enabled => "a volatile cache is on",
            VolatileCache::Unknown => "a volatile cache is neither reported nor ruled out",
        }
    }

    /// Creates a plain device of `size` bytes with blocks of `logical_block` bytes: no cache, no FUA, no
    /// discard.
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
    /// Written: reads access the medium.
    Written,
    /// Reserved but never written: reads return zeroes without accessing the medium.
    Unwritten,
    /// Not allocated: reads return zeroes without accessing the medium.
    Hole,
    /// Not reported by the device.
    Unknown,
}

/// Returns the share (0 to 1) of the blocks of `extents` that were ever written; `None` without blocks, or if
/// the state of some is unknown.
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
        /// Compares with the number obtained from each block separately.
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

//! Conditions and order for emptying a cache.

use super::parameters::{DestageOrder, MediaCacheParameters, WriteCacheParameters};
use crate::command::SECTOR;
use crate::model::Size;

/// Capacity of a cache and thresholds for emptying it, in sectors and nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Room {
    sectors: u64,
    segments: usize,
    /// Maximum length of a run that is merged with an adjacent one.
    pub(super) coalesce: u64,
    above: u64,
    resume: u64,
    segments_resume: usize,
    pub(super) delay: u64,
    pub(super) order: DestageOrder,
}

const fn percent_of(whole: u64, percent: u32) -> u64 {
    (whole as u128 * percent as u128 / 100) as u64
}

impl Room {
    pub(super) fn of_write_cache(cache: &WriteCacheParameters) -> Self {
        let room =
            Self::new(cache.size, cache.segments, cache.destage_above_percent, cache.resume_below_percent);
        Self {
            coalesce: cache.coalesce.0.0 / SECTOR.0,
            delay: cache.destage_delay.0.0,
            order: cache.destage_order,
            ..room
        }
    }

    pub(super) fn of_media_cache(cache: &MediaCacheParameters, coalesce: u64) -> Self {
        let room =
            Self::new(cache.size, cache.segments, cache.destage_above_percent, cache.resume_below_percent);
        Self { coalesce, delay: cache.destage_delay.0.0, ..room }
    }

    fn new(size: Size, segments: u32, above_percent: u32, resume_percent: u32) -> Self {
        let sectors = size.0.0 / SECTOR.0;
        Self {
            sectors,
            segments: segments as usize,
            coalesce: 0,
            above: percent_of(sectors, above_percent),
            resume: percent_of(sectors, resume_percent),
            segments_resume: percent_of(u64::from(segments), resume_percent) as usize,
            delay: 0,
            order: DestageOrder::Elevator,
        }
    }

    /// Returns true if `count` more sectors fit besides `sectors` in `runs`.
    pub(super) const fn takes(&self, count: u64, sectors: u64, runs: usize) -> bool {
        sectors + count <= self.sectors && runs < self.segments
    }

    /// Returns true if a cache with `sectors` in `runs` is empty enough to accept data again after it was
    /// full.
    pub(super) const fn resumes(&self, sectors: u64, runs: usize) -> bool {
        sectors <= self.resume && runs <= self.segments_resume
    }

    /// Returns true if a cache with `sectors` is full enough to be emptied without delay.
    pub(super) const fn presses(&self, sectors: u64) -> bool {
        sectors > self.above
    }

    /// Returns true if a write of `count` sectors is too long and must be written through.
    pub(super) const fn too_long(&self, count: u64) -> bool {
        count > self.sectors / 2
    }

    /// Returns true if `sectors` in `runs` fit at all.
    pub(super) const fn can_hold(&self, sectors: u64, runs: usize) -> bool {
        sectors <= self.sectors && runs <= self.segments
    }
}

/// Position of the sweep over the addresses, for [`DestageOrder::Elevator`].
#[derive(Debug, Clone, Default)]
pub(super) struct Sweep {
    pub(super) position: Option<u64>,
}

impl Sweep {
    /// Creates the sweep of `order`: from the start for an elevator, without a position for the order of age.
    pub(super) fn new(order: DestageOrder) -> Self {
        Self { position: (order == DestageOrder::Elevator).then_some(0) }
    }

    pub(super) fn passed(&mut self, sector: u64) {
        if let Some(position) = &mut self.position {
            *position = sector;
        }
    }
}

//! Moment at which a write is answered, and the room for it, by the state of the cache, its protection, and
//! the media cache.

use super::destage::Room;
use super::parameters::MediaCacheUse;
use super::slots::Slot;
use super::timing::Controller;
use crate::command::{Command, Sectors};
use crate::timing::mechanics::Mechanics;

/// Protection that keeps a write cache through a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protection {
    /// None: the cache is volatile.
    #[default]
    None,
    /// A charged battery or capacitors: flush and FUA are answered immediately, and correctly.
    Healthy,
    /// A dead battery known to the drive, which writes through until it is repaired.
    DeadNoticed,
    /// A dead battery unknown to the drive: flush and FUA are answered immediately, but nothing is protected.
    DeadUnnoticed,
}

/// Treatment of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Answered immediately; lost at a cut until destaged.
    AtRisk,
    /// Answered immediately; survives a cut.
    Kept,
    /// Answered once it is on the medium.
    Through,
}

impl<M: Mechanics> Controller<M> {
    pub(super) fn cache_is_on(&self) -> bool {
        self.wce && self.write_room.is_some() && self.protection != Protection::DeadNoticed
    }

    /// Returns the room for writes in the present state.
    pub(super) fn room(&self) -> Option<&Room> {
        let media = self.media_room.as_ref().map(|(_, room)| room);
        if self.cache_is_on() { self.write_room.as_ref() } else { media }
    }

    pub(super) fn treatment(&self, fua: bool, count: u64) -> Treatment {
        let Some(room) = self.room() else { return Treatment::Through };
        let always = self.media_room.as_ref().is_some_and(|(used, _)| *used == MediaCacheUse::Always);
        match self.protection {
            _ if room.too_long(count) => Treatment::Through,
            _ if !self.cache_is_on() => Treatment::Kept,
            Protection::Healthy => Treatment::Kept,
            Protection::DeadUnnoticed => Treatment::AtRisk,
            _ if !fua => Treatment::AtRisk,
            _ if always => Treatment::Kept,
            _ => Treatment::Through,
        }
    }

    pub(super) fn treatment_of(&self, slot: Slot) -> Treatment {
        let Command { op, sectors, .. } = self.slots.get(slot);
        self.treatment(op.is_fua(), sectors.count)
    }

    pub(super) fn fits(&self, sectors: Sectors) -> bool {
        self.room().is_some_and(|room| room.takes(sectors.count, self.cache.sectors, self.cache.runs()))
    }
}

//! When a write is answered, and what room there is for it: by the cache, what protects it, and the media
//! cache.

use plumb_block::Op;

use super::destage::Room;
use super::parameters::MediaCacheUse;
use super::slots::Slot;
use super::timing::Controller;
use crate::command::{Command, Sectors};
use crate::timing::mechanics::Mechanics;

/// Protection that keeps a write cache through a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protection {
    /// Nothing: it is volatile.
    #[default]
    None,
    /// A battery or capacitors, charged: flush and FUA are answered at once, and rightly.
    Healthy,
    /// A dead battery that the drive knows of: it writes through until that is mended.
    DeadNoticed,
    /// A dead battery that the drive does not know of: flush and FUA are answered at once, and nothing keeps
    /// it.
    DeadUnnoticed,
}

/// How a write is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Answered at once; lost at a cut until it is destaged.
    AtRisk,
    /// Answered at once; outlives a cut.
    Kept,
    /// Answered when it is on the medium.
    Through,
}

impl<M: Mechanics> Controller<M> {
    pub(super) fn cache_is_on(&self) -> bool {
        self.wce && self.write_room.is_some() && self.protection != Protection::DeadNoticed
    }

    /// Returns the room for writes as things are.
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
        let fua = matches!(op, Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. });
        self.treatment(fua, sectors.count)
    }

    pub(super) fn fits(&self, sectors: Sectors) -> bool {
        self.room().is_some_and(|room| room.takes(sectors.count, self.cache.sectors, self.cache.runs()))
    }
}

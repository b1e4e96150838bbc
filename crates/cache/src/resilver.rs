//! Replacement of a leg: the new device receives all new records, and a copy of the existing contents of the
//! log.
//!
//! ```text
//!   epoch and session durable: the leg is written, not read ──► copy the segments ──► flush of the leg ──► epoch durable: it counts
//! ```
//!
//! The device may have been a leg of this cache before, with records that others have given up since. Copying
//! starts a new session: recovery then accepts no record of an earlier session that was not copied.

use plumb_block::{DeviceInfo, Lba, LbaRange};

use crate::action::{Purpose, Wait};
use crate::base::{Base, Condition};
use crate::continuation::{Part, Source};
use crate::devices::block_fits;
use crate::format::superblock::LegState;
use crate::gather::{Gather, Gathers, Goal};
use crate::seal::SEALED;
use crate::settings::{LOG_BLOCK, Layout};

/// Refusal of concurrent changes.
pub(crate) const BUSY: &str = "the cache does not serve, is already copying to a device, or its log is \
                               being enlarged: wait until that is done";
/// Maximum number of concurrent copies.
const COPIES_MAX: usize = 2;

/// State of the copying to a leg.
#[derive(Debug)]
pub(crate) struct Resilver {
    leg: usize,
    /// Next piece: segment and block.
    next: (u64, u32),
    /// First segment that is written directly to the leg.
    end: u64,
    pub(crate) in_flight: usize,
    is_flushing: bool,
}

impl Resilver {
    /// Starts to copy to a replacement leg; no other may be copied to: see
    /// [`Cache::replace_leg`](crate::Cache::replace_leg).
    pub(crate) fn replace_leg(base: &mut Base, leg: usize, info: DeviceInfo) -> Result<Self, String> {
        if base.condition != Condition::Serving || base.log.grows_to.is_some() {
            return Err(BUSY.to_owned());
        }
        may_replace(base, &info)?;
        if base.superblocks.durable.legs.get(leg) != Some(&LegState::Lost) {
            return Err(format!("device {leg} of the log still counts: take it out first"));
        }
        base.devices.set_leg(leg, Some(info));
        base.set_leg(leg, LegState::Resilvering);
        // Written-back data is not copied.
        base.log.end_reads_before(base.log.tail);
        base.begin_session();
        Ok(Self::begin(base, leg))
    }

    /// Copies all earlier records to a leg that receives the new ones directly.
    pub(crate) fn begin(base: &mut Base, leg: usize) -> Self {
        let is_flushing = !base.options.waits.hold(Wait::LegCopied);
        if is_flushing {
            base.set_leg(leg, LegState::Live);
        }
        Self { leg, next: (0, 0), end: base.log.next_segment, in_flight: 0, is_flushing }
    }

    /// Starts possible copies. Returns true once everything is copied.
    pub(crate) fn advance(&mut self, base: &mut Base, gathers: &mut Gathers) -> bool {
        if base.condition == Condition::Opening {
            return false;
        }
        let (leg, is_idle) = (self.leg, self.in_flight == 0);
        let is_copied_to = base.superblock.legs[leg] == LegState::Resilvering;
        if self.is_flushing {
            if is_idle && is_copied_to {
                // Everything is durable on the leg, so it counts from the next epoch on.
                base.set_leg(leg, LegState::Live);
            }
            return is_idle;
        }
        if base.condition != Condition::Serving || !is_copied_to {
            // The leg is copied to again when the cache is opened, or was lost again.
            return is_idle;
        }
        // The leg must have an intact superblock first, which remains if a power cut tears the one that makes
        // the leg count.
        if base.superblocks.durable.legs[leg] == LegState::Resilvering {
            while self.copy_next(base, gathers) {}
            self.flush(base);
        }
        false
    }

    /// Starts to copy the next blocks of a segment if possible; returns true if it did. Segments with records
    /// in flight must wait. Blocks that no leg has are skipped, and stay unreadable.
    fn copy_next(&mut self, base: &mut Base, gathers: &mut Gathers) -> bool {
        if !base.has_memory_for_run() || self.in_flight >= COPIES_MAX {
            return false;
        }
        let most = (base.devices.leg_transfer_max() / LOG_BLOCK) as u32;
        let (tail, closed, geometry) = (base.log.tail, base.log.closed_end(), base.log.geometry);
        loop {
            let (segment, block) = self.next.max((tail, 0));
            if segment >= closed.min(self.end) {
                return false;
            }
            let length = base.log.segments.get(&segment).map_or(0, |segment| segment.checksums.len() as u32);
            let blocks = (length - block).min(most);
            if blocks == 0 {
                self.next = (segment + 1, 0);
                continue;
            }
            self.next = (segment, block + blocks);
            self.in_flight += 1;
            let range = LbaRange::new(Lba(0), u64::from(blocks) * geometry.per_block());
            let source = Source::Log(geometry.address(segment, block));
            let parts = [Part { range, offset: 0, source, is_kept: false }].into();
            gathers.begin(base, Gather::new(Goal::Copy(self.leg), None, parts));
            return true;
        }
    }

    /// Flushes the leg once everything was copied to it.
    fn flush(&mut self, base: &mut Base) {
        if self.next.0.max(base.log.tail) >= self.end && self.in_flight == 0 {
            self.is_flushing = true;
            self.in_flight += 1;
            base.flush(Some(self.leg), Purpose::ResilverFlush);
        }
    }
}

/// Removes a leg if it counts: see [`Cache::retire_leg`](crate::Cache::retire_leg).
pub(crate) fn retire_leg(base: &mut Base, leg: usize) -> Result<(), String> {
    let states = &base.superblock.legs;
    if base.seal.is_some() {
        return Err(SEALED.to_owned());
    }
    if base.log.geometry.layout == Layout::Stripe || leg >= states.len() {
        return Err(
            "only a device of a mirrored log can be replaced, and each device of this log holds data that \
             no other has: to change them, detach the cache and create it again"
                .to_owned(),
        );
    }
    if base.log.grows_to.is_some() {
        return Err(
            "its log is being enlarged, and the new device may be too small for it: wait until that is done"
                .to_owned(),
        );
    }
    if !base.superblock.live().any(|other| other != leg) {
        return Err(format!(
            "device {leg} of the log is the last that has everything: wait until another is live (`plumb \
             cache status`), or detach the cache and create it again"
        ));
    }
    if states[leg] != LegState::Lost {
        base.set_leg(leg, LegState::Lost);
    }
    Ok(())
}

/// Checks that a device can be a leg: see [`Cache::may_replace`](crate::Cache::may_replace).
pub(crate) fn may_replace(base: &Base, info: &DeviceInfo) -> Result<(), String> {
    block_fits(info)?;
    let (name, found, size) = (&info.name, info.size.0, base.superblock.geometry.leg_size().0);
    if found >= size { Ok(()) } else { Err(format!("{name} has {found} bytes, but the log needs {size}")) }
}

//! A leg that replaces another: it gets every record from then on, and is copied what the log holds already.
//!
//! ```text
//!   epoch and session durable: the leg is written, not read ──► copy the segments ──► flush of the leg ──► epoch durable: it counts
//! ```
//!
//! The device may have been a leg of this cache before, and hold records that others have given up since. A
//! session begins with the copying: recovery takes no record of an earlier one that is not in what was
//! copied.

use plumb_block::{DeviceInfo, Errno, Lba, LbaRange, Outcome};

use crate::action::{Purpose, Wait};
use crate::core::{Condition, Core, LegFailure};
use crate::devices::block_fits;
use crate::format::superblock::LegState;
use crate::gather::{Gather, Goal, Part, Source};
use crate::recovery::LegFindings;
use crate::settings::{LOG_BLOCK, Layout};

/// Refusal of a change of a log that is not written any more.
pub(crate) const SEALED: &str = "its log is not written any more (`plumb cache status` says why): give the cache another with `plumb cache replace-log`";
/// How many pieces of the log are copied at the same time.
const COPIES_MAX: usize = 2;

/// The copying to a leg.
#[derive(Debug)]
pub(crate) struct Resilver {
    leg: usize,
    /// The next piece: a segment and a block of it.
    next: (u64, u32),
    /// From this segment on the leg gets all as it is written.
    end: u64,
    pub(crate) in_flight: usize,
    is_flushing: bool,
}

impl Core {
    /// Takes a leg out, if it counts: see [`Cache::retire_leg`](crate::Cache::retire_leg).
    pub(crate) fn retire_leg(&mut self, leg: usize) -> Result<(), String> {
        let states = &self.superblock.legs;
        if self.seal.is_some() {
            return Err(SEALED.to_owned());
        }
        if self.log.geometry.layout == Layout::Stripe || leg >= states.len() {
            return Err(
                "only a device of a mirrored log can be replaced, and each device of this one has what no other has: to change them detach the \
                 cache and create it anew"
                    .to_owned(),
            );
        }
        if self.log.grows_to.is_some() {
            return Err(
                "its log grows, which the other device may be too small for: wait for that".to_owned()
            );
        }
        if !self.superblock.live().any(|other| other != leg) {
            return Err(format!(
                "device {leg} of the log is the last that has everything: wait until another is live (`plumb cache status`), or detach \
                 the cache and create it anew"
            ));
        }
        if states[leg] != LegState::Lost {
            self.set_leg(leg, LegState::Lost);
        }
        Ok(())
    }

    /// Checks that a device can be a leg: see [`Cache::may_replace`](crate::Cache::may_replace).
    pub(crate) fn may_replace(&self, info: &DeviceInfo) -> Result<(), String> {
        block_fits(info)?;
        let (name, found, size) = (&info.name, info.size.0, self.superblock.geometry.leg_size().0);
        if found >= size {
            Ok(())
        } else {
            Err(format!("{name} has {found} bytes, and the log takes {size} of them"))
        }
    }

    /// Begins to copy to a device that takes the place of a leg: see
    /// [`Cache::replace_leg`](crate::Cache::replace_leg).
    pub(crate) fn replace_leg(&mut self, leg: usize, info: DeviceInfo) -> Result<(), String> {
        let is_growing = self.log.grows_to.is_some();
        if self.condition != Condition::Serving || self.resilver.is_some() || is_growing {
            return Err(
                "the cache does not serve, copies to a device already, or its log grows: wait for that"
                    .to_owned(),
            );
        }
        self.may_replace(&info)?;
        if self.superblocks.durable.legs.get(leg) != Some(&LegState::Lost) {
            return Err(format!("device {leg} of the log still counts: take it out first"));
        }
        self.devices.set_leg(leg, Some(info));
        // Findings on the device that was there before say nothing of this one.
        if let Some(found) = self.findings.legs.get_mut(leg) {
            *found = LegFindings::default();
        }
        self.set_leg(leg, LegState::Resilvering);
        self.begin_session();
        self.begin_resilver(leg);
        Ok(())
    }

    /// Copies all that was written until now to a leg that gets what is written from now on.
    pub(crate) fn begin_resilver(&mut self, leg: usize) {
        let is_flushing = !self.options.waits.hold(Wait::LegCopied);
        let end = self.log.next_segment;
        self.resilver = Some(Resilver { leg, next: (0, 0), end, in_flight: 0, is_flushing });
        if is_flushing {
            self.set_leg(leg, LegState::Live);
        }
    }

    pub(crate) fn go_on_with_resilver(&mut self) {
        let Some(Resilver { leg, is_flushing, .. }) = self.resilver else { return };
        if self.condition == Condition::Opening {
            return;
        }
        if is_flushing {
            return self.end_resilver();
        }
        if self.condition != Condition::Serving || self.superblock.legs[leg] != LegState::Resilvering {
            // The leg is copied to again when the cache is opened, or it was lost once more.
            self.resilver.take_if(|resilver| resilver.in_flight == 0);
            return;
        }
        // The leg has a whole superblock by then: a cut while one is written that has it count leaves it that
        // one.
        if self.superblocks.durable.legs[leg] == LegState::Resilvering {
            while self.copy_next() {}
            self.flush_resilvered();
        }
    }

    /// Begins to copy the next blocks of a segment, if it may; whether it did. Those of a segment whose
    /// records are on their way have to wait. What no leg has is left out: it is as unreadable there as it is
    /// elsewhere.
    fn copy_next(&mut self) -> bool {
        let most = (self.devices.leg_transfer_max() / LOG_BLOCK) as u32;
        let (tail, closed, geometry) = (self.log.tail, self.log.closed_end(), self.log.geometry);
        let has_memory = self.has_memory_for_run();
        let Some(resilver) = self.resilver.as_mut().filter(|it| has_memory && it.in_flight < COPIES_MAX)
        else {
            return false;
        };
        loop {
            let (segment, block) = resilver.next.max((tail, 0));
            if segment >= closed.min(resilver.end) {
                return false;
            }
            let length = self.log.segments.get(&segment).map_or(0, |segment| segment.checksums.len() as u32);
            let blocks = (length - block).min(most);
            if blocks == 0 {
                resilver.next = (segment + 1, 0);
                continue;
            }
            resilver.next = (segment, block + blocks);
            resilver.in_flight += 1;
            let goal = Goal::Copy(resilver.leg);
            let range = LbaRange::new(Lba(0), u64::from(blocks) * geometry.per_block());
            let source = Source::Log(geometry.address(segment, block));
            self.gather(Gather::new(goal, None, [Part { range, offset: 0, source }].into()));
            return true;
        }
    }

    /// A piece was copied, as far as it can be read. Without an answer from the leg that has it nobody knows
    /// what it holds.
    pub(crate) fn copied(&mut self, leg: usize, error: Option<Errno>) {
        if let Some(resilver) = &mut self.resilver {
            resilver.in_flight -= 1;
        }
        self.io.step();
        if let Some(errno) = error {
            self.lose_leg(leg, LegFailure::CopyRead, Outcome::Failed(errno));
        }
    }

    /// Flushes the leg, if everything has been copied to it.
    fn flush_resilvered(&mut self) {
        let Some(resilver) = &mut self.resilver else { return };
        let is_all = resilver.next.0.max(self.log.tail) >= resilver.end && resilver.in_flight == 0;
        if is_all {
            resilver.is_flushing = true;
            let leg = Some(resilver.leg);
            self.flush(leg, Purpose::ResilverFlush);
        }
    }

    /// Everything is durable on the leg, unless it failed the flush: from the next epoch on it counts.
    fn end_resilver(&mut self) {
        if let Some(Resilver { leg, .. }) = self.resilver.take_if(|resilver| resilver.in_flight == 0)
            && self.superblock.legs[leg] == LegState::Resilvering
        {
            self.set_leg(leg, LegState::Live);
        }
    }
}

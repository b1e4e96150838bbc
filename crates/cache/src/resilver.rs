//! A leg that replaces another: it gets every record from then on, and is copied what the log holds already.
//!
//! ```text
//!   epoch and session durable: the leg is written, not read ──► copy the segments ──► flush of the leg ──► epoch durable: it counts
//! ```
//!
//! The device may have been a leg of this cache before, and hold records that others have given up since. A session begins with
//! the copying: recovery takes no record of an earlier one that is not in what was copied.

use plumb_block::{Buffer, Bytes, DeviceInfo, Lba, LbaRange, Nanos, Outcome};

use crate::action::{Member, Purpose, Wait};
use crate::cache::{InitialWrite, block_fits};
use crate::core::{Condition, Core, Then};
use crate::format::superblock::{LegState, Superblock};
use crate::gather::{Gather, Goal, Part, Source};
use crate::settings::{LOG_BLOCK, Layout};

/// How many pieces of the log are copied at the same time.
const COPIES_MAX: u32 = 2;

/// The copying to a leg.
#[derive(Debug)]
pub(crate) struct Resilver {
    leg: usize,
    /// The next piece: a segment and a block of it.
    next: (u64, u32),
    /// From this segment on the leg gets all as it is written.
    end: u64,
    /// What could not be copied when its turn was: blocks that cannot be read together with others.
    left: Vec<Piece>,
    in_flight: u32,
    is_flushing: bool,
}

/// Blocks of a segment that are copied together. The segment is pinned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    segment: u64,
    block: u32,
    blocks: u32,
}

/// A device that is to take the place of a leg.
#[derive(Debug, Clone)]
pub struct Replacement {
    leg: usize,
    info: DeviceInfo,
    /// What has to be written to it, and flushed, before it takes that place: nothing is left of a cache that it was a part of.
    pub writes: Vec<InitialWrite>,
}

impl Core {
    /// Takes a leg out, if it counts: see [`Cache::retire_leg`](crate::Cache::retire_leg).
    pub(crate) fn retire_leg(&mut self, leg: usize, now: Nanos) -> Result<(), String> {
        self.io.now = now;
        let states = &self.superblock.legs;
        if self.log.geometry.layout == Layout::Stripe || leg >= states.len() {
            let (layout, count) = (self.log.geometry.layout, states.len());
            return Err(format!(
                "a leg of a mirror can be replaced; leg {leg} is none, the log is a {layout:?} of {count}"
            ));
        }
        if self.log.grows_to.is_some() {
            return Err(
                "its log grows, which the other device may be too small for: wait for that".to_owned()
            );
        }
        if !self.superblock.live().any(|other| other != leg) {
            return Err(format!(
                "leg {leg} is the last that has everything: nothing could be copied from another"
            ));
        }
        if states[leg] != LegState::Lost {
            self.set_leg(leg, LegState::Lost);
        }
        self.pump();
        Ok(())
    }

    /// What makes a device the next leg of this number: see [`Cache::replacement`](crate::Cache::replacement).
    pub(crate) fn replacement(&self, leg: usize, info: DeviceInfo) -> Result<Replacement, String> {
        block_fits(&info)?;
        self.has_room(&info)?;
        let scale = LOG_BLOCK / info.logical_block.0;
        let slots = [0, 1].map(|slot| Superblock::slots(slot, &self.superblock.geometry));
        let blank = |slot: u64| InitialWrite {
            member: Member::Leg(leg),
            range: LbaRange::new(Lba(slot * scale), scale),
            bytes: vec![0; LOG_BLOCK as usize],
        };
        Ok(Replacement { leg, info, writes: slots.into_iter().flatten().map(blank).collect() })
    }

    fn has_room(&self, info: &DeviceInfo) -> Result<(), String> {
        let (name, found, size) = (&info.name, info.size, self.superblock.leg_size());
        if found >= size {
            Ok(())
        } else {
            Err(format!("{name} has {found}, and the log takes {size} of it"))
        }
    }

    /// Begins to copy to a device that takes the place of a leg: see [`Cache::replace_leg`](crate::Cache::replace_leg).
    pub(crate) fn replace_leg(&mut self, by: Replacement, now: Nanos) -> Result<(), String> {
        self.io.now = now;
        let Replacement { leg, info, .. } = by;
        let is_growing = self.log.grows_to.is_some();
        if self.condition != Condition::Serving || self.resilver.is_some() || is_growing {
            return Err("the cache does not serve, copies to a leg already, or its log grows: wait for that"
                .to_owned());
        }
        self.has_room(&info)?;
        if self.superblocks.legs_durable().get(leg) != Some(&LegState::Lost) {
            return Err(format!("leg {leg} still counts: take it out first"));
        }
        self.io.legs[leg] = Some(info);
        self.set_leg(leg, LegState::Resilvering);
        self.superblock.session += 1;
        self.superblock.first = self.log.next_sequence;
        self.log.close();
        self.begin_resilver(leg);
        self.pump();
        Ok(())
    }

    /// Copies all that was written until now to a leg that gets what is written from now on.
    pub(crate) fn begin_resilver(&mut self, leg: usize) {
        let is_flushing = !self.io.options.waits.hold(Wait::LegCopied);
        let (end, left) = (self.log.next_segment, Vec::new());
        self.resilver = Some(Resilver { leg, next: (0, 0), end, left, in_flight: 0, is_flushing });
        if is_flushing {
            self.set_leg(leg, LegState::Live);
        }
    }

    pub(crate) fn go_on_with_resilver(&mut self) {
        loop {
            if self.condition == Condition::Opening {
                return;
            }
            let is_going_on = self.condition == Condition::Serving;
            let Some(resilver) = &mut self.resilver else { return };
            if !is_going_on || self.superblock.legs[resilver.leg] != LegState::Resilvering {
                // It is copied to again when the cache is opened, or was lost once more.
                let over = self.resilver.take_if(|resilver| resilver.in_flight == 0);
                over.into_iter().flat_map(|over| over.left).for_each(|piece| self.log.unpin(piece.segment));
                return;
            }
            // The leg has a whole superblock by then: a cut while one is written that has it count leaves it that one.
            let is_begun = self.superblocks.legs_durable()[resilver.leg] == LegState::Resilvering;
            let is_busy = resilver.is_flushing || resilver.in_flight == COPIES_MAX;
            if !is_begun || is_busy || !self.has_memory_for_run() {
                return;
            }
            match self.next_piece() {
                Some(piece) if !self.copy(piece) => return,
                Some(_) => {}
                None => return self.flush_resilvered(),
            }
        }
    }

    /// The next blocks to be copied. Those of a segment whose records are on their way have to wait.
    fn next_piece(&mut self) -> Option<Piece> {
        let most = (self.io.leg_transfer_max() / LOG_BLOCK) as u32;
        let (tail, closed) = (self.log.tail, self.log.closed_end());
        let resilver = self.resilver.as_mut()?;
        if let Some(piece) = resilver.left.pop() {
            return Some(piece);
        }
        loop {
            let (segment, block) = resilver.next.max((tail, 0));
            if segment >= closed.min(resilver.end) {
                return None;
            }
            let length = self.log.segments.get(&segment).map_or(0, |segment| segment.checksums.len() as u32);
            let blocks = (length - block).min(most);
            resilver.next = if blocks > 0 { (segment, block + blocks) } else { (segment + 1, 0) };
            if blocks > 0 {
                self.log.pin(segment);
                return Some(Piece { segment, block, blocks });
            }
        }
    }

    /// Begins to copy; whether there was memory for it.
    fn copy(&mut self, piece: Piece) -> bool {
        let (geometry, blocks) = (self.log.geometry, u64::from(piece.blocks));
        let Some(resilver) = &mut self.resilver else { return false };
        let target = self.io.options.memory.take(Bytes(blocks * LOG_BLOCK));
        if target.is_none() {
            resilver.left.push(piece);
            return false;
        }
        resilver.in_flight += 1;
        let range = LbaRange::new(Lba(0), blocks * geometry.per_block());
        let source = Source::Log(geometry.address(piece.segment, piece.block));
        self.gather(Gather::new(Goal::Copy(piece), target, [Part { range, offset: 0, source }].into()));
        true
    }

    /// Writes what was read to the leg; without bytes the blocks are read one by one, and what no leg has is left out: it is as
    /// unreadable there as it is elsewhere.
    pub(crate) fn write_copy(&mut self, piece: Piece, bytes: Option<Buffer>) {
        let Piece { segment, block, blocks } = piece;
        let Some(resilver) = &mut self.resilver else { return self.log.unpin(segment) };
        let leg = resilver.leg;
        match bytes {
            Some(bytes) if self.superblock.legs[leg] != LegState::Lost => {
                self.figures.resilvered += Bytes(bytes.len() as u64);
                let (at, then) =
                    (self.log.geometry.leg_block(segment, block), Then::Resilver { leg, segment });
                return self.io.write_leg((leg, Purpose::Resilver), at, bytes, then);
            }
            None if blocks > 1 => {
                for block in block..block + blocks {
                    resilver.left.push(Piece { segment, block, blocks: 1 });
                    self.log.pin(segment);
                }
            }
            _ => {}
        }
        resilver.in_flight -= 1;
        self.io.steps += 1;
        self.log.unpin(segment);
    }

    pub(crate) fn copy_completed(&mut self, leg: usize, segment: u64, outcome: Outcome) {
        self.log.unpin(segment);
        if let Some(resilver) = &mut self.resilver {
            resilver.in_flight -= 1;
        }
        if !outcome.is_done() {
            self.lose_leg(leg, "could not be copied to", outcome);
        }
    }

    /// Flushes the leg, if everything has been copied to it.
    fn flush_resilvered(&mut self) {
        let Some(resilver) = &mut self.resilver else { return };
        let is_all = resilver.next.0.max(self.log.tail) >= resilver.end && resilver.in_flight == 0;
        if is_all {
            resilver.is_flushing = true;
            resilver.in_flight = 1;
            let leg = resilver.leg;
            self.figures.leg_flushes += 1;
            self.io.flush((Member::Leg(leg), Purpose::ResilverFlush), Then::ResilverFlush { leg });
        }
    }

    /// Everything is durable on the leg: from the next epoch on it counts.
    pub(crate) fn resilver_flushed(&mut self, leg: usize, outcome: Outcome) {
        self.resilver = None;
        if !outcome.is_done() {
            self.lose_leg(leg, "failed a flush", outcome);
        } else if self.superblock.legs[leg] == LegState::Resilvering {
            self.set_leg(leg, LegState::Live);
        }
    }
}

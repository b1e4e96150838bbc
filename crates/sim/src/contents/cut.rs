//! The power cut: draws the survivors, applies them to the medium in the order in which they landed, and
//! reports the losses.

use plumb_block::{ExtentMap, Lba, LbaRange};
use plumb_crash::{Command, Keep, Kind, Remainder, Window, happens};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::commands::Contents;
use super::content::Content;
use super::corruption::Corruption;
use super::damage::{CutReport, Damage};
use super::medium::Medium;

/// Maximum number of random draws for unreadable blocks in one command. A longer one is divided into this
/// many pieces, with one draw for a block of each.
const BREAKS_MAX: u64 = 1 << 12;

/// Command whose version a cut left in a block. A block without an owner has the earlier durable version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Command with this number.
    Command(u64),
    /// No command: an answered one left the block torn internally or unreadable.
    Broken,
    /// A misdirected write of another address.
    Stray,
}

/// A cut in progress.
struct Cut<'a> {
    window: &'a Window<Content>,
    medium: &'a mut Medium,
    block_bytes: usize,
    chance: &'a mut Xoshiro256PlusPlus,
    damage: &'a Damage,
    /// Owner of each block where any command landed.
    left: ExtentMap<Owner>,
    report: CutReport,
}

impl Contents {
    /// Cuts the power and draws the survivors of the commands at risk, determined only by `chance`.
    /// Afterwards nothing is in flight, and everything on the medium is durable.
    ///
    /// A failure of the backing file is kept and returned by the next [`complete`](Self::complete).
    pub fn cut(&mut self, chance: &mut Xoshiro256PlusPlus, damage: &Damage) -> CutReport {
        let mut drawn = self.window.draw(chance, damage.survival);
        let unserialized = happens(chance, damage.unserialized);
        if unserialized {
            drawn.remainders.reverse();
        }
        let report = CutReport { strategy: drawn.strategy, unserialized, ..CutReport::default() };
        let mut cut = Cut {
            window: &self.window,
            medium: &mut self.medium,
            block_bytes: self.block_bytes,
            chance,
            damage,
            left: ExtentMap::default(),
            report,
        };
        for one in &drawn.remainders {
            if let Some(command) = cut.window.command(one.id) {
                cut.count(one, command);
                cut.lay(one, command, self.blocks);
            }
        }
        cut.account(self.blocks);
        let report = cut.report;
        self.has_unreadable |= report.unreadable_blocks > 0;
        self.forget_commands();
        report
    }
}

impl Cut<'_> {
    fn count(&mut self, one: &Remainder, command: &Command<Content>) {
        if command.is_durable {
            return;
        }
        let kept: u64 = one.keep.runs(command.range.nlb).iter().map(|(_, count)| count).sum();
        self.report.at_risk += u64::from(command.is_acknowledged());
        self.report.in_flight += u64::from(!command.is_acknowledged());
        self.report.survived += u64::from(kept == command.range.nlb);
        self.report.torn += u64::from(kept > 0 && kept < command.range.nlb);
    }

    /// Applies the surviving part of a command to the medium, with corruption beyond the rules.
    fn lay(&mut self, one: &Remainder, command: &Command<Content>, blocks: u64) {
        let window = self.window;
        let is_write = matches!(command.kind, Kind::Write { .. });
        let corruption = if one.keep == Keep::Nothing || command.is_durable {
            Corruption::default()
        } else {
            Corruption::draw(self.chance, self.damage, command.range, is_write.then_some(blocks))
        };
        self.report.shorn += u64::from(corruption.is_shorn());
        self.report.misdirected += u64::from(corruption.misdirected_to.is_some());
        for (first, count) in one.keep.runs(command.range.nlb) {
            let kept = LbaRange::new(command.range.lba + first, count);
            // A part replaced by something newer and durable no longer matters.
            for (run, _) in window.versions(kept).filter(|(_, ids)| ids.contains(&one.id)) {
                self.land(one.id, command, run, &corruption);
            }
        }
        self.make_unreadable(one, command);
    }

    fn land(&mut self, id: u64, command: &Command<Content>, run: LbaRange, corruption: &Corruption) {
        if corruption.is_none() {
            self.medium.store(run, &command.content);
            return self.left.insert(run, Owner::Command(id));
        }
        for lba in (run.lba.0..run.end().0).map(Lba) {
            match corruption.misdirected_to {
                Some(target) => {
                    let to = Lba(target + (lba.0 - command.range.lba.0));
                    self.land_elsewhere(command, lba, to, corruption);
                }
                None => self.land_block(id, command, lba, corruption),
            }
        }
    }

    /// Lands one block of an internally torn or shorn command.
    fn land_block(&mut self, id: u64, command: &Command<Content>, lba: Lba, corruption: &Corruption) {
        let block = LbaRange::new(lba, 1);
        let old = corruption.old_parts(lba, self.block_bytes);
        let old_bytes: usize = old.iter().map(std::ops::Range::len).sum();
        if old_bytes >= self.block_bytes {
            return;
        }
        if old.is_empty() {
            self.medium.store(block, &command.content);
            return self.left.insert(block, Owner::Command(id));
        }
        let mut bytes = vec![0; self.block_bytes];
        let Some(before) = self.medium.block(lba) else { return };
        if !command.content.fill(block, self.block_bytes, &mut bytes) {
            return;
        }
        for part in old {
            bytes[part.clone()].copy_from_slice(&before[part]);
        }
        self.medium.store(block, &Content::bytes(lba, &bytes));
        self.left.insert(block, spoiler(id, command));
        self.report.torn_inside_blocks += 1;
    }

    /// Lands one block of a misdirected write; its own address does not change.
    fn land_elsewhere(&mut self, command: &Command<Content>, lba: Lba, to: Lba, corruption: &Corruption) {
        if corruption.old_parts(lba, self.block_bytes).iter().map(std::ops::Range::len).sum::<usize>()
            >= self.block_bytes
        {
            return;
        }
        // If the target held nothing, nothing is lost.
        if self.medium.block(to).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
            self.left.insert(LbaRange::new(to, 1), Owner::Stray);
        }
        let moved = command.content.moved(lba, to, self.block_bytes);
        self.medium.store(LbaRange::new(to, 1), &moved);
    }

    /// Draws the blocks of a command that become unreadable: for one in flight by rule 8, for one at risk
    /// beyond the rules.
    fn make_unreadable(&mut self, one: &Remainder, command: &Command<Content>) {
        let probability = match command.span.is_completed() {
            false if one.is_atomic => 0.0,
            false => self.damage.unreadable,
            true if command.is_durable => 0.0,
            true => self.damage.latent,
        };
        let window = self.window;
        let step = command.range.nlb.div_ceil(BREAKS_MAX).max(1) as usize;
        if probability <= 0.0 {
            return;
        }
        for (run, _) in window.versions(command.range).filter(|(_, ids)| ids.contains(&one.id)) {
            for lba in (run.lba.0..run.end().0).step_by(step) {
                if happens(self.chance, probability) {
                    let block = LbaRange::new(Lba(lba), 1);
                    self.medium.store(block, &Content::Unreadable);
                    self.left.insert(block, spoiler(one.id, command));
                    self.report.unreadable_blocks += 1;
                }
            }
        }
    }

    /// Counts the blocks that lost an answered version.
    fn account(&mut self, blocks: u64) {
        let window = self.window;
        let whole_drive = LbaRange::new(Lba(0), blocks);
        for (run, ids) in window.versions(whole_drive) {
            let was = window.visible(ids);
            let mut at = run.lba.0;
            let mut changes = Vec::new();
            for (range, owner) in self.left.over(run) {
                changes.push((range.lba.0 - at, None));
                changes.push((range.nlb, Some(*owner)));
                at = range.end().0;
            }
            changes.push((run.end().0 - at, None));
            for (count, is) in changes.into_iter().filter(|(count, _)| *count > 0) {
                self.account_run(ids, was, is, count);
            }
        }
        for (range, _) in self.left.iter().filter(|(_, owner)| **owner == Owner::Stray) {
            let accounted: u64 = window.versions(range).map(|(run, _)| run.nlb).sum();
            self.report.misdirected_over_blocks += range.nlb;
            self.report.lost_blocks += range.nlb - accounted;
        }
    }

    /// Counts blocks covered by these commands, where the version of `was` was visible and that of `is`
    /// remains.
    fn account_run(&mut self, ids: &[u64], was: Option<u64>, is: Option<Owner>, count: u64) {
        let window = self.window;
        if was.map(Owner::Command) == is {
            return;
        }
        // A command is not lost if the remaining version is newer, or was in flight at the same time.
        let is_gone = |id: u64, one: &Command<Content>| match is {
            None => true,
            Some(Owner::Broken | Owner::Stray) => was == Some(id),
            Some(Owner::Command(left)) => {
                window.command(left).is_some_and(|left| left.span.is_older_than(one.span))
            }
        };
        let gone = ids.iter().filter_map(|id| {
            let one = window.command(*id)?;
            (one.is_acknowledged() && is_gone(*id, one)).then_some(one)
        });
        let is_stray = is == Some(Owner::Stray);
        let (mut is_lost, mut was_promised) = (is_stray && was.is_none(), false);
        // A lost discard loses no data.
        for one in gone.filter(|one| !matches!(one.kind, Kind::Discard { .. })) {
            is_lost = true;
            was_promised |= window.was_said_durable(one);
        }
        self.report.lost_blocks += if is_lost { count } else { 0 };
        // Data destroyed by a stray write is damaged, but not lost by a broken promise.
        self.report.promised_lost_blocks += if was_promised && !is_stray { count } else { 0 };
    }
}

/// Returns the owner of a block damaged by a command: one in flight may leave anything, but damage by an
/// answered one is a loss.
const fn spoiler(id: u64, command: &Command<Content>) -> Owner {
    if command.span.is_completed() { Owner::Broken } else { Owner::Command(id) }
}

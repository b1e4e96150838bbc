//! The power cut: what survives is drawn, laid over the medium in the order in which it landed, and accounted
//! for.

use plumb_block::{ExtentMap, Lba, LbaRange};
use plumb_crash::{Command, Keep, Kind, Remainder, Window, happens};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::commands::Contents;
use super::content::Content;
use super::corruption::Corruption;
use super::damage::{CutReport, Damage};
use super::medium::Medium;

/// The most blocks of one command for which it is drawn whether they become unreadable; of a longer one, one
/// in each of so many equal pieces.
const BREAKS_MAX: u64 = 1 << 12;

/// Whose version a cut left in a block; nobody's: what was durable before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// This command's.
    Command(u64),
    /// No version: the block is torn inside or unreadable, by a command that was answered.
    Broken,
    /// A write of another place landed here.
    Stray,
}

/// A cut while it happens.
struct Cut<'a> {
    window: &'a Window<Content>,
    medium: &'a mut Medium,
    block_bytes: usize,
    chance: &'a mut Xoshiro256PlusPlus,
    damage: &'a Damage,
    /// Whose version is left, where any command landed.
    left: ExtentMap<Owner>,
    report: CutReport,
}

impl Contents {
    /// Cuts the power: draws what survives of what is at risk. Afterwards the medium is what is left, nothing
    /// is in flight, and all of it is durable. `chance` alone decides.
    ///
    /// A failure of the backing file stays and comes with the next [`complete`](Self::complete).
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

    /// Lays what survives of a command over the medium, with what goes wrong beyond the rules.
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
            // Where something newer is durable it counts no more.
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

    /// Lands one block of a command that is torn inside or shorn.
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

    /// Lands one block of a misdirected write; its own place stays as it is.
    fn land_elsewhere(&mut self, command: &Command<Content>, lba: Lba, to: Lba, corruption: &Corruption) {
        if corruption.old_parts(lba, self.block_bytes).iter().map(std::ops::Range::len).sum::<usize>()
            >= self.block_bytes
        {
            return;
        }
        // Where there was nothing, nothing is lost.
        if self.medium.block(to).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
            self.left.insert(LbaRange::new(to, 1), Owner::Stray);
        }
        let moved = command.content.moved(lba, to, self.block_bytes);
        self.medium.store(LbaRange::new(to, 1), &moved);
    }

    /// Draws which blocks of a command become unreadable: of one in flight by rule 8, of one at risk beyond
    /// the rules.
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

    /// Counts what is not as it was: the blocks of which an answered version is gone.
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

    /// Accounts for blocks over which these commands lie, of which the version of `was` was visible and that
    /// of `is` is left.
    fn account_run(&mut self, ids: &[u64], was: Option<u64>, is: Option<Owner>, count: u64) {
        let window = self.window;
        if was.map(Owner::Command) == is {
            return;
        }
        // A command is not lost if the version left is newer, or was in flight with it.
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
        // A discard that is lost loses nobody's data.
        for one in gone.filter(|one| !matches!(one.kind, Kind::Discard { .. })) {
            is_lost = true;
            was_promised |= window.was_said_durable(one);
        }
        self.report.lost_blocks += if is_lost { count } else { 0 };
        // Data that a stray write destroys is damaged, but not lost by a broken promise.
        self.report.promised_lost_blocks += if was_promised && !is_stray { count } else { 0 };
    }
}

/// Returns the owner of a block that a command has spoilt: a command in flight may leave anything, but from
/// one that was answered that is a loss.
const fn spoiler(id: u64, command: &Command<Content>) -> Owner {
    if command.span.is_completed() { Owner::Broken } else { Owner::Command(id) }
}

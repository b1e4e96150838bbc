//! The power cut: what survives is chosen, laid over the medium in a legal order, and accounted for.

use std::collections::BTreeMap;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::damage::{CutReport, Damage};
use super::drive_side::Contents;
use super::geometry::bits;
use super::lay::{LaidPart, Lay};
use super::window::Pending;
use crate::rules::planted::{Bug, planted};
use crate::rules::{Contender, Keep, Moment, below, draw, happens, is_atomic};

/// Of each block of a page: the command of which it is; 0 for what was durable before.
pub(super) type Owners = BTreeMap<u64, [u32; 8]>;
/// The owner of a block that is not what any command made of it.
pub(super) const NOBODY: u32 = u32::MAX;
/// The owner of a block over which a write of another place landed.
pub(super) const STRAY: u32 = u32::MAX - 1;

/// By page: the answered commands with blocks in it, and which blocks.
type Answered<'l> = BTreeMap<u64, Vec<(u8, &'l Pending)>>;

impl Contents {
    /// Cuts the power: chooses what survives of what is at risk. Afterwards the medium is what is left, nothing is in
    /// flight, and all of it is durable. `chance` alone decides.
    ///
    /// A failure of the backing file stays and comes with the next [`complete`](Self::complete).
    pub fn cut(&mut self, chance: &mut Xoshiro256PlusPlus, damage: &Damage) -> CutReport {
        let owners = self.owners();
        let mut lays = self.take_window();
        let mut report = CutReport::default();
        self.choose(&mut lays, chance, damage, &mut report);
        self.order(&mut lays, chance, damage, &mut report);
        let mut left: Owners = owners.keys().map(|page| (*page, [0; 8])).collect();
        for lay in &lays {
            self.lay(lay, chance, damage, (&mut left, &mut report));
        }
        self.account(&owners, &left, &lays, &mut report);
        for part in lays.iter().flat_map(|lay| &lay.parts) {
            self.medium.slots.give_back(part.slot);
        }
        self.medium.drain();
        report
    }

    /// What is visible now, of the pages in which a command has a part.
    fn owners(&self) -> Owners {
        let mut owners = Owners::new();
        for (_, pending) in self.window.pendings.iter().filter(|(_, one)| one.live > 0) {
            for page in self.geometry.pages(pending.range) {
                let head = self.window.heads.get(page);
                if head != 0 && !owners.contains_key(&page) {
                    let winners = self.winners(page, head, self.geometry.full());
                    owners.insert(page, winners.map(|(number, _)| number));
                }
            }
        }
        owners
    }

    /// Empties the window: what was in it, in the order of submission.
    fn take_window(&mut self) -> Vec<Lay> {
        let all = self.window.pendings.iter().filter(|(_, one)| !one.state.is_idle);
        let mut lays: Vec<Lay> = all.map(|(number, one)| Lay::new(number, *one)).collect();
        lays.sort_by_key(|lay| (lay.pending.span.submitted, lay.number));
        for lay in lays.iter_mut().filter(|lay| lay.pending.live > 0) {
            for page in self.geometry.pages(lay.pending.range) {
                let head = self.window.heads.get(page);
                let node = self.window.chain(head).find(|(_, node)| node.pending == lay.number);
                lay.parts.extend(node.map(|(_, node)| LaidPart { page, mask: node.mask, slot: node.slot }));
            }
        }
        self.window.clear();
        lays
    }

    fn contender(&self, pending: &Pending) -> Contender {
        Contender {
            blocks: pending.range.nlb,
            is_atomic: pending.state.is_write && is_atomic(pending.range, self.atomicity()),
            is_completed: pending.span.is_completed() && !pending.state.is_given_up,
        }
    }

    /// Decides which blocks of which commands survive.
    fn choose(
        &self,
        lays: &mut [Lay],
        chance: &mut Xoshiro256PlusPlus,
        damage: &Damage,
        report: &mut CutReport,
    ) {
        let mut at_risk: Vec<_> = lays.iter_mut().filter(|lay| !lay.pending.state.is_durable).collect();
        let contenders: Vec<_> = at_risk.iter().map(|lay| self.contender(&lay.pending)).collect();
        let chosen = draw(chance, &contenders, damage.survival);
        report.strategy = chosen.strategy;
        for ((lay, keep), contender) in at_risk.iter_mut().zip(chosen.keep).zip(contenders) {
            lay.keep = keep;
            lay.is_atomic = contender.is_atomic;
            let is_in_flight = !contender.is_completed;
            report.in_flight += u64::from(is_in_flight);
            report.at_risk += u64::from(!is_in_flight);
            let kept: u64 = keep.runs(contender.blocks).iter().map(|(_, count)| count).sum();
            report.survived += u64::from(kept == contender.blocks);
            report.torn += u64::from(kept > 0 && kept < contender.blocks);
        }
    }

    /// Sorts what survives by when it landed; of what was in flight that is drawn.
    fn order(
        &self,
        lays: &mut [Lay],
        chance: &mut Xoshiro256PlusPlus,
        damage: &Damage,
        report: &mut CutReport,
    ) {
        let now: Moment = self.now;
        for lay in lays.iter_mut() {
            let span = lay.pending.span;
            if planted(Bug::OverwritesReordered) {
                lay.landed = below(chance, now + 1);
            } else if !span.is_completed() {
                lay.landed = span.submitted + below(chance, now - span.submitted + 1);
            }
        }
        report.unserialized = happens(chance, damage.unserialized);
        lays.sort_by_key(|lay| (lay.landed, lay.pending.span.submitted));
        if report.unserialized {
            lays.reverse();
        }
    }

    /// Counts what is not as it was: the blocks of which an answered version is gone.
    fn account(&self, owners: &Owners, left: &Owners, lays: &[Lay], report: &mut CutReport) {
        let known: BTreeMap<u32, &Pending> = lays.iter().map(|lay| (lay.number, &lay.pending)).collect();
        let answered = answered(lays);
        for (page, after) in left {
            let before = owners.get(page).copied().unwrap_or_default();
            let versions = answered.get(page).map_or(&[][..], Vec::as_slice);
            for block in bits(self.geometry.full()).filter(|block| before[*block] != after[*block]) {
                let (was, is) = (known.get(&before[block]), after[block]);
                // What is newer, or was in flight with it, may be there instead.
                let is_gone = |one: &Pending| match is {
                    0 => true,
                    NOBODY | STRAY => was.is_some_and(|was| was.id == one.id),
                    _ => known.get(&is).is_some_and(|is| is.span.is_older_than(one.span)),
                };
                let here = versions.iter().filter(|(mask, one)| mask >> block & 1 == 1 && is_gone(one));
                let (mut is_lost, mut is_promised) = (is == STRAY && before[block] == 0, false);
                for (_, one) in here {
                    is_lost = true;
                    let counts =
                        was.is_some_and(|was| was.id == one.id) || !planted(Bug::OlderPromiseUnaccounted);
                    is_promised |= counts && self.is_promised(one);
                }
                report.lost_blocks += u64::from(is_lost);
                // What a stray write destroys is damage, and no lie about it.
                report.promised_lost_blocks += u64::from(is_promised && is != STRAY);
                report.misdirected_over_blocks += u64::from(is == STRAY);
            }
        }
    }

    /// Whether the drive has said that an answered command is durable.
    const fn is_promised(&self, one: &Pending) -> bool {
        one.state.is_durable || one.state.asked_fua || one.span.completed < self.promised_until
    }
}

fn answered(lays: &[Lay]) -> Answered<'_> {
    let mut answered = Answered::new();
    let is_answered = |lay: &&Lay| lay.pending.span.is_completed() && !lay.pending.state.is_given_up;
    for lay in lays.iter().filter(is_answered) {
        for part in &lay.parts {
            answered.entry(part.page).or_default().push((part.mask, &lay.pending));
        }
    }
    answered
}

/// A command that is about to be laid, with nothing chosen yet.
impl Lay {
    const fn new(number: u32, pending: Pending) -> Self {
        let landed = pending.landed;
        Self { number, pending, landed, keep: Keep::All, is_atomic: false, parts: Vec::new() }
    }
}

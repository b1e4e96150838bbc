//! Laying one surviving command over the medium after a power cut, with what goes wrong beyond the rules.

use std::ops::Range;

use plumb_block::{Lba, LbaRange};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::cut::{NOBODY, Owners, STRAY};
use super::damage::{CutReport, Damage};
use super::drive_side::Contents;
use super::geometry::bits;
use super::medium::{Part, What};
use super::window::Pending;
use crate::rules::planted::{Bug, planted};
use crate::rules::{Keep, Moment, below, happens};

/// A command and what survives of it.
pub(super) struct Lay {
    pub(super) number: u32,
    pub(super) pending: Pending,
    /// Where it comes in the order of survivors.
    pub(super) landed: Moment,
    pub(super) keep: Keep,
    pub(super) is_atomic: bool,
    pub(super) parts: Vec<LaidPart>,
}

/// The part of it in one page.
#[derive(Clone, Copy)]
pub(super) struct LaidPart {
    pub(super) page: u64,
    pub(super) mask: u8,
    pub(super) slot: u32,
}

/// An eighth of the 4 KiB of which a shorn write lacks the end.
const EIGHTH: usize = 512;

/// What goes wrong with one command.
#[derive(Default)]
struct Harm {
    /// How many eighths of each 4 KiB land.
    shorn: Option<usize>,
    /// Which of its blocks is torn inside.
    torn_block: Option<u64>,
    /// Where it lands instead.
    misdirected: Option<u64>,
}

impl Contents {
    /// Lays a command.
    pub(super) fn lay(
        &mut self,
        lay: &Lay,
        chance: &mut Xoshiro256PlusPlus,
        damage: &Damage,
        (left, report): (&mut Owners, &mut CutReport),
    ) {
        if lay.pending.state.is_wide {
            return self.lay_wide(lay, left);
        }
        let harm = self.draw_harm(lay, chance, damage, report);
        for part in &lay.parts {
            let kept = self.kept(lay, *part, &harm);
            if let Some(target) = harm.misdirected {
                self.lay_elsewhere(lay, *part, kept, (target, left));
                continue;
            }
            let what = self.what_in(&lay.pending, part.page);
            let new = Part { what, slot: part.slot, mask: kept, gives_slot: false };
            self.lay_torn(lay, new, part.page, &harm, (left, report));
            let broken = draw_unreadable(lay, part.mask, chance, damage);
            if broken != 0 {
                self.has_unreadable = true;
                self.medium.store(
                    part.page,
                    Part { what: What::Unreadable, slot: 0, mask: broken, gives_slot: false },
                );
                own(left, part.page, broken, spoiler(lay));
                report.unreadable_blocks += bits(broken).count() as u64;
            }
        }
    }

    fn lay_wide(&mut self, lay: &Lay, left: &mut Owners) {
        let range = lay.pending.range;
        for (first, count) in lay.keep.runs(range.nlb) {
            let run = LbaRange::new(range.lba + first, count);
            self.medium.store_run(run, lay.pending.what, &[]);
            for (page, owners) in left.iter_mut() {
                bits(self.geometry.mask(*page, run)).for_each(|block| owners[block] = lay.number);
            }
        }
    }

    /// The blocks of a part that land.
    fn kept(&self, lay: &Lay, part: LaidPart, harm: &Harm) -> u8 {
        let first = self.geometry.first_block(part.page);
        let range = lay.pending.range;
        let landing = bits(part.mask).filter(|block| {
            let index = (first + *block as u64).wrapping_sub(range.lba.0);
            let has_new = self.eighths(*block).any(|eighth| !harm.keeps_old(eighth));
            lay.keep.keeps(index, range.nlb) && has_new
        });
        landing.fold(0, |mask, block| mask | 1 << block)
    }

    fn draw_harm(
        &self,
        lay: &Lay,
        chance: &mut Xoshiro256PlusPlus,
        damage: &Damage,
        report: &mut CutReport,
    ) -> Harm {
        let mut harm = Harm::default();
        let range = lay.pending.range;
        let survives = lay.keep != Keep::Nothing && !lay.pending.state.is_durable;
        if !survives {
            return harm;
        }
        let torn = if planted(Bug::TearInsideBlock) { 0.5 } else { damage.torn };
        if happens(chance, torn) {
            harm.torn_block = Some(range.lba.0 + below(chance, range.nlb));
        }
        if lay.pending.state.is_write && happens(chance, damage.shorn) {
            harm.shorn = Some(if below(chance, 2) == 0 { 3 } else { 7 });
            report.shorn += 1;
        }
        if lay.pending.state.is_write && happens(chance, damage.misdirected) {
            let target = below(chance, self.geometry.blocks - range.nlb + 1);
            // Its own place is none that it goes astray to.
            harm.misdirected = (target != range.lba.0).then_some(target);
            report.misdirected += u64::from(harm.misdirected.is_some());
        }
        harm
    }

    /// Stores the blocks of `new` that land, and those that land in part.
    fn lay_torn(
        &mut self,
        lay: &Lay,
        new: Part,
        page: u64,
        harm: &Harm,
        (left, report): (&mut Owners, &mut CutReport),
    ) {
        let first = self.geometry.first_block(page);
        let mut whole = new.mask;
        for block in bits(new.mask) {
            let half = self.geometry.block_bytes / 2;
            let mut old: Vec<Range<usize>> = Vec::new();
            if harm.torn_block == Some(first + block as u64) {
                old.push(half..2 * half);
            }
            let shorn = self.eighths(block).enumerate().filter(|(_, eighth)| harm.keeps_old(*eighth));
            old.extend(shorn.map(|(place, _)| place * EIGHTH..(place + 1) * EIGHTH));
            if !old.is_empty() {
                whole &= !(1 << block);
                if self.store_torn(page, block, new, &old) {
                    report.torn_inside_blocks += 1;
                    own(left, page, 1 << block, spoiler(lay));
                }
            }
        }
        if whole != 0 {
            self.medium.store(page, Part { mask: whole, ..new });
            own(left, page, whole, lay.number);
        }
    }

    /// The eighths of a block, by their number among those of its page.
    fn eighths(&self, block: usize) -> Range<usize> {
        let bytes = self.geometry.bytes_of(block);
        bytes.start / EIGHTH..bytes.end / EIGHTH
    }

    /// Stores a block that is new but for the ranges that are `old`; nothing if either has no bytes.
    fn store_torn(&mut self, page: u64, block: usize, new: Part, old: &[Range<usize>]) -> bool {
        let mut bytes = vec![0; self.geometry.block_bytes];
        let Some(before) = self.on_medium(page, block) else { return false };
        if !self.medium.bytes(page, block, new, &mut bytes).unwrap_or(false) {
            return false;
        }
        for range in old {
            bytes[range.clone()].copy_from_slice(&before[range.clone()]);
        }
        self.store_bytes(page, block, &bytes);
        true
    }

    /// What a block holds now, if it can be read.
    fn on_medium(&mut self, page: u64, block: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.geometry.block_bytes];
        let mut found = None;
        self.medium.parts(page, 1 << block, &mut |part| found = Some(part));
        self.medium.drain();
        self.medium.bytes(page, block, found?, &mut bytes).unwrap_or(false).then_some(bytes)
    }

    fn store_bytes(&mut self, page: u64, block: usize, bytes: &[u8]) {
        let slot = self.medium.slots.take();
        let place = self.geometry.bytes_of(block);
        self.medium.slots.bytes_mut(slot)[place].copy_from_slice(bytes);
        self.medium.store(page, Part { what: What::Bytes, slot, mask: 1 << block, gives_slot: true });
    }

    /// Stores the kept blocks of a part at another place; its own place stays as it is.
    fn lay_elsewhere(&mut self, lay: &Lay, part: LaidPart, kept: u8, (target, left): (u64, &mut Owners)) {
        let first = self.geometry.first_block(part.page);
        let what = self.what_in(&lay.pending, part.page);
        for block in bits(kept) {
            let lba = Lba(target + (first + block as u64 - lay.pending.range.lba.0));
            let page = self.geometry.page_of(lba.0);
            let there = (lba.0 - self.geometry.first_block(page)) as usize;
            // Where there was nothing, nothing is lost.
            if self.on_medium(page, there).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
                left.entry(page).or_default()[there] = STRAY;
            }
            if what == What::Bytes {
                let bytes = self.medium.slots.bytes(part.slot)[self.geometry.bytes_of(block)].to_vec();
                self.store_bytes(page, there, &bytes);
            } else {
                let what = what.shifted((block as u64).wrapping_sub(there as u64));
                self.medium.store(page, Part { what, slot: 0, mask: 1 << there, gives_slot: false });
            }
        }
    }
}

/// The blocks of a part that become unreadable.
fn draw_unreadable(lay: &Lay, mask: u8, chance: &mut Xoshiro256PlusPlus, damage: &Damage) -> u8 {
    let state = lay.pending.state;
    let probability = match lay.pending.span.is_completed() {
        false if lay.is_atomic => return 0,
        false => damage.unreadable,
        true if state.is_durable => return 0,
        true => damage.latent,
    };
    if probability <= 0.0 {
        return 0;
    }
    bits(mask).filter(|_| happens(chance, probability)).fold(0, |mask, block| mask | 1 << block)
}

impl Harm {
    /// Whether this eighth of a page is as it was.
    fn keeps_old(&self, eighth: usize) -> bool {
        self.shorn.is_some_and(|landed| eighth % 8 >= landed)
    }
}

/// Who owns a block that a command has spoilt: one in flight may leave anything, from one that was answered that is a loss.
const fn spoiler(lay: &Lay) -> u32 {
    if lay.pending.span.is_completed() { NOBODY } else { lay.number }
}

fn own(left: &mut Owners, page: u64, mask: u8, number: u32) {
    if let Some(owners) = left.get_mut(&page) {
        bits(mask).for_each(|block| owners[block] = number);
    }
}

//! The sweep of a batch: runs in the order of addresses (C-SCAN), merged with what goes on where they end,
//! whatever its age.

use plumb_block::{Buffer, Bytes, ExtentMap, Lba, LbaRange, Op, Payload};

use super::{Run, Stage, UNREADABLE_AFTER};
use crate::action::{Command, Member, Purpose};
use crate::core::{Core, Then};
use crate::format::record::Kind;
use crate::gather::{Gather, Goal, readable};
use crate::index::Entry;

/// Largest distance in bytes behind a run of the batch, and largest number, of the neighbours that are
/// destaged with it, whatever their age. The arm of a disk is there, and what lies on the same track costs
/// part of a turn. Elsewhere each is one more write, and might have been overwritten.
const NEAR: (u64, u32) = (64 << 10, 15);
/// Largest distance in bytes and largest number, as in [`NEAR`], for a drive that says that it rotates.
const NEAR_ON_PLATTER: (u64, u32) = (256 << 10, 63);
/// The largest zeroing at a time, in bytes.
const ZEROES_MAX: u64 = 1 << 30;

impl Core {
    /// Begins to destage the next run of the sweep, if there is one and it may; whether it did.
    pub(super) fn destage_run(&mut self) -> bool {
        let (now, used) = (self.io.now(), self.pressure());
        let limit = self.pace.runs_max(now, used, self.destage.is_draining);
        let is_ready = self
            .destage
            .batch
            .as_ref()
            .is_some_and(|batch| batch.stage == Stage::Sweep && batch.in_flight < limit);
        if !is_ready || self.is_giving_up() || !self.has_memory_for_run() || self.is_bypass_beneath() {
            return false;
        }
        let Some(run) = self.next_run() else { return false };
        self.destage.reached = run.range.end();
        self.destage.left().into_iter().for_each(|left| *left += 1);
        let [(_, entry), ..] = run.pieces[..] else { return false };
        if entry.kind() != Kind::Data {
            let op = match entry.kind() {
                Kind::Discard => Op::Discard,
                kind => {
                    Op::WriteZeroes { fua: false, no_hole: kind == Kind::ZeroesReserved, fast_only: false }
                }
            };
            self.act_on_backing(op, run, Payload::None);
            return true;
        }
        let found = run.pieces.iter().map(|(range, entry)| (*range, Some(*entry))).collect();
        let parts = self.parts(run.range, found);
        let target = self.options.memory.take(Bytes(self.log.geometry.bytes(run.range)));
        self.gather(Gather::new(Goal::Destage(run), target, parts));
        true
    }

    /// Returns the next run of the sweep. Without one the sweep is at its end.
    fn next_run(&mut self) -> Option<Run> {
        let geometry = self.log.geometry;
        let (data_max, blocks) = (self.devices.backing_transfer_max(), self.devices.backing().blocks());
        let (near, near_max) =
            if self.devices.backing().revolution.is_some() { NEAR_ON_PLATTER } else { NEAR };
        let batch = self.destage.batch.as_mut()?;
        let is_ordered = !batch.epochs.is_empty();
        let map = batch.epochs.front().unwrap_or(&self.index);
        loop {
            let rest = LbaRange::new(batch.cursor, blocks - batch.cursor.0);
            let mut run = Run { range: LbaRange::new(batch.cursor, 0), pieces: Vec::new() };
            let mut is_old = false;
            for (range, entry) in map.over(rest) {
                let is_of_batch = is_ordered || entry.segment(&geometry, range.lba) < batch.end;
                let is_young = entry.segment(&geometry, range.lba) >= batch.young;
                if is_young || entry.is_unreadable() || (entry.is_clean() && !is_ordered) {
                    if !run.pieces.is_empty() {
                        break;
                    }
                    if is_of_batch {
                        batch.swept.push(range);
                    }
                    batch.cursor = range.end();
                    continue;
                }
                let most = match entry.kind() {
                    Kind::Data => data_max,
                    Kind::Discard => self.devices.backing().discard_max.0,
                    Kind::Zeroes | Kind::ZeroesReserved => ZEROES_MAX,
                } / geometry.logical_block;
                let is_next =
                    range.lba == run.range.end() && entry.kind() == Kind::Data && run.range.nlb < most;
                match run.pieces.last() {
                    None => run.range = LbaRange::new(range.lba, 0),
                    Some((_, last)) if is_next && last.kind() == Kind::Data => {}
                    Some(_) => break,
                }
                let part = LbaRange::new(range.lba, range.nlb.min(most - run.range.nlb));
                run.range.nlb += part.nlb;
                run.pieces.push((part, *entry));
                is_old |= is_of_batch;
                if is_of_batch {
                    batch.swept.push(part);
                }
            }
            if run.pieces.is_empty() {
                batch.cursor = Lba(blocks);
                return None;
            }
            batch.cursor = run.range.end();
            let (near_end, near_runs) = batch.near;
            if is_old || (run.range.lba < near_end && near_runs > 0) {
                let left = if is_old { near_max } else { near_runs - 1 };
                batch.near = (batch.cursor + near / geometry.logical_block, left);
                return Some(run);
            }
        }
    }

    /// Writes a run that was read; without its bytes it has failed. What no leg has whole is tried again for
    /// a while, and then left out.
    pub(crate) fn write_run(&mut self, run: &Run, bytes: Option<Buffer>, unreadable: &[LbaRange]) {
        let range = run.range;
        let lba = unreadable.first().map_or(range.lba, |first| first.lba);
        let is_over = unreadable.is_empty() || self.destage.is_failing_for(UNREADABLE_AFTER, self.io.now());
        let Some(bytes) = bytes.filter(|_| is_over) else {
            return self.run_failed(format!(
                "the log cannot be read at {lba} on any of its devices: it is tried again"
            ));
        };
        let mut entries = ExtentMap::default();
        run.pieces.iter().for_each(|(range, entry)| entries.insert(*range, *entry));
        self.leave_unreadable(&entries, unreadable);
        let (block, runs) = (self.log.geometry.logical_block as usize, readable(range, unreadable));
        if let Some(batch) = &mut self.destage.batch {
            batch.in_flight = batch.in_flight + runs.len() - 1;
        }
        for range in runs {
            let from = (range.lba.0 - run.range.lba.0) as usize * block;
            let bytes = bytes.slice(from..from + range.nlb as usize * block);
            let pieces = entries.over(range).map(|(range, entry)| (range, *entry)).collect();
            self.act_on_backing(Op::Write { fua: false }, Run { range, pieces }, Payload::Bytes(bytes));
        }
        self.io.step();
    }

    /// Marks the blocks of `unreadable` whose newest version is still that of `entries` as unreadable, until
    /// they are overwritten.
    fn leave_unreadable(&mut self, entries: &ExtentMap<Entry>, unreadable: &[LbaRange]) {
        for (range, entry) in unreadable.iter().flat_map(|left| entries.over(*left)) {
            for range in self.index.leave_unreadable(range, *entry) {
                self.unreadable.insert(range, ());
                self.figures.unreadable += Bytes(self.log.geometry.bytes(range));
            }
        }
    }

    fn act_on_backing(&mut self, op: Op, run: Run, payload: Payload) {
        self.note_destage(op, run.range);
        let (member, purpose) = (Member::Backing, Purpose::BackingDestage);
        let command = Command { member, purpose, op, range: run.range, payload };
        self.io.issue(command, Then::Destage { run, at: self.io.now() });
    }
}

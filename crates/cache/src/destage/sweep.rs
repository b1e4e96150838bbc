//! The sweep of a batch: runs in order of addresses (C-SCAN), merged with adjacent data of any age.

use plumb_block::{Buffer, Bytes, ExtentMap, Lba, LbaRange, Op, Payload};

use super::{Destage, Stage, UNREADABLE_AFTER};
use crate::action::{Command, Member, Purpose};
use crate::base::Base;
use crate::continuation::{Run, Then};
use crate::format::record::Kind;
use crate::gather::{Gather, Gathers, Goal, parts, readable};
use crate::index::Entry;
use crate::mark::Marks;

/// Limits for destaging neighbours of any age together with a run of the batch: maximum distance in bytes
/// behind it, and maximum number. The arm of a disk is there already, and data on the same track costs only
/// part of a revolution. On other devices each is an additional write that might have been absorbed later.
const NEAR: (u64, u32) = (64 << 10, 15);
/// Limits like [`NEAR`], for a drive that reports that it rotates.
const NEAR_ON_PLATTER: (u64, u32) = (256 << 10, 63);
/// Maximum size of one zeroing in bytes.
const ZEROES_MAX: u64 = 1 << 30;

impl Destage {
    /// Starts to destage the next run of the sweep if possible; returns true if it did.
    pub(super) fn begin_run(&mut self, base: &mut Base, marks: &mut Marks, gathers: &mut Gathers) -> bool {
        let (now, used) = (base.io.now(), self.pressure(base));
        let limit = base.pace.runs_max(now, used, self.is_draining);
        let is_ready =
            self.batch.as_ref().is_some_and(|batch| batch.stage == Stage::Sweep && batch.in_flight < limit);
        if !is_ready || !base.has_memory_for_run() {
            return false;
        }
        let Some(run) = self.next_run(base) else { return false };
        self.reached = run.range.end();
        self.pending().into_iter().for_each(|left| *left += 1);
        let [(_, entry), ..] = run.pieces[..] else { return false };
        if entry.kind() != Kind::Data {
            let op = match entry.kind() {
                Kind::Discard => Op::Discard,
                kind => {
                    Op::WriteZeroes { fua: false, no_hole: kind == Kind::ZeroesReserved, fast_only: false }
                }
            };
            act_on_backing(base, marks, op, run, Payload::None);
            return true;
        }
        let found = run.pieces.iter().map(|(range, entry)| (*range, Some(*entry))).collect();
        let parts = parts(base, run.range, found);
        let target = base.options.memory.take(Bytes(base.log.geometry.bytes(run.range)));
        gathers.begin(base, Gather::new(Goal::Destage(run), target, parts));
        true
    }

    /// Returns the next run of the sweep; `None` at its end.
    fn next_run(&mut self, base: &Base) -> Option<Run> {
        let geometry = base.log.geometry;
        let (data_max, blocks) = (base.devices.backing_transfer_max(), base.devices.backing().blocks());
        let (near, near_max) =
            if base.devices.backing().revolution.is_some() { NEAR_ON_PLATTER } else { NEAR };
        let batch = self.batch.as_mut()?;
        let is_ordered = !batch.epochs.is_empty();
        let map = batch.epochs.front().unwrap_or(&base.index);
        loop {
            let rest = LbaRange::new(batch.cursor, blocks - batch.cursor.0);
            let mut run = Run { range: LbaRange::new(batch.cursor, 0), pieces: Vec::new() };
            let mut is_old = false;
            for (range, entry) in map.over(rest) {
                let segment = entry.segment(&geometry, range.lba);
                let is_of_batch = is_ordered || (base.log.tail..batch.end).contains(&segment);
                let is_young = segment >= batch.young;
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
                    Kind::Discard => base.devices.backing().discard_max.0,
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

    /// Writes a run after it was read; without `bytes` the read failed. Blocks that no leg has intact are
    /// retried for a while and then given up.
    pub(crate) fn write_run(
        &mut self,
        base: &mut Base,
        marks: &mut Marks,
        run: &Run,
        bytes: Option<Buffer>,
        unreadable: &[LbaRange],
    ) {
        let range = run.range;
        let lba = unreadable.first().map_or(range.lba, |first| first.lba);
        let is_over = unreadable.is_empty() || self.is_failing_for(UNREADABLE_AFTER, base.io.now());
        let Some(bytes) = bytes.filter(|_| is_over) else {
            return self.run_failed(
                base,
                format!("block {lba} of the log cannot be read from any of its devices: plumb keeps trying"),
            );
        };
        let mut entries = ExtentMap::default();
        run.pieces.iter().for_each(|(range, entry)| entries.insert(*range, *entry));
        self.leave_out(base, &entries, unreadable);
        let (block, runs) = (base.log.geometry.logical_block as usize, readable(range, unreadable));
        if let Some(batch) = &mut self.batch {
            batch.in_flight = batch.in_flight + runs.len() - 1;
        }
        for range in runs {
            let from = (range.lba.0 - run.range.lba.0) as usize * block;
            let bytes = bytes.slice(from..from + range.nlb as usize * block);
            let pieces = entries.over(range).map(|(range, entry)| (range, *entry)).collect();
            act_on_backing(
                base,
                marks,
                Op::Write { fua: false },
                Run { range, pieces },
                Payload::Bytes(bytes),
            );
        }
        base.io.step();
    }

    /// Marks blocks of `unreadable` as unreadable until they are overwritten, unless they have changed since
    /// `entries`.
    fn leave_out(&mut self, base: &mut Base, entries: &ExtentMap<Entry>, unreadable: &[LbaRange]) {
        for (range, entry) in unreadable.iter().flat_map(|left| entries.over(*left)) {
            for range in base.index.leave_unreadable(range, *entry) {
                self.unreadable.insert(range, ());
                base.figures.unreadable += Bytes(base.log.geometry.bytes(range));
            }
        }
    }
}

fn act_on_backing(base: &mut Base, marks: &mut Marks, op: Op, run: Run, payload: Payload) {
    marks.note_destage(base, op, run.range);
    let (member, purpose) = (Member::Backing, Purpose::BackingDestage);
    let command = Command { member, purpose, op, range: run.range, payload };
    base.io.issue(command, Then::Destage { run, at: base.io.now() });
}

//! Ledger of the contents that each block must hold according to the record of a run, and the classification
//! of blocks that hold something else.

use std::collections::{BTreeMap, BTreeSet};

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Pattern, Stamp};
use plumb_load::ReadBack;
use plumb_report::document::power::{Class, ClassCount, Example, VerifyDocument};

use crate::error::{Error, Result};
use crate::message::Event;
use crate::plan::{Plan, WRITES_MAX};
use crate::record::Record;

/// Maximum number of wrong blocks that are listed individually.
const EXAMPLES_MAX: usize = 16;
/// Maximum number of other runs whose blocks are counted.
const OTHERS_MAX: usize = 10_000;
/// Minimum length of the run of differing bytes that a torn write leaves; damaged bits are scattered.
const TEAR_BYTES: usize = 64;

/// Ordering facts of a completed write.
#[derive(Debug, Clone, Copy)]
struct Write {
    /// Number of the first write that was not issued when this one completed: it and all later writes are
    /// newer.
    older_than: u64,
    /// Number of the first write that was not issued when this one was known to be durable.
    durable_before: u64,
    durable_at: Nanos,
}

const UNANSWERED: Write = Write { older_than: u64::MAX, durable_before: u64::MAX, durable_at: Nanos::ZERO };

/// Missing blocks of a durable write after which nothing newer is required.
#[derive(Debug, Clone, Copy, Default)]
struct Missing {
    blocks: u64,
    /// True if a block holds a version older than the state before the missing write.
    is_stale: bool,
    first: Option<(Lba, Option<Stamp>)>,
}

/// Ledger of required contents and of the results of the comparison.
pub struct Ledger {
    plan: Plan,
    writes: Vec<Write>,
    /// Newest and second newest durable write of each block, each plus one; 0 for none.
    required: Vec<[u32; 2]>,
    /// Writes that may have been in flight at the cut, and so may leave their blocks unreadable.
    at_risk: Vec<(u64, LbaRange)>,
    /// Number of blocks for which each durable write is the newest.
    judged: Vec<u64>,
    /// Newest write of which a block was found.
    survived: u64,
    missing: BTreeMap<u64, Missing>,
    /// Wrong blocks that cannot be attributed to one write.
    blocks: BTreeMap<Class, u64>,
    /// Seeds of other runs of which whole blocks were found.
    pub(crate) others: BTreeSet<u64>,
    document: VerifyDocument,
    cut_at: Nanos,
    unreached: u64,
}

impl Ledger {
    /// Builds the ledger from a record.
    ///
    /// # Errors
    /// If the events contradict each other, or the plan.
    pub fn from_record(record: &Record) -> Result<Self> {
        let plan = &record.facts.plan;
        let mut ledger = Self {
            plan: plan.clone(),
            writes: Vec::new(),
            required: vec![[0; 2]; plan.blocks as usize],
            at_risk: Vec::new(),
            judged: Vec::new(),
            survived: 0,
            missing: BTreeMap::new(),
            blocks: BTreeMap::new(),
            others: BTreeSet::new(),
            document: VerifyDocument {
                schema: VerifyDocument::SCHEMA.to_owned(),
                run: record.facts.plan.name(),
                target: record.facts.target.clone(),
                identity: record.facts.identity.clone(),
                ..VerifyDocument::default()
            },
            cut_at: Nanos::ZERO,
            unreached: 0,
        };
        let damaged = |what: String| Error::damaged(format!("run {}", plan.name()), what);
        let mut answered = Vec::new();
        let mut covered = 0;
        for event in record.batches.iter().flat_map(|batch| &batch.events) {
            match *event {
                Event::Written { write, next, at } => {
                    // All writes below `next` except those in flight had completed.
                    if write >= next.min(WRITES_MAX) || next > answered.len() as u64 + u64::from(plan.depth) {
                        return Err(damaged(format!("write {write} cannot have been answered then")));
                    }
                    ledger.answered(write, next);
                    answered.push(write);
                    ledger.cut_at = ledger.cut_at.max(at);
                    if plan.write(write).1 {
                        ledger.durable(write, next, at);
                    }
                }
                Event::Flushed { covers, next, at } => {
                    let newly = usize::try_from(covers)
                        .ok()
                        .and_then(|covers| answered.get(covered..covers.max(covered)));
                    let newly =
                        newly.ok_or_else(|| damaged(format!("a flush covers {covers} writes")))?.to_vec();
                    covered += newly.len();
                    newly.into_iter().for_each(|write| ledger.durable(write, next, at));
                    ledger.cut_at = ledger.cut_at.max(at);
                }
            }
        }
        let lease = record.batches.last().map_or(0, |batch| batch.lease);
        let issued = lease.min(answered.len() as u64 + u64::from(plan.depth) + plan.window);
        let is_durable = |write: u64| {
            ledger.writes.get(write as usize).is_some_and(|write| write.durable_before != u64::MAX)
        };
        let at_risk = (0..issued).filter(|write| !is_durable(*write));
        ledger.at_risk = at_risk.map(|write| (write, plan.write(write).0)).collect();
        ledger.document.acknowledged = answered.len() as u64;
        ledger.judged = vec![0; ledger.writes.len()];
        for [newest, _] in &ledger.required {
            if *newest > 0 {
                ledger.judged[*newest as usize - 1] += 1;
            }
        }
        Ok(ledger)
    }

    fn answered(&mut self, write: u64, next: u64) {
        let least = write as usize + 1;
        if self.writes.len() < least {
            self.writes.resize(least, UNANSWERED);
        }
        self.writes[write as usize].older_than = next;
    }

    fn durable(&mut self, write: u64, next: u64, at: Nanos) {
        let known = &mut self.writes[write as usize];
        if known.durable_before != u64::MAX {
            return;
        }
        (known.durable_before, known.durable_at) = (next, at);
        self.document.required += 1;
        let number = write as u32 + 1;
        let (range, _) = self.plan.write(write);
        for lba in range.lba.0..range.end().0 {
            let [newest, second] = &mut self.required[lba as usize];
            if number > *newest {
                *second = std::mem::replace(newest, number);
            } else {
                *second = number.max(*second);
            }
        }
    }

    /// Returns true if a block may hold the version of `write` although `required` (plus one) is durable: no
    /// durable write is certain to have replaced it.
    fn may_hold(&self, write: u64, required: u32) -> bool {
        let older_than = self.writes.get(write as usize).map_or(u64::MAX, |write| write.older_than);
        required == 0 || write + 1 == u64::from(required) || older_than > u64::from(required) - 1
    }

    fn judge(&mut self, lba: Lba, block: &[u8]) {
        let [newest, second] = self.required[lba.0 as usize];
        let stamp = Stamp::read(block);
        let is_whole = stamp.is_some_and(|stamp| stamp.is_whole(block));
        let ours = stamp.filter(|stamp| stamp.seed == self.plan.seed);
        if ours.is_none() && is_whole && self.others.len() < OTHERS_MAX {
            self.others.extend(stamp.map(|stamp| stamp.seed));
        }
        match ours {
            Some(ours) if is_whole && ours.lba == lba => {
                let (range, _) = self.plan.write(ours.generation);
                if !range.overlaps(LbaRange::new(lba, 1)) {
                    return self.wrong(lba, Class::Corrupt, stamp);
                }
                if self.may_hold(ours.generation, newest) {
                    self.survived = self.survived.max(ours.generation);
                } else {
                    self.is_missing(lba, stamp, !self.may_hold(ours.generation, second));
                }
            }
            Some(_) if is_whole => self.wrong(lba, Class::Misdirected, stamp),
            Some(ours) if ours.lba == lba => {
                let class = if is_torn(ours, block) { Class::Torn } else { Class::Corrupt };
                self.wrong(lba, class, stamp);
            }
            _ if newest == 0 => {}
            // The block is as before the run, and at most its filling was durable.
            _ if second == 0 && (is_whole || stamp.is_none()) => self.is_missing(lba, stamp, false),
            _ if is_whole || block.iter().all(|byte| *byte == 0) => self.is_missing(lba, stamp, true),
            _ => self.wrong(lba, Class::Corrupt, stamp),
        }
    }

    fn is_missing(&mut self, lba: Lba, found: Option<Stamp>, is_stale: bool) {
        let write = u64::from(self.required[lba.0 as usize][0]) - 1;
        let missing = self.missing.entry(write).or_default();
        missing.blocks += 1;
        missing.is_stale |= is_stale;
        missing.first.get_or_insert((lba, found));
    }

    fn wrong(&mut self, lba: Lba, class: Class, found: Option<Stamp>) {
        *self.blocks.entry(class).or_default() += 1;
        let write = u64::from(self.required[lba.0 as usize][0]).checked_sub(1);
        self.example(class, lba, write, found);
    }

    fn example(&mut self, class: Class, lba: Lba, write: Option<u64>, found: Option<Stamp>) {
        let examples = &mut self.document.examples;
        if examples.iter().filter(|example| example.class == class).count() >= EXAMPLES_MAX / 4
            || examples.len() >= EXAMPLES_MAX
        {
            return;
        }
        let durable_at = write.map(|write| self.writes[write as usize].durable_at);
        examples.push(Example {
            class,
            offset: self.plan.logical_block * lba.0,
            write,
            durable_at: durable_at.map(Nanos::as_secs_f64),
            before_cut: durable_at.map(|at| self.cut_at.since(at).as_secs_f64()),
            found_write: found.filter(|found| found.seed == self.plan.seed).map(|found| found.generation),
            found_run: found.map(|found| format!("{:016x}", found.seed)),
            found_offset: found.map(|found| Bytes(self.plan.logical_block.0.saturating_mul(found.lba.0))),
        });
    }

    /// Returns the document of the results.
    pub fn into_document(mut self) -> VerifyDocument {
        let mut counts: BTreeMap<Class, ClassCount> = BTreeMap::new();
        for (class, blocks) in std::mem::take(&mut self.blocks) {
            counts.insert(class, ClassCount { class, writes: 0, blocks });
        }
        for (write, missing) in std::mem::take(&mut self.missing) {
            let is_partial = missing.blocks < self.judged[write as usize];
            let class = match () {
                () if is_partial => Class::Torn,
                () if missing.is_stale => Class::Stale,
                () if self.survived >= self.writes[write as usize].durable_before => Class::Unserialised,
                () => Class::Lost,
            };
            let count = counts.entry(class).or_insert(ClassCount { class, writes: 0, blocks: 0 });
            count.writes += 1;
            count.blocks += missing.blocks;
            let age = self.cut_at.since(self.writes[write as usize].durable_at).as_secs_f64();
            let oldest = self.document.oldest_loss.get_or_insert(age);
            *oldest = oldest.max(age);
            if let Some((lba, found)) = missing.first {
                self.example(class, lba, Some(write), found);
            }
        }
        self.document.recorded_until = self.cut_at.as_secs_f64();
        self.document.blocks_unreached = self.unreached;
        self.document.classes = counts.into_values().collect();
        self.document.concluded()
    }
}

/// Returns true if the block begins as written and ends differently, which distinguishes a tear from damaged
/// bits.
fn is_torn(stamp: Stamp, block: &[u8]) -> bool {
    let mut expected = vec![0; block.len()];
    Pattern { seed: stamp.seed, lba: stamp.lba, generation: stamp.generation }
        .fill(block.len(), &mut expected);
    let pieces = expected.chunks(TEAR_BYTES).zip(block.chunks(TEAR_BYTES));
    // One byte in 256 is equal by chance.
    let differ = |(expected, found): (&[u8], &[u8])| {
        expected.iter().zip(found).filter(|(expected, found)| expected != found).count() > TEAR_BYTES / 2
    };
    pieces.into_iter().any(differ)
}

impl ReadBack for Ledger {
    fn to_read(&self, most: u64) -> Vec<LbaRange> {
        let blocks = self.plan.blocks;
        let runs = (0..blocks).step_by(most.max(1) as usize);
        runs.map(|first| LbaRange::new(Lba(first), most.min(blocks - first))).collect()
    }

    fn check(&mut self, range: LbaRange, bytes: &[u8]) {
        self.document.blocks_read += range.nlb;
        for (lba, block) in (range.lba.0..).zip(bytes.chunks_exact(self.plan.logical_block.0 as usize)) {
            self.judge(Lba(lba), block);
        }
    }

    fn unreadable(&mut self, range: LbaRange) {
        for lba in (range.lba.0..range.end().0).map(Lba) {
            self.document.blocks_read += 1;
            let newest = self.required[lba.0 as usize][0];
            let is_at_risk = self
                .at_risk
                .iter()
                .any(|(write, range)| range.overlaps(LbaRange::new(lba, 1)) && self.may_hold(*write, newest));
            if newest > 0 && !is_at_risk {
                self.wrong(lba, Class::Unreadable, None);
            } else {
                self.document.unreadable_at_risk += 1;
            }
        }
    }

    fn unreached(&mut self, range: LbaRange) {
        self.unreached += range.nlb;
    }

    fn has_lost_power(&self) -> bool {
        true
    }
}

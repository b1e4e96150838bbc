//! Expected content of every block of a worker's range, and the differences found.
//!
//! For each grain of the range (the greatest length that divides all operations) the ledger knows which
//! version was last acknowledged. A worker with a ledger never lets two requests overlap if one of them
//! changes blocks, so the expected content of a read is always a single version.
//!
//! A wrong block is one of:
//!
//! - *lost*: an acknowledged write is missing: zeroes, or bytes that this run did not write;
//! - *stale*: an older version of this block;
//! - *misdirected*: a block that was written for another address;
//! - *torn*: stamped as this block, but not complete.
//!
//! After a loss of power, or of the connection to the storage, only durable data is required: data covered by
//! a flush or FUA. Data that was only acknowledged may be present, or the block may hold any version that is
//! at least as new as the durable one. Such blocks are counted separately ([`VerifyResult::at_risk`],
//! [`VerifyResult::older`]).
//!
//! A block that this run has not written may hold anything, but a stamp with the seed of this run must match
//! the address of the block. This also applies to blocks that were written when the file was laid out, or by
//! an earlier run with that seed.

use std::collections::BTreeMap;

use plumb_block::{Bytes, Completion, Lba, LbaRange, Outcome, Payload, Stamp};
use plumb_measure::{VerifyResult, WrongBlock, WrongKind};

use crate::content::Maker;
use crate::in_flight::{InFlight, Kind};
use crate::read_back::ReadBack;

/// Not written by this run.
const UNTOUCHED: u32 = 0;
/// Any version is valid: a write or a trim failed, or the block was trimmed.
const ANY: u32 = u32::MAX;
/// Grains of a page. Few, so that random writes over a large device need little memory each; enough that
/// sequential writes need little more than their versions.
const PAGE_GRAINS: u64 = 16;

/// Versions of the content of one grain.
#[derive(Debug, Clone, Copy, Default)]
struct Grain {
    /// Last acknowledged version, [`UNTOUCHED`], or [`ANY`].
    version: u32,
    /// Last version known to be durable, if a newer one is not.
    durable: u32,
    /// Number of the flush that makes the version durable: the first after its acknowledgement. The block is
    /// at risk while that flush is the next one. 0 if the version was durable immediately.
    epoch: u32,
}

impl Grain {
    /// Returns the version if the content is known.
    fn known(self) -> Option<u32> {
        (self.version != UNTOUCHED && self.version != ANY).then_some(self.version)
    }
}

/// Expected content of each block of a worker's range.
#[derive(Debug)]
pub struct Ledger {
    range: LbaRange,
    /// Number of logical blocks of each grain.
    grain: u64,
    /// Grains with state, by page: the memory depends on the written data, not on the size of the device.
    pages: BTreeMap<u64, [Grain; PAGE_GRAINS as usize]>,
    /// Number of the next flush, from 1.
    epoch: u32,
    /// True if acknowledged data is durable.
    is_durable_at_once: bool,
    has_lost_power: bool,
    maker: Maker,
    seed: u64,
    logical_block: usize,
    /// Expected bytes of a block.
    expected: Vec<u8>,
    verified: VerifyResult,
}

impl Ledger {
    /// Creates a ledger of `range` without writes, in grains of `grain` logical blocks.
    pub(crate) fn new(range: LbaRange, grain: u64, seed: u64, logical_block: Bytes, maker: Maker) -> Self {
        Self {
            range,
            grain: grain.max(1),
            pages: BTreeMap::new(),
            epoch: 1,
            is_durable_at_once: false,
            has_lost_power: false,
            maker,
            seed,
            logical_block: logical_block.0 as usize,
            expected: vec![0; logical_block.0 as usize],
            verified: VerifyResult::default(),
        }
    }

    /// Sets whether the device has no volatile cache, so that acknowledged data is durable.
    pub(crate) fn durable_at_once(self, is_durable_at_once: bool) -> Self {
        Self { is_durable_at_once, ..self }
    }

    /// Records the changes of a request to its blocks, or checks the data that it read.
    pub(crate) fn enter(&mut self, request: &InFlight, completion: &Completion) {
        let is_loss = matches!(completion.outcome, Outcome::PowerLost | Outcome::Unknown);
        if is_loss || (request.kind == Kind::Flush && !completion.outcome.is_done()) {
            self.lose_power();
        }
        match (request.kind, &completion.payload) {
            (Kind::Write, _) => {
                self.changed_with(request.range, Some(request.generation), request.fua, completion.outcome);
            }
            (Kind::Flush, _) if completion.outcome.is_done() => self.flushed(),
            (Kind::Trim, _) => self.changed(request.range, None, completion.outcome),
            (Kind::Read, Payload::Into(bytes)) if completion.outcome.is_done() => {
                self.check(request.range, bytes);
            }
            (Kind::Read | Kind::Flush, _) => {}
        }
    }

    /// Records the end of a write or a trim. A trim has no version: the device chooses the content of trimmed
    /// blocks.
    pub(crate) fn changed(&mut self, range: LbaRange, version: Option<u64>, outcome: Outcome) {
        self.changed_with(range, version, false, outcome);
    }

    /// Records the end of a write or a trim that may have had FUA.
    pub(crate) fn changed_with(
        &mut self,
        range: LbaRange,
        version: Option<u64>,
        fua: bool,
        outcome: Outcome,
    ) {
        let version = match (outcome, version.map(u32::try_from)) {
            (Outcome::Done, Some(Ok(version))) if version != ANY => version,
            _ => ANY,
        };
        let epoch = if fua || self.is_durable_at_once { 0 } else { self.epoch };
        let (first, end) = self.grains_of(range);
        for number in first..end.min(self.range.nlb.div_ceil(self.grain)) {
            let page = self.pages.entry(number / PAGE_GRAINS).or_default();
            let grain = &mut page[(number % PAGE_GRAINS) as usize];
            if grain.epoch < self.epoch {
                grain.durable = grain.version;
            }
            (grain.version, grain.epoch) = (version, epoch);
        }
    }

    /// Records a successful flush that was submitted with no other request in flight: all acknowledged data
    /// is durable.
    pub(crate) fn flushed(&mut self) {
        // The counter saturates only after years of flushes; even then no data is wrongly reported as
        // durable.
        self.epoch = self.epoch.saturating_add(1);
    }

    /// Records a loss of power or connection, or a failed flush: from now on only durable data is required.
    pub fn lose_power(&mut self) {
        self.has_lost_power = true;
    }

    /// Returns the runs of blocks that this run wrote and that must be read back, each of at most `most`
    /// logical blocks, in order.
    pub(crate) fn written(&self, most: u64) -> impl Iterator<Item = LbaRange> + '_ {
        let mut known = self
            .pages
            .iter()
            .flat_map(|(page, grains)| (page * PAGE_GRAINS..).zip(grains))
            .filter_map(|(number, grain)| grain.known().map(|_| number))
            .peekable();
        let runs = std::iter::from_fn(move || {
            let first = known.next()?;
            let mut next = first + 1;
            while known.next_if_eq(&next).is_some() {
                next += 1;
            }
            let lba = self.range.lba.0 + first * self.grain;
            Some(lba..(self.range.lba.0 + next * self.grain).min(self.range.end().0))
        });
        // Runs consist of whole grains, if a grain is not longer than one read.
        let most = if most > self.grain { most - most % self.grain } else { most.max(1) };
        runs.flat_map(move |run| {
            let end = run.end;
            run.step_by(most as usize).map(move |lba| LbaRange::new(Lba(lba), most.min(end - lba)))
        })
    }

    /// Returns true if [`lose_power`](Self::lose_power) was called.
    pub fn has_lost_power(&self) -> bool {
        self.has_lost_power
    }

    /// Returns the findings so far.
    pub fn verified(&self) -> &VerifyResult {
        &self.verified
    }

    /// Returns the final findings.
    pub fn into_verified(self) -> VerifyResult {
        self.verified
    }

    /// Returns the versions of the grain that holds `lba`.
    fn grain_at(&self, lba: Lba) -> Grain {
        let number = self.grains_of(LbaRange::new(lba, 1)).0;
        let page = self.pages.get(&(number / PAGE_GRAINS));
        page.map_or_else(Grain::default, |page| page[(number % PAGE_GRAINS) as usize])
    }

    /// Returns the numbers of the first grain of `range` and of the one after its last.
    fn grains_of(&self, range: LbaRange) -> (u64, u64) {
        let first = range.lba.0.saturating_sub(self.range.lba.0) / self.grain;
        (first, range.end().0.saturating_sub(self.range.lba.0).div_ceil(self.grain))
    }

    fn judge(&mut self, lba: Lba, block: &[u8]) -> Option<WrongBlock> {
        let found = Stamp::read(block);
        let Some(version) = self.grain_at(lba).known() else {
            return self.judge_unknown(lba, found);
        };
        let expected = u64::from(version);
        self.maker.expect(lba, expected, &mut self.expected);
        if self.expected == block {
            return None;
        }
        let kind = match found {
            Some(stamp) if stamp.seed != self.seed => WrongKind::Stale,
            Some(stamp) if stamp.lba != lba => WrongKind::Misdirected,
            Some(stamp) if stamp.generation == expected => WrongKind::Torn,
            Some(_) => WrongKind::Stale,
            None => WrongKind::Lost,
        };
        Some(WrongBlock { lba, kind, expected: Some(expected), found })
    }

    /// Returns true if power was lost while acknowledged data of this block was not durable.
    fn is_at_risk(&self, lba: Lba) -> bool {
        self.has_lost_power && self.grain_at(lba).epoch == self.epoch
    }

    /// Returns true if a block that was at risk when power was lost has valid content: the durable version, a
    /// newer one, or, if this run made none durable, the content before the run. Blocks of another address
    /// and partial blocks are not valid.
    fn is_allowed(&mut self, lba: Lba, block: &[u8]) -> bool {
        let Grain { version: newest, durable, .. } = self.grain_at(lba);
        let has_floor = durable != UNTOUCHED && durable != ANY;
        let Some(stamp) = Stamp::read(block).filter(|stamp| stamp.seed == self.seed) else {
            return !has_floor;
        };
        // A copied block does not show its version.
        if stamp.generation == u64::MAX {
            return true;
        }
        if stamp.lba != lba || stamp.generation > u64::from(newest) {
            return false;
        }
        if has_floor && stamp.generation < u64::from(durable) {
            return false;
        }
        self.maker.expect(lba, stamp.generation, &mut self.expected);
        self.expected == block
    }

    /// Judges a block whose version is unknown, only by the address in its stamp. An incomplete block proves
    /// nothing: an earlier run of the same seed with another block length may have cut it.
    fn judge_unknown(&self, lba: Lba, found: Option<Stamp>) -> Option<WrongBlock> {
        let stamp = found.filter(|stamp| stamp.seed == self.seed && stamp.lba != lba)?;
        Some(WrongBlock { lba, kind: WrongKind::Misdirected, expected: None, found: Some(stamp) })
    }
}

impl ReadBack for Ledger {
    fn to_read(&self, most: u64) -> Vec<LbaRange> {
        self.written(most).collect()
    }

    fn check(&mut self, range: LbaRange, bytes: &[u8]) {
        self.verified.read_back_bytes += bytes.len() as u64;
        for (index, block) in bytes.chunks_exact(self.logical_block).enumerate() {
            let lba = range.lba + index as u64;
            let may_be_older = self.is_at_risk(lba);
            match self.judge(lba, block) {
                Some(_) if may_be_older && self.is_allowed(lba, block) => {
                    self.verified.older += 1;
                    continue;
                }
                Some(wrong) => self.verified.count(wrong),
                None => self.verified.at_risk += u64::from(may_be_older),
            }
            self.verified.blocks += 1;
        }
    }

    fn unreached(&mut self, range: LbaRange) {
        self.verified.unreached += range.nlb;
    }

    fn unreadable(&mut self, range: LbaRange) {
        for index in 0..range.nlb {
            self.verified.blocks += 1;
            let lba = range.lba + index;
            let expected = self.grain_at(lba).known().map(u64::from);
            self.verified.count(WrongBlock { lba, kind: WrongKind::Lost, expected, found: None });
        }
    }

    fn has_lost_power(&self) -> bool {
        self.has_lost_power
    }
}

#[cfg(test)]
mod tests;

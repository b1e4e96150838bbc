//! Oracle of what the user of a device may see across power cuts and killed processes: the contract of a
//! device for each block ([`History`]), with the effects of a cut and a kill.
//!
//! - After a **cut** each block is one of its survivors, durable, and unchanged by repeated recoveries. The
//!   first read determines which one.
//! - After a **kill** all acknowledged data is present. A request that was not answered has taken effect or
//!   not.
//! - A block that was never written reads as what the device was filled with.
//! - After a failed **flush**, none succeeds until the device is opened again.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _};

use super::{BlockContent, Content, History, Moment, Version};
use crate::{Errno, Lba, LbaRange, Op, Outcome, Pattern};

/// Seed of all patterns here.
pub const SEED: u64 = 7;

#[derive(Debug, Clone)]
struct Pending {
    op: Op,
    range: LbaRange,
    submitted: Moment,
    generation: Option<u64>,
}

/// A request that was answered as done.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Operation of the request.
    pub op: Op,
    /// Blocks of the request.
    pub range: LbaRange,
    /// Generation that was written; `None` for a request that is not a write.
    pub generation: Option<u64>,
    /// Moment of submission.
    pub submitted: Moment,
    /// Moment of the answer.
    pub completed: Moment,
}

/// The versions of every block that was ever written.
#[derive(Debug, Clone)]
pub struct Oracle {
    block: usize,
    discard_zeroes: bool,
    /// Content of blocks that were never written.
    initial: Content,
    /// True if a power cut may lose acknowledged data.
    is_volatile: bool,
    moment: Moment,
    generation: u64,
    pending: BTreeMap<u64, Pending>,
    blocks: BTreeMap<u64, History<Content>>,
    answered: Vec<Answer>,
    /// Moment at which a flush was seen to fail.
    failed_flush: Option<Moment>,
}

impl Oracle {
    /// Creates the oracle of a device with blocks of `block` bytes that all hold `initial`.
    pub fn new(block: usize, discard_zeroes: bool, initial: Content) -> Self {
        Self {
            block,
            discard_zeroes,
            initial,
            is_volatile: true,
            moment: 1,
            generation: 0,
            pending: BTreeMap::new(),
            blocks: BTreeMap::new(),
            answered: Vec::new(),
            failed_flush: None,
        }
    }

    /// Sets whether the device reports a volatile cache from now on.
    pub const fn set_volatile(&mut self, is_volatile: bool) {
        self.is_volatile = is_volatile;
    }

    /// Returns the blocks that were ever written, in runs of at most `longest`.
    pub fn written(&self, longest: u64) -> Vec<LbaRange> {
        let mut runs: Vec<LbaRange> = Vec::new();
        for lba in self.blocks.keys() {
            match runs.last_mut() {
                Some(run) if run.end().0 == *lba && run.nlb < longest => run.nlb += 1,
                _ => runs.push(LbaRange::new(Lba(*lba), 1)),
            }
        }
        runs
    }

    /// Returns true if a request is not answered.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the number of requests that are not answered.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns the requests other than reads that were answered as done, in the order of the answers.
    pub fn answered(&self) -> &[Answer] {
        &self.answered
    }

    /// Lists the requests that are not answered.
    pub fn waiting(&self) -> String {
        self.pending
            .iter()
            .map(|(tag, pending)| format!("{tag}: {:?} of {:?}; ", pending.op, pending.range))
            .collect()
    }

    /// Records that a request is about to be submitted. Returns the pattern of a write.
    pub fn submitted(&mut self, tag: u64, op: Op, range: LbaRange) -> Option<Pattern> {
        self.moment += 1;
        let (content, displaces) = match op {
            Op::Write { .. } => {
                self.generation += 1;
                (Some(Content::Generation(self.generation)), true)
            }
            Op::WriteZeroes { .. } => (Some(Content::Zeroes), true),
            Op::Discard => (Some(Content::Zeroes), self.discard_zeroes),
            Op::Read | Op::Flush => (None, false),
        };
        if let Some(content) = content {
            for lba in range.lba.0..range.end().0 {
                let initial = self.initial;
                let history = self.blocks.entry(lba).or_insert_with(|| History::starting_with(initial));
                history.versions.push(Version::submitted(content, self.moment, displaces));
            }
        }
        let generation = matches!(op, Op::Write { .. }).then_some(self.generation);
        self.pending.insert(tag, Pending { op, range, submitted: self.moment, generation });
        generation.map(|generation| Pattern { seed: SEED, lba: range.lba, generation })
    }

    /// Records that a request was answered; `bytes` are the result of a read. `may_fail` is true if something
    /// below is broken.
    ///
    /// # Errors
    /// The violation, in words.
    pub fn ended(
        &mut self,
        tag: u64,
        outcome: Outcome,
        bytes: Option<&[u8]>,
        may_fail: bool,
    ) -> Result<(), String> {
        let pending = self.pending.remove(&tag).ok_or_else(|| format!("tag {tag} was answered twice"))?;
        self.moment += 1;
        if outcome.is_done() && pending.op != Op::Read {
            let Pending { op, range, generation, submitted } = pending;
            self.answered.push(Answer { op, range, generation, submitted, completed: self.moment });
        }
        let fail = |why: &str| Err(format!("{:?} of {:?}: {why}", pending.op, pending.range));
        match (pending.op, outcome) {
            (Op::Read, Outcome::Done) => return self.judge(&pending, bytes.ok_or("a read without bytes")?),
            (Op::Read, Outcome::Failed(Errno::EIO)) if may_fail || self.may_be_unreadable(&pending) => {}
            (Op::Flush, Outcome::Done) if self.failed_flush.is_some_and(|at| at < pending.submitted) => {
                return fail("succeeded after a flush had failed");
            }
            (Op::Flush, Outcome::Done) => self.flushed(pending.submitted),
            (_, Outcome::Done) => self.landed(&pending),
            (_, Outcome::Failed(_)) if !may_fail => return fail(&format!("ended as {outcome:?}")),
            (Op::Flush, Outcome::Failed(_)) => self.failed_flush = self.failed_flush.or(Some(self.moment)),
            (Op::Read, Outcome::Failed(_)) => {}
            (Op::Read | Op::Flush, Outcome::Unknown) if may_fail => {}
            (_, Outcome::Unknown) if !may_fail => return fail("was not answered"),
            (_, Outcome::Failed(_) | Outcome::Unknown) => {
                self.change(&pending, |version| version.is_lost_track_of = true);
            }
            _ => return fail(&format!("ended as {outcome:?}")),
        }
        Ok(())
    }

    fn flushed(&mut self, submitted: Moment) {
        self.blocks.values_mut().for_each(|history| history.flushed(submitted));
        let blocks = self.blocks.keys().copied().collect::<Vec<_>>();
        blocks.into_iter().for_each(|lba| self.prune(lba));
    }

    /// Records that the cache has stopped: all requests are answered, and all acknowledged data is durable.
    ///
    /// # Errors
    /// If a request is not answered.
    pub fn stopped(&mut self) -> Result<(), String> {
        if self.is_pending() {
            return Err(format!("stopped, and {} is not answered", self.waiting()));
        }
        self.moment += 1;
        self.failed_flush = None;
        self.flushed(self.moment);
        Ok(())
    }

    /// Records that the cache was detached: the backing device, which holds these bytes in `range`, no longer
    /// needs it.
    ///
    /// # Errors
    /// The violation, in words.
    pub fn detached(&mut self, range: LbaRange, bytes: &[u8]) -> Result<(), String> {
        self.moment += 1;
        let read = Pending { op: Op::Read, range, submitted: self.moment, generation: None };
        self.judge(&read, bytes).map_err(|why| format!("detached, and on the backing device {why}"))
    }

    fn landed(&mut self, pending: &Pending) {
        let now = self.moment;
        let is_fua = matches!(pending.op, Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. });
        let is_durable = is_fua || !self.is_volatile;
        self.change(pending, |version| {
            version.completed = Some(now);
            version.is_durable = is_durable;
        });
        (pending.range.lba.0..pending.range.end().0).for_each(|lba| self.prune(lba));
    }

    /// Changes the version that a request has given to each of its blocks.
    fn change(&mut self, pending: &Pending, mut change: impl FnMut(&mut Version<Content>)) {
        for (_, history) in self.blocks.range_mut(pending.range.lba.0..pending.range.end().0) {
            let versions = history.versions.iter_mut();
            versions.filter(|version| version.submitted == pending.submitted).for_each(&mut change);
        }
    }

    /// Removes the versions of a block that can never be seen again.
    fn prune(&mut self, lba: u64) {
        let reads = self.pending.values().filter(|pending| pending.op == Op::Read);
        let oldest = reads.map(|pending| pending.submitted).min().unwrap_or(Moment::MAX);
        let Some(history) = self.blocks.get_mut(&lba).filter(|history| history.versions.len() > 1) else {
            return;
        };
        let (readable, survivors) =
            (history.readable(oldest, Moment::MAX).versions, history.survivors(Moment::MAX).versions);
        let mut index = 0;
        history.versions.retain(|_| {
            index += 1;
            readable.contains(&(index - 1)) || survivors.contains(&(index - 1))
        });
    }

    fn may_be_unreadable(&self, pending: &Pending) -> bool {
        let blocks = self.blocks.range(pending.range.lba.0..pending.range.end().0);
        let mut lost = blocks.flat_map(|(_, history)| &history.versions);
        lost.any(|version| version.is_lost_track_of)
    }

    fn judge(&mut self, pending: &Pending, bytes: &[u8]) -> Result<(), String> {
        for (index, lba) in (pending.range.lba.0..pending.range.end().0).enumerate() {
            let seen = BlockContent::from_bytes(
                &bytes[index * self.block..(index + 1) * self.block],
                SEED,
                Lba(lba),
            );
            let Some(history) = self.blocks.get_mut(&lba) else {
                if !seen.is_one_of(&[self.initial]) {
                    return Err(format!("LBA {lba} was never written and reads as {seen:?}"));
                }
                continue;
            };
            let allowed = history.readable(pending.submitted, self.moment).versions;
            let allowed: Vec<Content> =
                allowed.into_iter().map(|index| history.versions[index].content).collect();
            if !seen.is_one_of(&allowed) {
                return Err(format!(
                    "LBA {lba} reads as {seen:?}, allowed is {allowed:?} of {:?}",
                    history.versions
                ));
            }
            settle(history, &seen);
        }
        Ok(())
    }

    /// Records a power cut of all devices.
    pub fn cut(&mut self) {
        self.moment += 1;
        self.failed_flush = None;
        self.pending.clear();
        for history in self.blocks.values_mut() {
            let was_unreadable = history.versions.iter().any(|version| version.is_lost_track_of);
            let survivors = history.survivors(self.moment);
            let first = |index: usize| {
                let version = &history.versions[index];
                // A discard without a promise may still have no effect when it reaches the backing device.
                let displaces = version.displaces || version.content != Content::Zeroes;
                Version { displaces, ..Version::first(version.content) }
            };
            let mut versions: Vec<_> = survivors.versions.into_iter().map(first).collect();
            versions[0].is_lost_track_of = was_unreadable || survivors.may_be_unreadable;
            history.versions = versions;
        }
    }

    /// Hashes the state that determines what the user may see after a cut at this moment.
    pub fn hash_after_cut(&self, hasher: &mut DefaultHasher) {
        let mut after = self.clone();
        after.cut();
        format!("{:?}", after.blocks).hash(hasher);
    }

    /// Records that the process of the cache was killed, which ended its requests.
    pub fn kill(&mut self) {
        self.moment += 1;
        self.failed_flush = None;
        self.pending.clear();
        for version in self.blocks.values_mut().flat_map(|history| &mut history.versions) {
            // A failed write may still reach the backing device.
            if version.completed.is_none() && !version.is_lost_track_of {
                *version = Version { completed: Some(self.moment), displaces: false, ..version.clone() };
            }
        }
        self.moment += 1;
    }
}

/// Sets the version of a block after a cut, which a read has shown.
fn settle(history: &mut History<Content>, seen: &BlockContent) {
    let is_left = |version: &Version<Content>| version.submitted == 0;
    let left: Vec<_> = history.versions.iter().filter(|version| is_left(version)).collect();
    let is_certain = left.iter().all(|version| version.displaces);
    let newer = |version: &&Version<Content>| !is_left(version) && seen.is_one_of(&[version.content]);
    if left.len() < 2 || !is_certain || history.versions.iter().any(|version| newer(&version)) {
        return;
    }
    history.versions.retain(|version| !is_left(version) || seen.is_one_of(&[version.content]));
    history.versions.iter_mut().for_each(|version| version.is_lost_track_of &= !is_left(version));
}

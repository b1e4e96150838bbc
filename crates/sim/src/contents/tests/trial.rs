//! Contents with the oracles: every command goes to both, and the results are judged.

use plumb_block::conformance::{History, Moment, Version};
use plumb_block::{Bytes, ExtentState, Lba, LbaRange, Op, Pattern, Stamp};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::mutated::Mistake;
use crate::command::CommandId;
use crate::contents::{
    Atomicity, Backing, Contents, Damage, Data, FlushKept, FuaKept, Promise, ReadError, Shape,
};

/// Content that was found in a block: the number of the command, 0 for zeroes; `None` if it is unreadable.
pub(super) type FoundCommand = Option<u64>;

/// A command as recorded by the oracle.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenCommand {
    pub(super) op: Op,
    pub(super) range: LbaRange,
    pub(super) submitted: Moment,
    pub(super) completed: Option<Moment>,
    pub(super) is_lost: bool,
}

pub(super) struct Trial {
    pub(super) contents: Contents,
    pub(super) commands: Vec<SeenCommand>,
    histories: Vec<History<u64>>,
    promise: Promise,
    block_bytes: u64,
    now: Moment,
    /// Submissions of answered flushes that a lying drive has not executed yet.
    unkept: Vec<Moment>,
    /// Last submission of an answered flush, executed or not.
    flushed: Moment,
    /// Mistake that the contents make.
    mistake: Option<Mistake>,
    /// Answered commands that a mistake holds back.
    held_back: Vec<usize>,
    seed: u64,
}

const SEED: u64 = 77;
/// First number for flushes that the test does not send.
const OWN: u64 = 1 << 40;

impl Trial {
    pub(super) fn new(
        blocks: u64,
        promise: Promise,
        block_bytes: u64,
        seed: u64,
        mistake: Option<Mistake>,
    ) -> Self {
        let shape = Shape { logical_block: Bytes(block_bytes), blocks };
        let told = mistake.map_or(promise, |mistake| mistake.promise(promise));
        let contents = Contents::new(shape, told, Backing::Memory).unwrap().with_seed(seed);
        let histories = (0..blocks).map(|_| History::starting_with(0)).collect();
        let (commands, unkept) = (Vec::new(), Vec::new());
        let (now, flushed, held_back) = (0, 0, Vec::new());
        Self {
            contents,
            commands,
            histories,
            promise,
            block_bytes,
            now,
            unkept,
            flushed,
            mistake,
            held_back,
            seed,
        }
    }

    fn tick(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// Submits a command; its number is its place in the list plus 1.
    pub(super) fn submit(&mut self, op: Op, range: LbaRange, as_bytes: bool) -> usize {
        let submitted = self.tick();
        let number = self.commands.len() as u64 + 1;
        self.commands.push(SeenCommand { op, range, submitted, completed: None, is_lost: false });
        let is_data = matches!(op, Op::Write { .. });
        let pattern = Pattern { seed: SEED, lba: range.lba, generation: number };
        let mut bytes = vec![0; (range.nlb * self.block_bytes) as usize];
        let bytes_length = bytes.len();
        let payload = match (is_data, as_bytes) {
            (false, _) => Data::None,
            (true, false) => Data::Pattern(pattern),
            (true, true) => {
                pattern.fill(self.block_bytes as usize, &mut bytes);
                Data::Bytes(&bytes)
            }
        };
        if self.mistake == Some(Mistake::FlushCoversSubmitted) && op == Op::Flush {
            for before in 1..number {
                self.contents.complete(CommandId(before)).unwrap();
            }
        }
        let size = self.histories.len() as u64;
        let told = self.mistake.map_or(Some((op, range)), |mistake| mistake.command(op, range, size));
        if let Some((op, range)) = told {
            let payload = if is_data && range.nlb as usize * self.block_bytes as usize != bytes_length {
                Data::Pattern(pattern)
            } else {
                payload
            };
            self.contents.submit(CommandId(number), op, range, payload);
        }
        let content = if is_data { number } else { 0 };
        let displaces = op != Op::Discard || self.promise.discard_zeroes;
        for block in blocks(range) {
            self.histories[block].versions.push(Version::submitted(content, submitted, displaces));
        }
        number as usize - 1
    }

    pub(super) fn complete(&mut self, index: usize) {
        let completed = self.tick();
        self.complete_in_contents(index);
        let command = &mut self.commands[index];
        command.completed = Some(completed);
        let SeenCommand { op, submitted, .. } = *command;
        if op == Op::Flush {
            return self.flushed(submitted);
        }
        let is_durable = !self.promise.volatile || op.is_fua() && self.promise.fua == FuaKept::Honoured;
        self.for_versions(index, |version| {
            version.completed = Some(completed);
            version.is_durable |= is_durable;
        });
    }

    /// Reports the completion of a command to the contents, altered by the mistake.
    fn complete_in_contents(&mut self, index: usize) {
        let SeenCommand { op, .. } = self.commands[index];
        let id = CommandId(index as u64 + 1);
        match self.mistake {
            Some(Mistake::FlushCoversUntilItsAnswer | Mistake::InFlightNeverSurvives) => {
                self.hand_over(index)
            }
            Some(Mistake::OverwritesReordered) if op != Op::Flush => {
                self.held_back.push(index);
                if self.held_back.len() == 2 {
                    for index in std::mem::take(&mut self.held_back).into_iter().rev() {
                        self.hand_over(index);
                        self.contents.complete(CommandId(index as u64 + 1)).unwrap();
                    }
                }
                return;
            }
            Some(Mistake::VisibleAtFlush) if op != Op::Flush => return self.held_back.push(index),
            Some(Mistake::VisibleAtFlush) => {
                for index in std::mem::take(&mut self.held_back) {
                    self.contents.complete(CommandId(index as u64 + 1)).unwrap();
                }
            }
            Some(Mistake::DiscardIsDurable) if op == Op::Discard => self.contents.persist(id),
            _ => {}
        }
        self.contents.complete(id).unwrap();
        if self.mistake == Some(Mistake::FuaIsBarrier) && op.is_fua() {
            self.contents.submit(CommandId(OWN + id.0), Op::Flush, LbaRange::EMPTY, Data::None);
            self.contents.complete(CommandId(OWN + id.0)).unwrap();
        }
    }

    /// Submits a command to the contents that a mistake has kept from them until now.
    fn hand_over(&mut self, index: usize) {
        let (SeenCommand { op, range, .. }, number) = (self.commands[index], index as u64 + 1);
        let data = match op {
            Op::Write { .. } => Data::Pattern(Pattern { seed: SEED, lba: range.lba, generation: number }),
            _ => Data::None,
        };
        let blocks = self.histories.len() as u64;
        if self.mistake.is_some_and(|mistake| mistake.command(op, range, blocks).is_none()) {
            self.contents.submit(CommandId(number), op, range, data);
        }
    }

    fn flushed(&mut self, submitted: Moment) {
        self.flushed = self.flushed.max(submitted);
        self.unkept.push(submitted);
        let unkept = match self.promise.flush {
            FlushKept::Always => 0,
            FlushKept::Never => usize::MAX,
            FlushKept::AllButLast(last) => last as usize,
        };
        while self.unkept.len() > unkept {
            let kept = self.unkept.remove(0);
            self.histories.iter_mut().for_each(|history| history.flushed(kept));
        }
    }

    /// Records that the drive destages an answered command.
    pub(super) fn persist(&mut self, index: usize) {
        if self.mistake != Some(Mistake::DestagedIsLost) {
            self.contents.persist(CommandId(index as u64 + 1));
        }
        self.for_versions(index, |version| version.is_durable |= version.completed.is_some());
    }

    pub(super) fn lose(&mut self, index: usize) {
        self.tick();
        if self.mistake == Some(Mistake::FailedNeverLands) {
            self.contents.window.withdraw(index as u64 + 1);
        }
        self.contents.fail(CommandId(index as u64 + 1));
        self.commands[index].is_lost = true;
        self.for_versions(index, |version| version.is_lost_track_of = true);
    }

    fn for_versions(&mut self, index: usize, change: impl Fn(&mut Version<u64>)) {
        let SeenCommand { range, submitted, .. } = self.commands[index];
        for block in blocks(range) {
            let versions = self.histories[block].versions.iter_mut();
            versions.filter(|version| version.submitted == submitted).for_each(&change);
        }
    }

    /// Returns the content of a block; `Ok(None)` if it is unreadable.
    pub(super) fn found(&self, block: u64) -> Result<FoundCommand, String> {
        let mut bytes = vec![1; self.block_bytes as usize];
        match self.contents.read(LbaRange::new(Lba(block), 1), &mut bytes) {
            Err(ReadError::Unreadable(lba)) if lba.0 == block => return Ok(None),
            Err(error) => return Err(format!("block {block}: {error}")),
            Ok(()) => {}
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Some(0));
        }
        let stamp = Stamp::read(&bytes).ok_or_else(|| format!("block {block} holds what nobody wrote"))?;
        if stamp.lba.0 != block || stamp.seed != SEED {
            return Err(format!("block {block} holds {stamp:?}"));
        }
        if !stamp.is_whole(&bytes) {
            return Err(format!("block {block} is torn inside"));
        }
        Ok(Some(stamp.generation))
    }

    /// Returns the contents of all blocks.
    pub(super) fn state(&self) -> Result<Vec<FoundCommand>, String> {
        (0..self.histories.len() as u64).map(|block| self.found(block)).collect()
    }

    /// Reads a block and judges it by rule 3.
    pub(super) fn judge_read(&mut self, block: u64) -> Result<(), String> {
        let (submitted, completed) = (self.tick(), self.tick());
        let found = self.found(block)?;
        let history = &self.histories[block as usize];
        let legal = history.readable(submitted, completed);
        let is_legal = match found {
            None => legal.may_be_unreadable,
            Some(number) => legal.versions.iter().any(|index| history.versions[*index].content == number),
        };
        if !is_legal {
            return Err(format!(
                "block {block} reads {found:?}, legal are {legal:?} of {:?}",
                history.versions
            ));
        }
        self.judge_extents(block, found)
    }

    fn judge_extents(&self, block: u64, found: FoundCommand) -> Result<(), String> {
        let all = LbaRange::new(Lba(0), self.histories.len() as u64);
        let extents = self.contents.extents(all);
        let mut end = 0;
        for extent in &extents {
            if extent.range.lba.0 != end || extent.range.nlb == 0 {
                return Err(format!("extents with gaps: {extents:?}"));
            }
            end = extent.range.end().0;
            let is_here = extent.range.overlaps(LbaRange::new(Lba(block), 1));
            let is_written = extent.state == ExtentState::Written;
            if is_here && is_written != (found != Some(0)) {
                return Err(format!("block {block} holds {found:?} and is {:?}", extent.state));
            }
        }
        if end == all.nlb { Ok(()) } else { Err(format!("extents end at {end}: {extents:?}")) }
    }

    /// Cuts the power and judges every block by rule 5, and every atomic write.
    pub(super) fn cut_and_judge(
        &mut self,
        chance: &mut Xoshiro256PlusPlus,
        damage: &Damage,
    ) -> Result<Vec<FoundCommand>, String> {
        let cut = self.tick();
        let damage = self.mistake.map_or(*damage, |mistake| mistake.damage(damage, self.seed));
        let report = self.contents.cut(chance, &damage);
        if report.promised_lost_blocks > 0 && self.is_honest() {
            return Err(format!("an honest drive counts a broken promise: {report:?}"));
        }
        if self.contents.at_risk() != Bytes(0) || !self.contents.window.is_empty() {
            return Err("something is at risk after a cut".to_owned());
        }
        let state = self.state()?;
        for (block, found) in state.iter().enumerate() {
            let history = &self.histories[block];
            let legal = history.survivors(cut);
            let is_legal = match found {
                None => legal.may_be_unreadable,
                Some(number) => {
                    legal.versions.iter().any(|index| history.versions[*index].content == *number)
                }
            };
            if !is_legal {
                let versions = &history.versions;
                return Err(format!(
                    "block {block} holds {found:?}, legal are {legal:?} of {versions:?}; {report:?}"
                ));
            }
        }
        self.judge_atomic(&state)?;
        self.judge_account(&state, report.promised_lost_blocks)?;
        Ok(state)
    }

    /// Checks the number of broken promises that a cut counts, between the certain and the possible number.
    fn judge_account(&self, state: &[FoundCommand], counted: u64) -> Result<(), String> {
        let (mut certain, mut possible) = (0, 0);
        for (block, found) in state.iter().enumerate() {
            let over = |seen: &&SeenCommand| blocks(seen.range).contains(&block);
            let is_base = *found == Some(0)
                && self.commands.iter().filter(over).all(|seen| matches!(seen.op, Op::Write { .. }));
            let is_older = |than: &SeenCommand| match found {
                Some(0) => is_base,
                Some(number) => {
                    self.commands[*number as usize - 1].completed.is_some_and(|at| at < than.submitted)
                }
                None => false,
            };
            let mut promised = self.commands.iter().filter(over).filter(|seen| self.is_promised(seen));
            possible += u64::from(promised.clone().next().is_some());
            certain += u64::from(promised.any(|seen| matches!(seen.op, Op::Write { .. }) && is_older(seen)));
        }
        if (certain..=possible).contains(&counted) {
            return Ok(());
        }
        Err(format!("{counted} broken promises are counted, of {certain} to {possible}"))
    }

    /// Returns true if the drive has reported the command as durable, truthfully or not.
    fn is_promised(&self, seen: &SeenCommand) -> bool {
        let asked = matches!(seen.op, Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. });
        seen.completed.is_some_and(|at| !seen.is_lost && (asked || at < self.flushed))
    }

    fn is_honest(&self) -> bool {
        self.promise.flush == FlushKept::Always && self.promise.fua == FuaKept::Honoured
    }

    /// Checks that of an atomic write with a surviving block all blocks survive, or were replaced by
    /// something not older.
    fn judge_atomic(&self, state: &[FoundCommand]) -> Result<(), String> {
        let Atomicity { unit, boundary } = self.promise.atomicity;
        for (index, command) in self.commands.iter().enumerate() {
            let blocks: Vec<_> = blocks(command.range).collect();
            let crosses = boundary > 0
                && blocks.iter().any(|block| *block as u64 / boundary != command.range.lba.0 / boundary);
            let is_atomic = matches!(command.op, Op::Write { .. }) && command.range.nlb <= unit && !crosses;
            let number = index as u64 + 1;
            let is_there = blocks.iter().any(|block| state[*block] == Some(number));
            if !is_atomic || !is_there || command.is_lost {
                continue;
            }
            for block in blocks {
                let explains = |version: &Version<u64>| {
                    let is_older = version.completed.is_some_and(|completed| completed < command.submitted);
                    !is_older && state[block].is_none_or(|number| version.content == number)
                };
                if !self.histories[block].versions.iter().any(explains) {
                    return Err(format!(
                        "atomic write {number} is torn: block {block} holds {:?}",
                        state[block]
                    ));
                }
            }
        }
        Ok(())
    }
}

fn blocks(range: LbaRange) -> std::ops::Range<usize> {
    range.lba.0 as usize..range.end().0 as usize
}

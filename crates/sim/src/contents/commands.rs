//! [`Contents`]: state changes by the commands of a drive: arrival, answer, destaging, failure.

use std::io;

use plumb_block::{Bytes, Lba, LbaRange, Op};
use plumb_crash::{Kind, Landing, Promise, Window, below};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::content::Content;
use super::file::BackingFile;
use super::medium::Medium;
use super::shape::{Backing, BackingError, ContentsError, Data, Shape};
use crate::command::CommandId;

/// Average number of later commands until a failed write lands.
const LATE_ODDS: u64 = 8;

/// The contents of one drive.
#[derive(Debug)]
pub struct Contents {
    pub(super) block_bytes: usize,
    pub(super) blocks: u64,
    pub(super) window: Window<Content>,
    pub(super) medium: Medium,
    chance: Xoshiro256PlusPlus,
    /// Failed commands that may still land.
    late: Vec<u64>,
    keeps_nothing: bool,
    /// True if any block was ever made unreadable. Otherwise reads need not check for that.
    pub(super) has_unreadable: bool,
}

impl Contents {
    /// Creates the contents of a new drive: all zeroes, or the contents of the backing file.
    ///
    /// # Errors
    /// If the shape is invalid.
    pub fn new(shape: Shape, promise: Promise, backing: Backing) -> Result<Self, ContentsError> {
        let Shape { logical_block, blocks } = shape.check()?;
        let block_bytes = logical_block.0 as usize;
        Ok(Self {
            block_bytes,
            blocks,
            window: Window::new(promise),
            keeps_nothing: matches!(backing, Backing::Nothing),
            medium: Medium::new(block_bytes, backing),
            chance: Xoshiro256PlusPlus::seed_from_u64(0),
            late: Vec::new(),
            has_unreadable: false,
        })
    }

    /// Sets the seed for random choices between cuts: which of two concurrent writes is visible, the fate of
    /// a failed one, the effect of a discard without a guarantee.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        self
    }

    /// Accepts a write, discard, write of zeroes or flush, which is then in flight and may land. Reads, empty
    /// ranges and ranges outside the drive are ignored, as are writes whose data has another length than the
    /// range. A submitted command is neither visible nor durable.
    pub fn submit(&mut self, id: CommandId, op: Op, range: LbaRange, data: Data<'_>) {
        if self.keeps_nothing || op == Op::Read {
            return;
        }
        if op == Op::Flush {
            return self.window.submit_flush(id.0);
        }
        self.land_late_one();
        let is_inside = range.lba.0.checked_add(range.nlb).is_some_and(|end| end <= self.blocks);
        if !is_inside || range.nlb == 0 {
            return;
        }
        let (kind, content) = match (op, data) {
            (Op::Write { fua }, Data::Pattern(pattern)) => {
                (Kind::Write { fua }, Content::pattern(range.lba, pattern))
            }
            (Op::Write { fua }, Data::Bytes(bytes))
                if bytes.len() as u64 == range.nlb * self.block_bytes as u64 =>
            {
                (Kind::Write { fua }, Content::bytes(range.lba, bytes))
            }
            (Op::WriteZeroes { fua, no_hole, .. }, _) => {
                (Kind::WriteZeroes { fua }, if no_hole { Content::Zeroes } else { Content::Hole })
            }
            // Without a guarantee of zeroes a drive may ignore a discard; this one sometimes does.
            (Op::Discard, _) if self.window.promise().discard_zeroes || below(&mut self.chance, 4) > 0 => {
                (Kind::Discard { zeroes: true }, Content::Hole)
            }
            _ => return,
        };
        self.window.submit(id.0, kind, range, content);
    }

    /// Records the successful answer to a command. The command becomes visible, and durable if it is FUA or
    /// the promise is not volatile. A flush makes everything durable that completed before its submission, if
    /// flushes are kept. Durable data is in the backing file when this returns.
    ///
    /// # Errors
    /// If the backing file failed; then answer the command with an error instead.
    pub fn complete(&mut self, id: CommandId) -> Result<(), BackingError> {
        self.land(id.0);
        self.medium.drain();
        self.backing_failed().map_or(Ok(()), Err)
    }

    /// Records that a command takes effect.
    fn land(&mut self, id: u64) {
        // Either of two concurrent commands may be the last: each lands at its submission or at its answer.
        let is_early = self.chance.next_u64() >> 63 == 0;
        let landing = if is_early { Landing::AtSubmission } else { Landing::AtCompletion };
        let Self { window, medium, .. } = self;
        window.complete(id, landing, &mut |range, content| medium.store(range, content));
    }

    /// Records that the drive has destaged all data of an answered command, which is then durable; an
    /// unanswered command becomes durable with its answer. No effect if it is durable already.
    ///
    /// A failure of the backing file is kept and returned by the next [`complete`](Self::complete).
    pub fn persist(&mut self, id: CommandId) {
        self.persist_all(&[id]);
    }

    /// Makes all data of several answered commands durable, in order: see [`persist`](Self::persist).
    pub(crate) fn persist_all(&mut self, ids: &[CommandId]) {
        let Self { window, medium, .. } = self;
        for id in ids {
            window.destage(id.0, &mut |range, content| medium.store(range, content));
        }
        medium.drain();
    }

    /// Records that the command failed or is not answered. Its fate is random: it lands now, later or never,
    /// or each of its blocks lands, does not, or becomes unreadable. Its data is at risk until flushed,
    /// whether visible or not. A failed flush covers nothing. A command that completed inside the drive but
    /// failed for the host, because its flush did, has landed.
    pub fn fail(&mut self, id: CommandId) {
        let id = id.0;
        self.window.fail(id);
        let Some(command) = self.window.command(id) else { return };
        if command.span.is_completed() {
            return;
        }
        let is_write = matches!(command.kind, Kind::Write { .. });
        match below(&mut self.chance, 4) {
            0 => self.land(id),
            1 => self.window.withdraw(id),
            2 if is_write => self.land_in_parts(id),
            _ => self.late.push(id),
        }
        self.medium.drain();
    }

    /// Makes a failed command land, at random.
    fn land_late_one(&mut self) {
        if self.late.is_empty() || below(&mut self.chance, LATE_ODDS) > 0 {
            return;
        }
        let place = below(&mut self.chance, self.late.len() as u64) as usize;
        let id = self.late.swap_remove(place);
        self.land(id);
        // Write the buffered bytes to the backing file, since reads do not see them.
        self.medium.drain();
    }

    /// Lands a failed write in parts: each block lands, does not, or becomes unreadable.
    fn land_in_parts(&mut self, id: u64) {
        let Some(command) = self.window.command(id) else { return };
        let content = command.content.clone();
        let mut parts: Vec<(LbaRange, Content)> = Vec::new();
        for lba in command.range.lba.0..command.range.end().0 {
            let content = match below(&mut self.chance, 4) {
                0 | 1 => content.clone(),
                2 => Content::Unreadable,
                _ => continue,
            };
            match parts.last_mut() {
                Some((range, before)) if range.end().0 == lba && *before == content => range.nlb += 1,
                _ => parts.push((LbaRange::new(Lba(lba), 1), content)),
            }
        }
        self.has_unreadable |= parts.iter().any(|(_, content)| *content == Content::Unreadable);
        for part in self.window.divide(id, parts) {
            self.land(part);
        }
    }

    /// Changes the promise from now on. Data at risk stays so until persisted or flushed: a drive that
    /// disables its cache destages first.
    pub const fn set_promise(&mut self, promise: Promise) {
        self.window.set_promise(promise);
    }

    /// Returns the promise.
    pub const fn promise(&self) -> Promise {
        self.window.promise()
    }

    /// Returns the amount of answered data that is not durable; data written twice counts twice.
    pub const fn at_risk(&self) -> Bytes {
        Bytes(self.window.at_risk_blocks() * self.block_bytes as u64)
    }

    /// Makes the backing file durable on the host. No effect without a file.
    ///
    /// # Errors
    /// Fails with the first failure of the file, permanently.
    pub fn sync_backing(&mut self) -> io::Result<()> {
        self.medium.file.as_mut().map_or(Ok(()), BackingFile::sync)
    }

    /// Returns the first failure of the backing file.
    pub fn backing_failed(&self) -> Option<BackingError> {
        self.medium.file.as_ref().and_then(|file| file.failed)
    }

    /// Drops commands in flight after a power cut.
    pub(super) fn forget_commands(&mut self) {
        self.window.clear();
        self.late.clear();
        self.medium.drain();
    }
}

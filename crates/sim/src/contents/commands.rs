//! [`Contents`]: the commands of a drive as they arrive, are answered, are destaged, or fail.

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

/// One in so many commands that come after it lets a failed write land.
const LATE_ODDS: u64 = 8;

/// The contents of one drive.
#[derive(Debug)]
pub struct Contents {
    pub(super) block_bytes: usize,
    pub(super) blocks: u64,
    pub(super) window: Window<Content>,
    pub(super) medium: Medium,
    chance: Xoshiro256PlusPlus,
    /// Failed commands that have not landed yet.
    late: Vec<u64>,
    keeps_nothing: bool,
    /// True if any block was ever made unreadable: if not, nobody has to look for one.
    pub(super) has_unreadable: bool,
}

impl Contents {
    /// Creates the contents of a new drive: all zeroes, or what the backing file holds.
    ///
    /// # Errors
    /// If there can be no such drive.
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

    /// With another seed for what is drawn between cuts: which of two writes in flight together is visible,
    /// what becomes of a failed one, whether a discard without promise does anything.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        self
    }

    /// Takes a write, a discard, a write of zeroes or a flush: it is in flight from now on and may land.
    /// Reads, empty ranges and ranges outside the drive are ignored, as are writes whose data does not have
    /// the length of the range. Visible: no. Durable: no.
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
            // Without the promise of zeroes a drive may ignore a discard, and this one does so now and then.
            (Op::Discard, _) if self.window.promise().discard_zeroes || below(&mut self.chance, 4) > 0 => {
                (Kind::Discard { zeroes: true }, Content::Hole)
            }
            _ => return,
        };
        self.window.submit(id.0, kind, range, content);
    }

    /// Notes that the command is answered as done. Visible from now on; durable if it is FUA or the promise
    /// is not volatile. For a flush: what completed before it was submitted is durable from now on, if
    /// flushes are kept. What is durable is in the backing file when this returns.
    ///
    /// # Errors
    /// If the backing file failed: the command must be answered with an error instead.
    pub fn complete(&mut self, id: CommandId) -> Result<(), BackingError> {
        self.land(id.0);
        self.medium.drain();
        self.backing_failed().map_or(Ok(()), Err)
    }

    /// Notes that a command takes effect.
    fn land(&mut self, id: u64) {
        // Either of two commands in flight together may be the last: each lands at its submission or at its
        // answer.
        let is_early = self.chance.next_u64() >> 63 == 0;
        let landing = if is_early { Landing::AtSubmission } else { Landing::AtCompletion };
        let Self { window, medium, .. } = self;
        window.complete(id, landing, &mut |range, content| medium.store(range, content));
    }

    /// Notes that the drive has destaged all that an answered command carried: it is durable. Of a command
    /// that is not answered yet: durable when it is. Nothing happens if it is durable already.
    ///
    /// A failure of the backing file stays and comes with the next [`complete`](Self::complete).
    pub fn persist(&mut self, id: CommandId) {
        self.persist_all(&[id]);
    }

    /// Makes all that several answered commands carried durable, one after the other: see
    /// [`persist`](Self::persist).
    pub fn persist_all(&mut self, ids: &[CommandId]) {
        let Self { window, medium, .. } = self;
        for id in ids {
            window.destage(id.0, &mut |range, content| medium.store(range, content));
        }
        medium.drain();
    }

    /// Notes that the command failed or is not answered. What becomes of it is drawn: it lands now, later or
    /// never, or each of its blocks lands, does not, or becomes unreadable. Visible or not, it is at risk as
    /// long as it is not flushed. A flush that failed covers nothing. A command that was answered to the
    /// drive, and is not to the host because its flush failed, is where it is.
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

    /// Lets a failed command land, now and then.
    fn land_late_one(&mut self) {
        if self.late.is_empty() || below(&mut self.chance, LATE_ODDS) > 0 {
            return;
        }
        let place = below(&mut self.chance, self.late.len() as u64) as usize;
        let id = self.late.swap_remove(place);
        self.land(id);
        // A read that comes next must not find it still being collected.
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

    /// Changes what is kept from now on. What is at risk stays so until it is persisted or flushed: a drive
    /// that turns its cache off destages first.
    pub const fn set_promise(&mut self, promise: Promise) {
        self.window.set_promise(promise);
    }

    /// Returns the promises that are kept.
    pub const fn promise(&self) -> Promise {
        self.window.promise()
    }

    /// Returns how much was answered and is not durable; what was written twice counts twice.
    pub const fn at_risk(&self) -> Bytes {
        Bytes(self.window.at_risk_blocks() * self.block_bytes as u64)
    }

    /// Waits until the backing file is durable on the host; nothing without one.
    ///
    /// # Errors
    /// The first failure of the file, now and ever after.
    pub fn sync_backing(&mut self) -> io::Result<()> {
        self.medium.file_mut().map_or(Ok(()), BackingFile::sync)
    }

    /// Returns the first failure of the backing file.
    pub fn backing_failed(&self) -> Option<BackingError> {
        self.medium.file.as_ref().and_then(|file| file.failed)
    }

    /// Forgets what was in flight: the power was cut.
    pub(super) fn forget_commands(&mut self) {
        self.window.clear();
        self.late.clear();
        self.medium.drain();
    }
}

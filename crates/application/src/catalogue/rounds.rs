//! copy and unpack: trees of files are written one after the other. Removing an old tree is not measured.

use plumb_block::Nanos;

use super::file_set::PIECE;
use super::tree::Tree;
use crate::chance::Chance;
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};

/// Mean size of copied files in bytes.
const COPIED_MEAN: u64 = 64 << 10;
/// Mean size of unpacked files in bytes.
const UNPACKED_MEAN: u64 = 16 << 10;

pub(super) struct Rounds {
    threads: u32,
    files: u64,
    seed: u64,
    content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Files read from another tree.
    Copied,
    /// New files.
    Unpacked(Durable),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    Never,
    AtTheEnd,
    Each,
}

struct Thread<'a> {
    plan: &'a Rounds,
    number: u32,
    round: u64,
    next: u64,
    /// Start of the first file that is not durable yet.
    pending: Option<Nanos>,
}

impl Rounds {
    pub(super) fn copy(setting: &Setting) -> Self {
        Self::new(setting, 2000, Content::Copied)
    }

    pub(super) fn unpack(setting: &Setting) -> Self {
        let durable = match setting.variant {
            "syncfs" => Durable::AtTheEnd,
            "fsync-each" => Durable::Each,
            _ => Durable::Never,
        };
        Self::new(setting, 10_000, Content::Unpacked(durable))
    }

    fn new(setting: &Setting, files: u64, content: Content) -> Self {
        Self { threads: setting.threads, files: setting.scaled(files, 1), seed: setting.seed, content }
    }

    fn source(thread: u32) -> Tree {
        Tree::spread(format!("source{thread}"), 100, 1)
    }

    fn copied_size(&self, thread: u32, number: u64) -> u64 {
        Chance::from_seed(self.seed, u64::from(thread) << 32 | number).gamma(COPIED_MEAN)
    }
}

impl Program for Rounds {
    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        if self.content != Content::Copied {
            return Ok(());
        }
        preparation.expect(u64::from(self.threads) * self.files * COPIED_MEAN);
        for thread in 0..self.threads {
            let tree = Self::source(thread);
            for number in 0..self.files {
                tree.make_directories(hand, number)?;
                preparation.file(hand, &tree.file(number), self.copied_size(thread, number))?;
            }
        }
        Ok(())
    }

    fn actor(&self, number: u32, _hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        Ok(Box::new(Thread { plan: self, number, round: 0, next: 0, pending: None }))
    }
}

impl Thread<'_> {
    fn tree(&self, round: u64) -> Tree {
        let what = if self.plan.content == Content::Copied { "copy" } else { "unpacked" };
        Tree::spread(format!("{what}{}-{round}", self.number), 100, 1)
    }

    /// Starts another round. Removes the copy that is complete, or the unpacked tree before the latest one.
    fn next_round(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        self.next = 0;
        self.round += 1;
        let kept = u64::from(self.plan.content != Content::Copied);
        let Some(old) = self.round.checked_sub(1 + kept) else { return Ok(()) };
        let tree = self.tree(old);
        hand.unmeasured(|hand| (0..self.plan.files).try_for_each(|number| hand.unlink(&tree.file(number))))
    }
}

impl Actor for Thread<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        if self.next == self.plan.files {
            self.finish(hand)?;
            self.next_round(hand)?;
        }
        let (number, tree) = (self.next, self.tree(self.round));
        let is_copied = self.plan.content == Content::Copied;
        let size = if is_copied {
            self.plan.copied_size(self.number, number)
        } else {
            hand.chance.gamma(UNPACKED_MEAN)
        };
        self.next += 1;
        let began = hand.begin();
        self.pending.get_or_insert(began);
        tree.make_directories(hand, number)?;
        let source = is_copied.then(|| hand.open(&Rounds::source(self.number).file(number))).transpose()?;
        let file = hand.create(&tree.file(number))?;
        for offset in (0..size).step_by(PIECE as usize) {
            let piece = PIECE.min(size - offset);
            if let Some(source) = source {
                hand.read(source, offset, piece)?;
                hand.write(file, offset, piece)?;
            } else {
                hand.append(file, piece)?;
            }
        }
        if self.plan.content == Content::Unpacked(Durable::Each) {
            hand.fsync(file)?;
            hand.durable_since(began);
        }
        if let Some(source) = source {
            hand.close(source)?;
        }
        hand.close(file)?;
        hand.end(began);
        Ok(())
    }

    /// Makes the files of the round durable, if the variant syncs at its end.
    fn finish(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let pending = self.pending.take();
        if let Some(began) = pending.filter(|_| self.plan.content == Content::Unpacked(Durable::AtTheEnd)) {
            hand.syncfs()?;
            hand.durable_since(began);
        }
        Ok(())
    }
}

//! varmail and fileserver: a set of files of which some exist, as in Filebench. Threads delete, create, read
//! and append.
//!
//! Filebench lets only one thread at a time use a file. Here each thread has its own part of the files, in
//! shared directories, so that its calls follow from its own choices alone.

use std::collections::HashMap;

use plumb_block::FileId;

use super::tree::Tree;
use crate::chance::Chance;
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};

/// Definition of a file set.
#[derive(Debug, Clone)]
pub(super) struct FileSet {
    tree: Tree,
    /// Number of files, existing or not.
    count: u64,
    /// Mean size of new files in bytes.
    size_mean: u64,
    threads: u32,
    seed: u64,
    cycle: Cycle,
}

/// Sequence of operations in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cycle {
    /// Delete; create; read and append; read. Each write is followed by an fsync.
    Mail,
    /// Create; append; read; delete. Nothing is synced.
    Users,
}

/// Number of files out of five that exist at the start: Filebench's `prealloc=80`.
const EXISTING_OF_FIVE: u64 = 4;
/// Length of a read or write: Filebench's `iosize=1m`.
pub(super) const PIECE: u64 = 1 << 20;
/// Longest append: Filebench's `meanappendsize=16k`, which is a maximum in fact. The mean is half of it.
const APPEND_MAX: u64 = 16 << 10;
/// Constant that separates the random streams of file sizes from those of threads.
const SIZES: u64 = 0x7369_7a65_0000_0000;

impl FileSet {
    pub(super) fn varmail(setting: &Setting) -> Self {
        Self::new(setting, Tree::flat("mail"), 1000, 16 << 10, Cycle::Mail)
    }

    pub(super) fn fileserver(setting: &Setting) -> Self {
        Self::new(setting, Tree::spread("files", 20, 2), 10_000, 128 << 10, Cycle::Users)
    }

    fn new(setting: &Setting, tree: Tree, count: u64, size_mean: u64, cycle: Cycle) -> Self {
        let Setting { threads, seed, .. } = *setting;
        Self { tree, count: setting.scaled(count, 5 * u64::from(threads)), size_mean, threads, seed, cycle }
    }

    fn exists_at_first(&self, number: u64) -> bool {
        (number / u64::from(self.threads)) % 5 < EXISTING_OF_FIVE
    }

    fn first_size(&self, number: u64) -> u64 {
        Chance::from_seed(self.seed ^ SIZES, number).gamma(self.size_mean)
    }
}

impl Program for FileSet {
    /// Creates the directories, and the files that exist at the start.
    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(self.count * self.size_mean * EXISTING_OF_FIVE / 5);
        for number in 0..self.count {
            self.tree.make_directories(hand, number)?;
            if self.exists_at_first(number) {
                preparation.file(hand, &self.tree.file(number), self.first_size(number))?;
            }
        }
        Ok(())
    }

    /// Returns a thread with its part of the files: every `threads`th.
    fn actor(&self, thread: u32, _hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let numbers = (u64::from(thread)..self.count).step_by(self.threads as usize);
        let (existing, missing) = numbers.partition(|number| self.exists_at_first(*number));
        let mut part = Part { set: self, sizes: HashMap::new(), existing, missing };
        part.sizes = part.existing.iter().map(|number| (*number, self.first_size(*number))).collect();
        Ok(Box::new(part))
    }
}

/// Files of one thread.
#[derive(Debug)]
struct Part<'a> {
    set: &'a FileSet,
    sizes: HashMap<u64, u64>,
    existing: Vec<u64>,
    missing: Vec<u64>,
}

impl Actor for Part<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let began = hand.begin();
        match self.set.cycle {
            Cycle::Mail => {
                self.delete(hand)?;
                let size = hand.chance.between(1, APPEND_MAX);
                self.create(hand, size)?;
                self.with_any(hand, |part, hand, number, file| {
                    part.read_whole(hand, number, file)?;
                    part.append(hand, number, file)
                })?;
                self.with_any(hand, Self::read_whole)?;
            }
            Cycle::Users => {
                let size = hand.chance.gamma(self.set.size_mean);
                self.create(hand, size)?;
                self.with_any(hand, Part::append)?;
                self.with_any(hand, Self::read_whole)?;
                self.delete(hand)?;
            }
        }
        hand.end(began);
        Ok(())
    }
}

impl Part<'_> {
    /// Deletes a random existing file; does nothing if there is none.
    fn delete(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let Some(number) = take_any(&mut self.existing, hand) else { return Ok(()) };
        self.missing.push(number);
        self.sizes.remove(&number);
        hand.unlink(&self.set.tree.file(number))
    }

    /// Creates a random missing file, and writes it.
    fn create(&mut self, hand: &mut Hand<'_>, size: u64) -> Step<()> {
        let Some(number) = take_any(&mut self.missing, hand) else { return Ok(()) };
        self.existing.push(number);
        self.sizes.insert(number, size);
        let began = hand.begin();
        let file = hand.create(&self.set.tree.file(number))?;
        for offset in (0..size).step_by(PIECE as usize) {
            hand.append(file, PIECE.min(size - offset))?;
        }
        if self.set.cycle == Cycle::Mail {
            hand.fsync(file)?;
            hand.durable_since(began);
        }
        hand.close(file)
    }

    /// Opens a random existing file, runs `work` on it, and closes it; does nothing if there is none.
    fn with_any(
        &mut self,
        hand: &mut Hand<'_>,
        work: impl FnOnce(&mut Self, &mut Hand<'_>, u64, FileId) -> Step<()>,
    ) -> Step<()> {
        if self.existing.is_empty() {
            return Ok(());
        }
        let number = self.existing[hand.chance.below(self.existing.len() as u64) as usize];
        let file = hand.open(&self.set.tree.file(number))?;
        work(self, hand, number, file)?;
        hand.close(file)
    }

    fn read_whole(&mut self, hand: &mut Hand<'_>, number: u64, file: FileId) -> Step<()> {
        let size = self.sizes.get(&number).copied().unwrap_or(0);
        for offset in (0..size).step_by(PIECE as usize) {
            hand.read(file, offset, PIECE.min(size - offset))?;
        }
        Ok(())
    }

    fn append(&mut self, hand: &mut Hand<'_>, number: u64, file: FileId) -> Step<()> {
        let length = hand.chance.between(1, APPEND_MAX);
        let began = hand.begin();
        hand.append(file, length)?;
        *self.sizes.entry(number).or_default() += length;
        if self.set.cycle == Cycle::Mail {
            hand.fsync(file)?;
            hand.durable_since(began);
        }
        Ok(())
    }
}

/// Removes a random element of `numbers`, and returns it.
fn take_any(numbers: &mut Vec<u64>, hand: &mut Hand<'_>) -> Option<u64> {
    if numbers.is_empty() {
        return None;
    }
    let place = hand.chance.below(numbers.len() as u64) as usize;
    Some(numbers.swap_remove(place))
}

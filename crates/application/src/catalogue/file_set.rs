//! A set of files of which some exist, as Filebench has them: threads delete, make, read and extend.
//!
//! Filebench keeps a file that one thread works on from all others. Here each thread has its own part of the files, in
//! directories that all share, so that what a thread does follows from its own choices alone.

use std::collections::HashMap;

use super::tree::Tree;
use crate::chance::Chance;
use crate::engine::{Hand, Preparation, Step};

/// What a set consists of.
#[derive(Debug, Clone)]
pub(super) struct FileSet {
    pub(super) tree: Tree,
    /// How many names there are.
    pub(super) count: u64,
    /// The mean size of new files.
    pub(super) size_mean: u64,
    pub(super) threads: u32,
    pub(super) seed: u64,
}

/// Of five names how many exist at first: Filebench's `prealloc=80`.
const EXISTING_OF_FIVE: u64 = 4;
/// Reads and writes are in pieces of this: Filebench's `iosize=1m`.
pub(super) const PIECE: u64 = 1 << 20;
/// The mean of appends is half of this: Filebench's `meanappendsize=16k` is the most that is appended.
const APPEND_MAX: u64 = 16 << 10;
/// Sets the streams of file sizes apart from those of threads.
const SIZES: u64 = 0x7369_7a65_0000_0000;

impl FileSet {
    /// Makes the directories, and the files that exist at first.
    pub(super) fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(self.count * self.size_mean * EXISTING_OF_FIVE / 5);
        for number in 0..self.count {
            for directory in self.tree.new_directories(number) {
                hand.create_directory(&directory)?;
            }
            if self.exists_at_first(number) {
                preparation.file(hand, &self.tree.file(number), self.first_size(number))?;
            }
        }
        Ok(())
    }

    /// A thread's part of the files: every `threads`th.
    pub(super) fn part(&self, thread: u32) -> Part<'_> {
        let numbers = (u64::from(thread)..self.count).step_by(self.threads as usize);
        let (existing, missing) = numbers.partition(|number| self.exists_at_first(*number));
        let mut part = Part { set: self, sizes: HashMap::new(), existing, missing };
        part.sizes = part.existing.iter().map(|number| (*number, self.first_size(*number))).collect();
        part
    }

    fn exists_at_first(&self, number: u64) -> bool {
        (number / u64::from(self.threads)) % 5 < EXISTING_OF_FIVE
    }

    fn first_size(&self, number: u64) -> u64 {
        Chance::of(self.seed ^ SIZES, number).gamma(self.size_mean)
    }
}

/// The files of one thread.
#[derive(Debug)]
pub(super) struct Part<'a> {
    set: &'a FileSet,
    sizes: HashMap<u64, u64>,
    existing: Vec<u64>,
    missing: Vec<u64>,
}

/// Whether what was appended is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Visible,
    Durable,
}

impl Part<'_> {
    /// Deletes one of the files that exist; nothing if there is none.
    pub(super) fn delete(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let Some(number) = take_any(&mut self.existing, hand) else { return Ok(()) };
        self.missing.push(number);
        self.sizes.remove(&number);
        hand.unlink(&self.set.tree.file(number))
    }

    /// Makes one of the files that do not exist and writes as much into it as one append.
    pub(super) fn create_appended(&mut self, hand: &mut Hand<'_>, delivery: Delivery) -> Step<()> {
        let size = hand.chance.between(1, APPEND_MAX);
        self.create(hand, size, delivery)
    }

    /// Makes one of the files that do not exist and writes it whole.
    pub(super) fn create_whole(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let size = hand.chance.gamma(self.set.size_mean);
        self.create(hand, size, Delivery::Visible)
    }

    fn create(&mut self, hand: &mut Hand<'_>, size: u64, delivery: Delivery) -> Step<()> {
        let Some(number) = take_any(&mut self.missing, hand) else { return Ok(()) };
        self.existing.push(number);
        self.sizes.insert(number, size);
        let began = hand.begin();
        let file = hand.create(&self.set.tree.file(number))?;
        for offset in (0..size).step_by(PIECE as usize) {
            hand.append(file, PIECE.min(size - offset))?;
        }
        if delivery == Delivery::Durable {
            hand.fsync(file)?;
            hand.durable_since(began);
        }
        hand.close(file)
    }

    /// Reads one of the files whole and appends to it.
    pub(super) fn read_and_append(&mut self, hand: &mut Hand<'_>, delivery: Delivery) -> Step<()> {
        let Some((number, file)) = self.open_any(hand)? else { return Ok(()) };
        self.read_whole(hand, number, file)?;
        self.append_to(hand, number, file, delivery)?;
        hand.close(file)
    }

    /// Appends to one of the files.
    pub(super) fn append(&mut self, hand: &mut Hand<'_>, delivery: Delivery) -> Step<()> {
        let Some((number, file)) = self.open_any(hand)? else { return Ok(()) };
        self.append_to(hand, number, file, delivery)?;
        hand.close(file)
    }

    /// Reads one of the files whole.
    pub(super) fn read(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let Some((number, file)) = self.open_any(hand)? else { return Ok(()) };
        self.read_whole(hand, number, file)?;
        hand.close(file)
    }

    fn open_any(&mut self, hand: &mut Hand<'_>) -> Step<Option<(u64, plumb_block::FileId)>> {
        if self.existing.is_empty() {
            return Ok(None);
        }
        let number = self.existing[hand.chance.below(self.existing.len() as u64) as usize];
        Ok(Some((number, hand.open(&self.set.tree.file(number))?)))
    }

    fn read_whole(&self, hand: &mut Hand<'_>, number: u64, file: plumb_block::FileId) -> Step<()> {
        let size = self.sizes.get(&number).copied().unwrap_or(0);
        for offset in (0..size).step_by(PIECE as usize) {
            hand.read(file, offset, PIECE.min(size - offset))?;
        }
        Ok(())
    }

    fn append_to(
        &mut self,
        hand: &mut Hand<'_>,
        number: u64,
        file: plumb_block::FileId,
        delivery: Delivery,
    ) -> Step<()> {
        let length = hand.chance.between(1, APPEND_MAX);
        let began = hand.begin();
        hand.append(file, length)?;
        *self.sizes.entry(number).or_default() += length;
        if delivery == Delivery::Durable {
            hand.fsync(file)?;
            hand.durable_since(began);
        }
        Ok(())
    }
}

/// One of `numbers`, taken out.
fn take_any(numbers: &mut Vec<u64>, hand: &mut Hand<'_>) -> Option<u64> {
    if numbers.is_empty() {
        return None;
    }
    let place = hand.chance.below(numbers.len() as u64) as usize;
    Some(numbers.swap_remove(place))
}

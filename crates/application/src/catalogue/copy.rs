//! copy: a tree of files is copied.

use plumb_block::Bytes;

use super::file_set::PIECE;
use super::tree::Tree;
use crate::chance::Chance;
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "copy",
    summary: "copy a tree of 2,000 files, without sync",
    pattern: "One thread opens each of 2,000 files, 100 to a directory, mean 64 KiB (gamma, 1.5), reads it whole, \
              writes it into a new file in another tree, and closes both. Nothing is made durable. A transaction is \
              a file. A longer run copies again; removing the old copy is not measured.",
    provenance: Provenance::Modelled,
    source: "How cp and file managers copy. Estimated: the number of files and their sizes. This is no part of \
             WinBench or any other benchmark, and its figures are equivalent to none of theirs.",
    leaves_out: "The source was just written, so that it is read from memory; reflinks and copy_file_range, which \
                 modern tools use; owners, modes and times of files.",
    criteria: &[],
    variants: &[Variant { name: "no-sync", summary: "nothing is made durable" }],
    extent: Extent::Tree(FILES),
    work: Work::Files(FileWork {
        program: |setting| Box::new(Copy::new(setting)),
        room: Bytes::mib(400),
        each_thread: true,
    }),
};

const FILES: u64 = 2000;
const SIZE_MEAN: u64 = 64 << 10;

struct Copy {
    threads: u32,
    files: u64,
    seed: u64,
}

struct Thread<'a> {
    plan: &'a Copy,
    number: u32,
    round: u64,
    next: u64,
}

impl Copy {
    fn new(setting: &Setting) -> Self {
        Self { threads: setting.threads_or(1), files: setting.scaled(FILES, 1), seed: setting.seed }
    }

    fn source(thread: u32) -> Tree {
        Tree::spread(format!("source{thread}"), 100, 1)
    }

    fn size(&self, thread: u32, number: u64) -> u64 {
        Chance::of(self.seed, u64::from(thread) << 32 | number).gamma(SIZE_MEAN)
    }
}

impl Program for Copy {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn call_bytes_max(&self) -> u64 {
        PIECE
    }

    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(u64::from(self.threads) * self.files * SIZE_MEAN);
        for thread in 0..self.threads {
            let tree = Self::source(thread);
            for number in 0..self.files {
                for directory in tree.new_directories(number) {
                    hand.create_directory(&directory)?;
                }
                preparation.file(hand, &tree.file(number), self.size(thread, number))?;
            }
        }
        Ok(())
    }

    fn actor(&self, number: u32, _hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        Ok(Box::new(Thread { plan: self, number, round: 0, next: 0 }))
    }
}

impl Thread<'_> {
    fn tree(&self, round: u64) -> Tree {
        Tree::spread(format!("copy{}-{round}", self.number), 100, 1)
    }

    /// Removes the files of the copy that is complete now, and begins another.
    fn next_round(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let tree = self.tree(self.round);
        self.next = 0;
        self.round += 1;
        hand.unmeasured(|hand| (0..self.plan.files).try_for_each(|number| hand.unlink(&tree.file(number))))
    }
}

impl Actor for Thread<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        if self.next == self.plan.files {
            self.next_round(hand)?;
        }
        let (number, tree) = (self.next, self.tree(self.round));
        let size = self.plan.size(self.number, number);
        self.next += 1;
        let began = hand.begin();
        for directory in tree.new_directories(number) {
            hand.create_directory(&directory)?;
        }
        let source = hand.open(&Copy::source(self.number).file(number))?;
        let copy = hand.create(&tree.file(number))?;
        for offset in (0..size).step_by(PIECE as usize) {
            let piece = PIECE.min(size - offset);
            hand.read(source, offset, piece)?;
            hand.write(copy, offset, piece)?;
        }
        hand.close(source)?;
        hand.close(copy)?;
        hand.end(began);
        Ok(())
    }
}

//! unpack: an archive of many small files is unpacked.

use plumb_block::{Bytes, Nanos};

use super::file_set::PIECE;
use super::tree::Tree;
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "unpack",
    summary: "unpack an archive of 10,000 small files; sync never, once, or for each",
    pattern: "One thread creates 10,000 files, 100 to a directory, mean 16 KiB (gamma, 1.5), writes each whole and \
              closes it. none: nothing is made durable. syncfs: one syncfs at the end, which is the time until all \
              is durable. fsync-each: fsync of each file before it is closed. A transaction is a file. A longer run \
              unpacks again beside it; removing the old tree is not measured.",
    provenance: Provenance::Modelled,
    source: "How tar, package managers and version control write. Estimated: the number of files and their sizes. \
             This is no part of WinBench or any other benchmark, and its figures are equivalent to none of theirs.",
    leaves_out: "Reading and decompressing the archive; owners, modes and times of files; with fsync-each the \
                 directories are not made durable.",
    criteria: &[],
    variants: &[
        Variant { name: "none", summary: "nothing is made durable" },
        Variant { name: "syncfs", summary: "everything is made durable once, at the end" },
        Variant { name: "fsync-each", summary: "each file is made durable before it is closed" },
    ],
    extent: Extent::Tree(FILES),
    work: Work::Files(FileWork {
        program: |setting| Box::new(Unpack::new(setting)),
        room: Bytes::mib(400),
        each_thread: true,
    }),
};

const FILES: u64 = 10_000;
const SIZE_MEAN: u64 = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    Never,
    AtTheEnd,
    Each,
}

struct Unpack {
    threads: u32,
    files: u64,
    durable: Durable,
}

struct Thread<'a> {
    plan: &'a Unpack,
    number: u32,
    round: u64,
    next: u64,
    /// When the first file was begun that is not durable yet.
    pending: Option<Nanos>,
}

impl Unpack {
    fn new(setting: &Setting) -> Self {
        let durable = match setting.variant {
            "syncfs" => Durable::AtTheEnd,
            "fsync-each" => Durable::Each,
            _ => Durable::Never,
        };
        Self { threads: setting.threads_or(1), files: setting.scaled(FILES, 1), durable }
    }
}

impl Program for Unpack {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn call_bytes_max(&self) -> u64 {
        PIECE
    }

    fn prepare(&self, _hand: &mut Hand<'_>, _preparation: &mut Preparation<'_>) -> Step<()> {
        Ok(())
    }

    fn actor(&self, number: u32, _hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        Ok(Box::new(Thread { plan: self, number, round: 0, next: 0, pending: None }))
    }
}

impl Thread<'_> {
    fn tree(&self, round: u64) -> Tree {
        Tree::spread(format!("unpacked{}-{round}", self.number), 100, 1)
    }

    /// Makes durable what the archive wrote, if that is due.
    fn end_round(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        if let Some(began) = self.pending.take().filter(|_| self.plan.durable == Durable::AtTheEnd) {
            hand.syncfs()?;
            hand.durable_since(began);
        }
        Ok(())
    }

    /// Removes the files of the tree before the one that is full now, and begins another.
    fn next_round(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        self.next = 0;
        self.round += 1;
        let Some(old) = self.round.checked_sub(2) else { return Ok(()) };
        let tree = self.tree(old);
        hand.unmeasured(|hand| (0..self.plan.files).try_for_each(|number| hand.unlink(&tree.file(number))))
    }
}

impl Actor for Thread<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        if self.next == self.plan.files {
            self.end_round(hand)?;
            self.next_round(hand)?;
        }
        let tree = self.tree(self.round);
        let size = hand.chance.gamma(SIZE_MEAN);
        let began = hand.begin();
        self.pending.get_or_insert(began);
        for directory in tree.new_directories(self.next) {
            hand.create_directory(&directory)?;
        }
        let file = hand.create(&tree.file(self.next))?;
        for offset in (0..size).step_by(PIECE as usize) {
            hand.append(file, PIECE.min(size - offset))?;
        }
        self.next += 1;
        if self.plan.durable == Durable::Each {
            hand.fsync(file)?;
            hand.durable_since(began);
        }
        hand.close(file)?;
        hand.end(began);
        Ok(())
    }

    fn finish(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        self.end_round(hand)
    }
}

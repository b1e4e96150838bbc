//! varmail: a mail spool of many small files, each delivery made durable.

use plumb_block::{Bytes, Nanos};

use super::file_set::{Delivery, FileSet, PIECE, Part};
use super::tree::Tree;
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "varmail",
    summary: "a mail server: 1,000 small files, 16 threads, an fsync for each delivery",
    pattern: "16 threads in one directory of 1,000 names, 80 % of which exist, mean 16 KiB (gamma, 1.5). A \
              transaction: delete a file; create one, append 1 B to 16 KiB, fsync; open one, read it, append 1 B to \
              16 KiB, fsync; open one, read it.",
    provenance: Provenance::Published,
    source: "Filebench, workload varmail.f, which is PostMark with threads. Estimated: nothing.",
    leaves_out: "Each thread has names of its own instead of sharing all; message boxes and locks of a real server.",
    criteria: &[],
    variants: &[Variant { name: "fsync", summary: "as Filebench does" }],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Files(FileWork {
        program: |setting| Box::new(Varmail::new(setting)),
        room: Bytes::mib(64),
        each_thread: false,
    }),
};

struct Varmail(FileSet);

struct Thread<'a>(Part<'a>);

impl Varmail {
    fn new(setting: &Setting) -> Self {
        let threads = setting.threads_or(16);
        Self(FileSet {
            tree: Tree::flat("mail"),
            count: setting.scaled(1000, 5 * u64::from(threads)),
            size_mean: 16 << 10,
            threads,
            seed: setting.seed,
        })
    }
}

impl Program for Varmail {
    fn threads(&self) -> u32 {
        self.0.threads
    }

    fn call_bytes_max(&self) -> u64 {
        PIECE
    }

    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        self.0.prepare(hand, preparation)
    }

    fn actor(&self, number: u32, _hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        Ok(Box::new(Thread(self.0.part(number))))
    }
}

impl Actor for Thread<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let began = hand.begin();
        self.0.delete(hand)?;
        self.0.create_appended(hand, Delivery::Durable)?;
        self.0.read_and_append(hand, Delivery::Durable)?;
        self.0.read(hand)?;
        hand.end(began);
        Ok(())
    }
}

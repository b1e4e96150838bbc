//! fileserver: many users of a file server, nothing made durable.

use plumb_block::{Bytes, Nanos};

use super::file_set::{Delivery, FileSet, PIECE, Part};
use super::tree::Tree;
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "fileserver",
    summary: "a file server: 10,000 files of 128 KiB, 50 threads, no sync",
    pattern: "50 threads on 10,000 names, 80 % of which exist, mean 128 KiB (gamma, 1.5), 20 to a directory. A \
              transaction: create a file and write it whole; open one and append 1 B to 16 KiB; open one and read it \
              whole; delete one. Nothing is made durable: with memory enough, this is the page cache.",
    provenance: Provenance::Published,
    source: "Filebench, workload fileserver.f, after SPECsfs. Estimated: nothing.",
    leaves_out: "The stat(2) at the end of Filebench's cycle; each thread has names of its own instead of sharing \
                 all, in directories that all share; the network.",
    criteria: &[],
    variants: &[Variant { name: "no-sync", summary: "as Filebench does" }],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Files(FileWork {
        program: |setting| Box::new(Fileserver::new(setting)),
        room: Bytes::gib(2),
        each_thread: false,
    }),
};

struct Fileserver(FileSet);

struct Thread<'a>(Part<'a>);

impl Fileserver {
    fn new(setting: &Setting) -> Self {
        let threads = setting.threads_or(50);
        Self(FileSet {
            tree: Tree::spread("files", 20, 2),
            count: setting.scaled(10_000, 5 * u64::from(threads)),
            size_mean: 128 << 10,
            threads,
            seed: setting.seed,
        })
    }
}

impl Program for Fileserver {
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
        self.0.create_whole(hand)?;
        self.0.append(hand, Delivery::Visible)?;
        self.0.read(hand)?;
        self.0.delete(hand)?;
        hand.end(began);
        Ok(())
    }
}

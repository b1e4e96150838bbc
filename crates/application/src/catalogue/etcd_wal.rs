//! etcd-wal: the test by which etcd's users judge a disk.

use std::path::PathBuf;

use plumb_block::{Bytes, FileId, Nanos};

use crate::criteria::{Criterion, Quantity, Statistic};
use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "etcd-wal",
    summary: "etcd's log: append 2,300 B, fdatasync; the 99th percentile must be below 10 ms",
    pattern: "One thread appends 2,300 B to a file through the page cache and calls fdatasync, until the file has \
              22 MiB; a longer run goes on in a new file.",
    provenance: Provenance::Published,
    source: "etcd's documentation names the limit (99th percentile of fdatasync below 10 ms); the pattern is the fio \
             job that its users check disks with (--fdatasync=1 --size=22m --bs=2300). Estimated: nothing.",
    leaves_out: "Files are not allocated in advance as etcd does (64 MB); the backend database, snapshots and \
                 compaction; the other members of a cluster.",
    criteria: &[Criterion {
        id: "etcd-fdatasync-p99",
        of: Quantity::Syncs,
        statistic: Statistic::PerMille(990),
        below: Nanos::millis(10),
        why: "etcd misses heartbeats and elects new leaders on slower disks",
    }],
    variants: &[Variant { name: "fdatasync", summary: "as the fio job does" }],
    extent: Extent::Transactions(WRITES),
    work: Work::Files(FileWork {
        program: |setting| Box::new(EtcdWal::new(setting)),
        room: Bytes::mib(44),
        each_thread: true,
    }),
};

const RECORD: u64 = 2300;
/// Whole records in 22 MiB.
const WRITES: u64 = (22 << 20) / RECORD;

struct EtcdWal {
    threads: u32,
}

struct Thread {
    number: u32,
    file: Option<FileId>,
    generation: u64,
    written: u64,
}

impl EtcdWal {
    fn new(setting: &Setting) -> Self {
        Self { threads: setting.threads_or(1) }
    }
}

impl Program for EtcdWal {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn prepare(&self, _hand: &mut Hand<'_>, _preparation: &mut Preparation<'_>) -> Step<()> {
        Ok(())
    }

    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let mut thread = Thread { number, file: None, generation: 0, written: 0 };
        thread.file = Some(hand.create(&thread.path())?);
        Ok(Box::new(thread))
    }
}

impl Thread {
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("{}-{:016x}.wal", self.number, self.generation))
    }

    /// A new file in place of the one that is full.
    fn roll(&mut self, hand: &mut Hand<'_>) -> Step<FileId> {
        let full = self.path();
        if let Some(file) = self.file.take() {
            hand.close(file)?;
        }
        self.generation += 1;
        self.written = 0;
        hand.unlink(&full)?;
        hand.create(&self.path())
    }
}

impl Actor for Thread {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let file = match self.file {
            Some(file) if self.written < WRITES => file,
            _ => hand.unmeasured(|hand| self.roll(hand))?,
        };
        self.file = Some(file);
        let began = hand.begin();
        hand.append(file, RECORD)?;
        hand.fdatasync(file)?;
        self.written += 1;
        hand.end_durable(began);
        Ok(())
    }
}

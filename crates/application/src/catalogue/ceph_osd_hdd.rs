//! ceph-osd-hdd: BlueStore's deferred writes.

use std::path::PathBuf;

use plumb_block::{Bytes, FileId, Nanos};

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "ceph-osd-hdd",
    summary: "Ceph on hard disks: small writes go to a log with a sync, and to their place later, in batches",
    pattern: "Direct I/O. A transaction appends a write of 4 to 60 KiB to a log and calls fdatasync: the client has \
              its answer. After 64 of them (batch-16: after 16) all are written to their places, random in 1 GiB, and \
              made durable by one fdatasync; that belongs to no transaction, but the next one waits for it.",
    provenance: Provenance::Published,
    source: "The defaults in Ceph's documentation: bluestore_prefer_deferred_size_hdd 64 KiB, \
             bluestore_deferred_batch_ops_hdd 64, _ssd 16. Estimated: the sizes (multiples of 4 KiB, each as likely), \
             the places, a log of 64 MiB that is used in turn.",
    leaves_out: "RocksDB's own records, compaction and checksums; replication; the batch is written between client \
                 writes and not beside them; files stand in for the raw device.",
    criteria: &[],
    variants: &[
        Variant { name: "batch-64", summary: "batches of 64, as for hard disks" },
        Variant { name: "batch-16", summary: "batches of 16, as for SSDs" },
    ],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Files(FileWork {
        program: |setting| Box::new(Osd::new(setting)),
        room: Bytes::mib(1100),
        each_thread: true,
    }),
};

const UNIT: u64 = 4096;
/// The largest write that is deferred: below 64 KiB.
const WRITE_UNITS_MAX: u64 = 15;
const LOG_UNITS: u64 = (64 << 20) / UNIT;

struct Osd {
    threads: u32,
    units: u64,
    batch: usize,
}

/// Something to write later, in units.
#[derive(Clone, Copy)]
struct Deferred {
    at: u64,
    units: u64,
}

struct Thread<'a> {
    plan: &'a Osd,
    log: FileId,
    log_end: u64,
    volume: FileId,
    deferred: Vec<Deferred>,
}

impl Osd {
    fn new(setting: &Setting) -> Self {
        Self {
            threads: setting.threads_or(1),
            units: setting.scaled((1 << 30) / UNIT, 2 * WRITE_UNITS_MAX),
            batch: if setting.variant == "batch-16" { 16 } else { 64 },
        }
    }

    fn log(number: u32) -> PathBuf {
        PathBuf::from(format!("log{number}"))
    }

    fn volume(number: u32) -> PathBuf {
        PathBuf::from(format!("volume{number}"))
    }
}

impl Program for Osd {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(u64::from(self.threads) * (LOG_UNITS + self.units) * UNIT);
        for number in 0..self.threads {
            preparation.file(hand, &Self::log(number), LOG_UNITS * UNIT)?;
            preparation.file(hand, &Self::volume(number), self.units * UNIT)?;
        }
        Ok(())
    }

    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let log = hand.open_direct(&Self::log(number))?;
        let volume = hand.open_direct(&Self::volume(number))?;
        Ok(Box::new(Thread { plan: self, log, log_end: 0, volume, deferred: Vec::new() }))
    }
}

impl Thread<'_> {
    /// Writes what was deferred to its places, and makes that durable.
    fn destage(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        for Deferred { at, units } in self.deferred.drain(..) {
            hand.write(self.volume, at * UNIT, units * UNIT)?;
        }
        hand.fdatasync(self.volume)
    }
}

impl Actor for Thread<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let units = hand.chance.between(1, WRITE_UNITS_MAX);
        let at = hand.chance.below(self.plan.units - units + 1);
        if self.log_end + units > LOG_UNITS {
            self.log_end = 0;
        }
        let began = hand.begin();
        hand.write(self.log, self.log_end * UNIT, units * UNIT)?;
        hand.fdatasync(self.log)?;
        hand.end_durable(began);
        self.log_end += units;
        self.deferred.push(Deferred { at, units });
        if self.deferred.len() >= self.plan.batch {
            self.destage(hand)?;
        }
        Ok(())
    }

    fn finish(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        self.destage(hand)
    }
}

//! defrag: extents are moved, and each move is recorded durably.

use std::path::PathBuf;

use plumb_block::{Bytes, FileId, Nanos};

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "defrag",
    summary: "move extents of 64 KiB to 1 MiB, each move made durable in two steps",
    pattern: "Direct I/O on one file of 1 GiB. A transaction moves an extent of 64 KiB to 1 MiB (every multiple of 64 \
              KiB as likely): read it, write it elsewhere, fdatasync; write a record of 4 KiB that says where it is \
              now, fdatasync.",
    provenance: Provenance::Modelled,
    source: "How defragmenters and log-structured stores move what is in use: copy, flush, then point to the copy. \
             Estimated: all sizes, and that every place is as likely. This is no part of WinBench or any other \
             benchmark, and its figures are equivalent to none of theirs.",
    leaves_out: "The file system's own records of extents; the writes go over extents that exist.",
    criteria: &[],
    variants: &[Variant { name: "flush", summary: "a flush after the extent and after the record" }],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Files(FileWork {
        program: |setting| Box::new(Defrag::new(setting)),
        room: Bytes::mib(1100),
        each_thread: true,
    }),
};

/// Extents are made of these.
const UNIT: u64 = 64 << 10;
const EXTENT_UNITS: u64 = 16;
const RECORD: u64 = 4096;
/// Records stand in the first megabyte.
const RECORDS: u64 = (1 << 20) / RECORD;

struct Defrag {
    threads: u32,
    units: u64,
}

struct Thread {
    units: u64,
    file: FileId,
}

impl Defrag {
    fn new(setting: &Setting) -> Self {
        let units = setting.scaled((1 << 30) / UNIT, 2 * EXTENT_UNITS);
        Self { threads: setting.threads_or(1), units }
    }

    fn path(number: u32) -> PathBuf {
        PathBuf::from(format!("volume{number}"))
    }
}

impl Program for Defrag {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn call_bytes_max(&self) -> u64 {
        EXTENT_UNITS * UNIT
    }

    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        let size = RECORDS * RECORD + self.units * UNIT;
        preparation.expect(u64::from(self.threads) * size);
        (0..self.threads).try_for_each(|number| preparation.file(hand, &Self::path(number), size))
    }

    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let file = hand.open_direct(&Self::path(number))?;
        Ok(Box::new(Thread { units: self.units, file }))
    }
}

impl Actor for Thread {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let units = hand.chance.between(1, EXTENT_UNITS);
        let place = |unit: u64| RECORDS * RECORD + unit * UNIT;
        let from = place(hand.chance.below(self.units - units + 1));
        let to = place(hand.chance.below(self.units - units + 1));
        let record = hand.chance.below(RECORDS) * RECORD;
        let began = hand.begin();
        hand.read(self.file, from, units * UNIT)?;
        hand.write(self.file, to, units * UNIT)?;
        hand.fdatasync(self.file)?;
        hand.write(self.file, record, RECORD)?;
        hand.fdatasync(self.file)?;
        hand.end_durable(began);
        Ok(())
    }
}

//! dbf-update: the file database of an accounting program.

use std::path::PathBuf;

use plumb_block::{Bytes, FileId, Nanos};

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};
use crate::profile::{Extent, FileWork, Profile, Provenance, Variant, Work};

pub(super) static PROFILE: Profile = Profile {
    name: "dbf-update",
    summary: "a file database (dBase, 1C): records, index nodes and headers changed in place",
    pattern: "A transaction changes, through the page cache: a record of 256 B at its place in the table, an index \
              node of 512 B at its place in the index, and the table's header of 32 B at its start. fsync: then \
              fsync of the table and of the index.",
    provenance: Provenance::Modelled,
    source: "The layout of dBase tables and compound indexes. Estimated: 200,000 records, 10,000 index nodes, \
             every record and node as likely as any other.",
    leaves_out: "Locks, splits of index nodes, memo files; the network share that such files often stand on.",
    criteria: &[],
    variants: &[
        Variant { name: "fsync", summary: "both files made durable after each record" },
        Variant { name: "none", summary: "nothing made durable: left to the kernel" },
    ],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Files(FileWork {
        program: |setting| Box::new(DbfUpdate::new(setting)),
        room: Bytes::mib(64),
        each_thread: true,
    }),
};

const RECORD: u64 = 256;
const NODE: u64 = 512;
const HEADER: u64 = 32;
/// Where the first record stands: after the header and the descriptions of the fields.
const FIRST_RECORD: u64 = 1024;

struct DbfUpdate {
    threads: u32,
    records: u64,
    nodes: u64,
    fsync: bool,
}

struct Thread<'a> {
    plan: &'a DbfUpdate,
    table: FileId,
    index: FileId,
}

impl DbfUpdate {
    fn new(setting: &Setting) -> Self {
        Self {
            threads: setting.threads_or(1),
            records: setting.scaled(200_000, 16),
            nodes: setting.scaled(10_000, 16),
            fsync: setting.variant == "fsync",
        }
    }

    fn table(number: u32) -> PathBuf {
        PathBuf::from(format!("table{number}.dbf"))
    }

    fn index(number: u32) -> PathBuf {
        PathBuf::from(format!("table{number}.cdx"))
    }
}

impl Program for DbfUpdate {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        let (table, index) = (FIRST_RECORD + self.records * RECORD, self.nodes * NODE);
        preparation.expect(u64::from(self.threads) * (table + index));
        for number in 0..self.threads {
            preparation.file(hand, &Self::table(number), table)?;
            preparation.file(hand, &Self::index(number), index)?;
        }
        Ok(())
    }

    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let table = hand.open(&Self::table(number))?;
        let index = hand.open(&Self::index(number))?;
        Ok(Box::new(Thread { plan: self, table, index }))
    }
}

impl Actor for Thread<'_> {
    fn turn(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        let record = hand.chance.below(self.plan.records);
        let node = hand.chance.below(self.plan.nodes);
        let began = hand.begin();
        hand.write(self.table, FIRST_RECORD + record * RECORD, RECORD)?;
        hand.write(self.index, node * NODE, NODE)?;
        hand.write(self.table, 0, HEADER)?;
        if !self.plan.fsync {
            hand.end(began);
            return Ok(());
        }
        hand.fsync(self.table)?;
        hand.fsync(self.index)?;
        hand.end_durable(began);
        Ok(())
    }
}

//! dbf-update: the file database of an accounting program. Records, index nodes and the header are updated in
//! place.

use std::path::PathBuf;

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};

const RECORD: u64 = 256;
const NODE: u64 = 512;
const HEADER: u64 = 32;
/// Offset of the first record, after the header and the field descriptions.
const FIRST_RECORD: u64 = 1024;

pub(super) struct DbfUpdate {
    threads: u32,
    records: u64,
    nodes: u64,
    fsync: bool,
}

impl DbfUpdate {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            threads: setting.threads,
            records: setting.scaled(200_000, 16),
            nodes: setting.scaled(10_000, 16),
            fsync: setting.variant == "fsync",
        }
    }
}

/// Returns the paths of the table and the index of a thread.
fn names(thread: u32) -> [PathBuf; 2] {
    ["dbf", "cdx"].map(|kind| PathBuf::from(format!("table{thread}.{kind}")))
}

impl Program for DbfUpdate {
    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        let (table, index) = (FIRST_RECORD + self.records * RECORD, self.nodes * NODE);
        preparation.expect(u64::from(self.threads) * (table + index));
        for [table_name, index_name] in (0..self.threads).map(names) {
            preparation.file(hand, &table_name, table)?;
            preparation.file(hand, &index_name, index)?;
        }
        Ok(())
    }

    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let [table, index] = names(number);
        let (table, index) = (hand.open(&table)?, hand.open(&index)?);
        Ok(Box::new(move |hand: &mut Hand<'_>| {
            let record = hand.chance.below(self.records);
            let node = hand.chance.below(self.nodes);
            let began = hand.begin();
            hand.write(table, FIRST_RECORD + record * RECORD, RECORD)?;
            hand.write(index, node * NODE, NODE)?;
            hand.write(table, 0, HEADER)?;
            if !self.fsync {
                hand.end(began);
                return Ok(());
            }
            hand.fsync(table)?;
            hand.fsync(index)?;
            hand.end_durable(began);
            Ok(())
        }))
    }
}

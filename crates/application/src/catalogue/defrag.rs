//! defrag: extents are moved, and each move is recorded durably.

use std::path::PathBuf;

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};

/// Unit of an extent's length, in bytes.
const UNIT: u64 = 64 << 10;
const EXTENT_UNITS: u64 = 16;
const RECORD: u64 = 4096;
/// Number of records, which fill the first megabyte.
const RECORDS: u64 = (1 << 20) / RECORD;

pub(super) struct Defrag {
    threads: u32,
    units: u64,
}

impl Defrag {
    pub(super) fn new(setting: &Setting) -> Self {
        let units = setting.scaled((1 << 30) / UNIT, 2 * EXTENT_UNITS);
        Self { threads: setting.threads, units }
    }
}

fn path(thread: u32) -> PathBuf {
    PathBuf::from(format!("volume{thread}"))
}

impl Program for Defrag {
    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        let size = RECORDS * RECORD + self.units * UNIT;
        preparation.expect(u64::from(self.threads) * size);
        (0..self.threads).try_for_each(|thread| preparation.file(hand, &path(thread), size))
    }

    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let file = hand.open_direct(&path(number))?;
        Ok(Box::new(move |hand: &mut Hand<'_>| {
            let units = hand.chance.between(1, EXTENT_UNITS);
            let place = |unit: u64| RECORDS * RECORD + unit * UNIT;
            let from = place(hand.chance.below(self.units - units + 1));
            let to = place(hand.chance.below(self.units - units + 1));
            let record = hand.chance.below(RECORDS) * RECORD;
            let began = hand.begin();
            hand.read(file, from, units * UNIT)?;
            hand.write(file, to, units * UNIT)?;
            hand.fdatasync(file)?;
            hand.write(file, record, RECORD)?;
            hand.fdatasync(file)?;
            hand.end_durable(began);
            Ok(())
        }))
    }
}

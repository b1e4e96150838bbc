//! ceph-osd-hdd: deferred writes of Ceph's BlueStore.

use std::path::PathBuf;

use plumb_block::FileId;

use crate::engine::{Actor, Hand, Preparation, Program, Setting, Step};

const UNIT: u64 = 4096;
/// Largest deferred write: below 64 KiB.
const WRITE_UNITS_MAX: u64 = 15;
const LOG_UNITS: u64 = (64 << 20) / UNIT;

pub(super) struct Osd {
    threads: u32,
    units: u64,
    batch: usize,
}

struct Thread<'a> {
    plan: &'a Osd,
    log: FileId,
    log_end: u64,
    volume: FileId,
    /// Deferred writes: position and length, in units.
    deferred: Vec<(u64, u64)>,
}

impl Osd {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            threads: setting.threads,
            units: setting.scaled((1 << 30) / UNIT, 2 * WRITE_UNITS_MAX),
            batch: if setting.variant == "batch-16" { 16 } else { 64 },
        }
    }
}

/// Returns the paths of the log and the volume of a thread.
fn names(thread: u32) -> [PathBuf; 2] {
    ["log", "volume"].map(|what| PathBuf::from(format!("{what}{thread}")))
}

impl Program for Osd {
    fn prepare(&self, hand: &mut Hand<'_>, preparation: &mut Preparation<'_>) -> Step<()> {
        preparation.expect(u64::from(self.threads) * (LOG_UNITS + self.units) * UNIT);
        for [log, volume] in (0..self.threads).map(names) {
            preparation.file(hand, &log, LOG_UNITS * UNIT)?;
            preparation.file(hand, &volume, self.units * UNIT)?;
        }
        Ok(())
    }

    fn actor(&self, number: u32, hand: &mut Hand<'_>) -> Step<Box<dyn Actor + '_>> {
        let [log, volume] = names(number);
        let (log, volume) = (hand.open_direct(&log)?, hand.open_direct(&volume)?);
        Ok(Box::new(Thread { plan: self, log, log_end: 0, volume, deferred: Vec::new() }))
    }
}

impl Thread<'_> {
    /// Writes the deferred data to its place, and makes it durable.
    fn destage(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        for (at, units) in self.deferred.drain(..) {
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
        self.deferred.push((at, units));
        if self.deferred.len() >= self.plan.batch {
            self.destage(hand)?;
        }
        Ok(())
    }

    fn finish(&mut self, hand: &mut Hand<'_>) -> Step<()> {
        self.destage(hand)
    }
}

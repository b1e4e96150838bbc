//! Disks under the loads of field reports, beside what the reports say: a Ceph OSD whose fdatasync is fifty times faster
//! with the write cache off, and a desktop whose flushed writes are ten to a hundred times slower than with flushes
//! dropped.

use plumb_block::Nanos;

use super::hosts::{Flushes, ObjectStore, Quantiles, StoreLoad, accounting, appends, copy, log};
use super::table::{FigureRow, FigureUnit};
use crate::timing::Timing;

/// How many syncs of the store are measured.
const SYNCS: usize = 20_000;

/// A disk in reports; `made` gives a new one whose write cache is on or off.
pub(super) struct Reported<'m> {
    pub(super) made: &'m dyn Fn(bool) -> Box<dyn Timing>,
    pub(super) sectors: u64,
    pub(super) seed: u64,
}

impl Reported<'_> {
    /// What an fdatasync of the store takes, if that is `published` for the write cache on or off, as mean and quartiles
    /// in milliseconds.
    pub(super) fn object_store(
        &self,
        wce: bool,
        published: Option<[f64; 4]>,
        source: Option<&str>,
    ) -> Vec<FigureRow> {
        let Some(published) = published else { return Vec::new() };
        let mut drive = (self.made)(wce);
        let mut store = ObjectStore::new(&mut *drive, wce, self.sectors, StoreLoad::MODERATE, self.seed);
        store.run(SYNCS);
        let Quantiles { mean, p25, p50, p75, .. } = Quantiles::of(&store.syncs);
        let names = if wce {
            [
                "object store, fdatasync, cache on, mean",
                "object store, fdatasync, cache on, p25",
                "object store, fdatasync, cache on, p50",
                "object store, fdatasync, cache on, p75",
            ]
        } else {
            [
                "object store, fdatasync, cache off, mean",
                "object store, fdatasync, cache off, p25",
                "object store, fdatasync, cache off, p50",
                "object store, fdatasync, cache off, p75",
            ]
        };
        let rows = names.into_iter().zip([mean, p25, p50, p75]).zip(published);
        rows.map(|((name, simulated), published)| FigureRow {
            name,
            unit: FigureUnit::Milliseconds,
            simulated,
            published: Some(published),
            source: source.map(str::to_owned),
        })
        .collect()
    }

    /// A log of 2300 bytes at a time, and how many times slower flushes make what a desktop does.
    pub(super) fn desktop(&self) -> [FigureRow; 5] {
        let median = |wce| Quantiles::of(&appends(&mut *(self.made)(wce), wce, self.sectors / 4, 4000)).p50;
        let row = |name, unit, simulated| FigureRow { name, unit, simulated, published: None, source: None };
        [
            row("append 2300 B and fdatasync, cache on, p50", FigureUnit::Milliseconds, median(true)),
            row("append 2300 B and fdatasync, cache off, p50", FigureUnit::Milliseconds, median(false)),
            row("records of a table, flushed over not", FigureUnit::Ratio, self.slower(accounting)),
            row("log of 4 KiB, flushed over not", FigureUnit::Ratio, self.slower(log)),
            row("copies of 16 MiB, flushed over not", FigureUnit::Ratio, self.slower(copy)),
        ]
    }

    /// How many times longer `work` takes where the flushes reach the drive.
    fn slower(&self, work: fn(&mut dyn Timing, Flushes) -> Nanos) -> f64 {
        let time = |flushes| work(&mut *(self.made)(true), flushes).as_secs_f64();
        time(Flushes::Sent) / time(Flushes::NotSent)
    }
}

//! Figures of a spinning disk: rotation, seeks, bandwidth, queueing, and the cost of writes.

use plumb_block::Op;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::FigureRow;
use super::probe::{Probe, Taken};
use crate::command::{SECTOR, Sectors};
use crate::model::{Model, Parameters, Rate, Time};
use crate::timing::controller::{Controller, ControllerParameters, Protection};
use crate::timing::hdd::{Hdd, HddParameters};

/// 4 KiB in sectors.
const SMALL: u64 = 8;
/// 128 KiB in sectors.
const LARGE: u64 = 256;

/// A disk to measure; each figure uses a new one.
struct Bench<'p> {
    mechanics: &'p HddParameters,
    controller: &'p ControllerParameters,
    sectors: u64,
    seed: u64,
}

/// Returns the figures of the disk described by `model`; `None` for other kinds of drives. `seed` determines
/// the addresses.
pub fn table(model: &Model, seed: u64) -> Option<Vec<FigureRow>> {
    let Parameters::Hdd { mechanics, controller } = &*model.parameters else { return None };
    let source = |field: &str| {
        let path = format!("mechanics.published.{field}");
        model.figures.iter().find(|figure| figure.path == path).and_then(|figure| figure.source.clone())
    };
    let sectors = mechanics.capacity.0.0 / SECTOR.0;
    let bench = Bench { mechanics, controller, sectors, seed };
    let published = &mechanics.published;
    let ms = |time: Option<Time>| time.map(|time| time.0.as_secs_f64() * 1e3);
    let (one, deep) = (bench.random_reads(1), bench.random_reads(32));
    let (outer, inner) = (bench.sequential(0), bench.sequential(sectors - 2000 * LARGE));
    let mb = |rate: Option<Rate>| rate.map(|rate| rate.0 as f64 / 1e6);
    let rows = [
        (
            "random 4 KiB read, depth 1",
            "ms",
            one.mean_ms(),
            "random_read_time",
            ms(published.random_read_time),
        ),
        ("random 4 KiB read, depth 1", "IOPS", one.iops(), "", None),
        ("random 4 KiB read, depth 32", "IOPS", deep.iops(), "deep_read_iops", published.deep_read_iops),
        ("gain of depth 32", "times", deep.iops() / one.iops(), "depth_gain", published.depth_gain),
        ("sequential read, outer", "MB/s", outer, "sequential_outer", mb(published.sequential_outer)),
        ("sequential read, inner", "MB/s", inner, "sequential_inner", mb(published.sequential_inner)),
        ("rewrite of one block, through", "ms", bench.rewrites(), "rewrite_time", ms(published.rewrite_time)),
        ("random 4 KiB write and flush, cache on", "ms", bench.flushed_writes(), "", None),
        ("random 4 KiB write, cache off", "ms", bench.uncached_writes(), "", None),
    ];
    let rows = rows.map(|(name, unit, simulated, field, published)| FigureRow {
        name,
        unit,
        simulated,
        published,
        deviation: None,
        source: source(field),
    });
    Some(rows.into_iter().map(FigureRow::compared).collect())
}

impl Bench<'_> {
    fn drive(&self, wce: bool) -> Controller<Hdd> {
        let hdd = Hdd::new(self.mechanics, self.mechanics.capacity.0);
        Controller::new(self.controller, hdd, wce, Protection::None)
    }

    /// Returns a generator of random 4 KiB places.
    fn places(&self) -> impl FnMut() -> Sectors + use<'_> {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        move || Sectors { first: chance.next_u64() % (self.sectors / SMALL) * SMALL, count: SMALL }
    }

    fn random_reads(&self, depth: u64) -> Taken {
        let mut place = self.places();
        Probe::new(&mut self.drive(true)).run(depth, 3000 * depth.min(4), |_| (Op::Read, place()))
    }

    /// Measures sequential bandwidth in MB/s: 128 KiB at a time, two in flight as with a host's read-ahead.
    fn sequential(&self, first: u64) -> f64 {
        let at = |index| Sectors { first: first + index * LARGE, count: LARGE };
        let taken = Probe::new(&mut self.drive(true)).run(2, 2000, |index| (Op::Read, at(index)));
        (taken.commands * LARGE * SECTOR.0) as f64 / 1e6 / taken.elapsed.as_secs_f64()
    }

    /// Measures rewriting one block, with each write answered from the medium; mean in milliseconds.
    fn rewrites(&self) -> f64 {
        let place = Sectors { first: self.sectors / 2 / SMALL * SMALL, count: SMALL };
        Probe::new(&mut self.drive(true)).run(1, 500, |_| (Op::Write { fua: true }, place)).mean_ms()
    }

    /// Measures a write followed by a flush; mean of the pair in milliseconds.
    fn flushed_writes(&self) -> f64 {
        let mut place = self.places();
        let next = |index: u64| match index % 2 {
            0 => (Op::Write { fua: false }, place()),
            _ => (Op::Flush, Sectors::NONE),
        };
        2.0 * Probe::new(&mut self.drive(true)).run(1, 4000, next).mean_ms()
    }

    /// Measures for about a minute, so that a media cache reaches its steady state.
    fn uncached_writes(&self) -> f64 {
        let mut place = self.places();
        Probe::new(&mut self.drive(false)).run(1, 16_000, |_| (Op::Write { fua: false }, place())).mean_ms()
    }
}

//! The figures of a spinning disk: rotation, seeks, bandwidth, queueing, and what writing costs.

use plumb_block::Op;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::probe::{Probe, Taken};
use super::table::{FigureRow, FigureTable, FigureUnit};
use crate::command::{SECTOR, Sectors};
use crate::model::{Model, Parameters, Time};
use crate::timing::controller::{Controller, ControllerParameters, Protection};
use crate::timing::hdd::{Hdd, HddParameters};

/// 4 KiB in sectors.
const SMALL: u64 = 8;
/// 128 KiB in sectors.
const LARGE: u64 = 256;

/// A disk that is probed; each figure gets a new one.
struct Bench<'p> {
    mechanics: &'p HddParameters,
    controller: &'p ControllerParameters,
    sectors: u64,
    seed: u64,
}

/// The figures of the disk that `model` describes; none if it describes something else. `seed` chooses the addresses.
pub fn table(model: &Model, seed: u64) -> Option<FigureTable> {
    let Parameters::Hdd { mechanics, controller } = &*model.parameters else { return None };
    let source = |field: &str| {
        let path = format!("mechanics.published.{field}");
        model.figures.iter().find(|figure| figure.path == path).and_then(|figure| figure.source.clone())
    };
    let sectors = mechanics.capacity.0.0 / SECTOR.0;
    let bench = Bench { mechanics, controller, sectors, seed };
    let published = &mechanics.published;
    let ms = |time: Option<Time>| time.map(|time| time.0.as_secs_f64() * 1e3);
    let row = |name, unit, simulated, field: &str, value: Option<f64>| FigureRow {
        name,
        unit,
        simulated,
        published: value,
        source: source(field),
    };
    let (one, deep) = (bench.random_reads(1), bench.random_reads(32));
    let outer = published.sequential_outer.map(|rate| rate.0 as f64 / 1e6);
    let inner = published.sequential_inner.map(|rate| rate.0 as f64 / 1e6);
    let rows = vec![
        row(
            "random 4 KiB read, depth 1",
            FigureUnit::Milliseconds,
            one.mean_ms(),
            "random_read_time",
            ms(published.random_read_time),
        ),
        row("random 4 KiB read, depth 1", FigureUnit::Iops, one.iops(), "", None),
        row(
            "random 4 KiB read, depth 32",
            FigureUnit::Iops,
            deep.iops(),
            "deep_read_iops",
            published.deep_read_iops,
        ),
        row(
            "gain of depth 32",
            FigureUnit::Ratio,
            deep.iops() / one.iops(),
            "depth_gain",
            published.depth_gain,
        ),
        row(
            "sequential read, outer",
            FigureUnit::MegabytesPerSecond,
            bench.sequential(0),
            "sequential_outer",
            outer,
        ),
        row(
            "sequential read, inner",
            FigureUnit::MegabytesPerSecond,
            bench.sequential(sectors - 2000 * LARGE),
            "sequential_inner",
            inner,
        ),
        row(
            "rewrite of one block, through",
            FigureUnit::Milliseconds,
            bench.rewrites().mean_ms(),
            "rewrite_time",
            ms(published.rewrite_time),
        ),
        row(
            "random 4 KiB write and flush, cache on",
            FigureUnit::Milliseconds,
            bench.flushed_writes(),
            "",
            None,
        ),
        row(
            "random 4 KiB write, cache off",
            FigureUnit::Milliseconds,
            bench.uncached_writes().mean_ms(),
            "",
            None,
        ),
    ];
    Some(FigureTable { rows })
}

impl Bench<'_> {
    fn drive(&self, wce: bool) -> Controller<Hdd> {
        let hdd = Hdd::new(self.mechanics, self.mechanics.capacity.0);
        Controller::new(self.controller, hdd, wce, Protection::None)
    }

    /// Random places of 4 KiB.
    fn places(&self) -> impl FnMut() -> Sectors + use<'_> {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        move || Sectors { first: chance.next_u64() % (self.sectors / SMALL) * SMALL, count: SMALL }
    }

    fn random_reads(&self, depth: u64) -> Taken {
        let mut place = self.places();
        Probe::new(&mut self.drive(true)).run(depth, 3000 * depth.min(4), |_| (Op::Read, place()))
    }

    /// In MB/s: 128 KiB after 128 KiB, two at a time as a host's own read-ahead does.
    fn sequential(&self, first: u64) -> f64 {
        let at = |index| Sectors { first: first + index * LARGE, count: LARGE };
        let taken = Probe::new(&mut self.drive(true)).run(2, 2000, |index| (Op::Read, at(index)));
        (taken.commands * LARGE * SECTOR.0) as f64 / 1e6 / taken.elapsed.as_secs_f64()
    }

    /// One block, each write answered when it is on the medium.
    fn rewrites(&self) -> Taken {
        let place = Sectors { first: self.sectors / 2 / SMALL * SMALL, count: SMALL };
        Probe::new(&mut self.drive(true)).run(1, 500, |_| (Op::Write { fua: true }, place))
    }

    /// A write and a flush in turn; the mean of the pair in milliseconds.
    fn flushed_writes(&self) -> f64 {
        let mut place = self.places();
        let next = |index: u64| match index % 2 {
            0 => (Op::Write { fua: false }, place()),
            _ => (Op::Flush, Sectors::NONE),
        };
        2.0 * Probe::new(&mut self.drive(true)).run(1, 4000, next).mean_ms()
    }

    /// For a minute or so, so that a media cache is in its steady state.
    fn uncached_writes(&self) -> Taken {
        let mut place = self.places();
        Probe::new(&mut self.drive(false)).run(1, 16_000, |_| (Op::Write { fua: false }, place()))
    }
}

//! Measurements of flash drives: reads by depth, the drop after the SLC buffer, the cost of a flush, fresh
//! against steady.
//!
//! Published figures are in [`PUBLISHED`] and used only for comparison. The shapes matter more than the
//! figures, since most data sheets state the best case.

use plumb_block::{Bytes, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::FigureRow;
use super::probe::{Probe, Taken};
use crate::command::{SECTOR, Sectors};
use crate::timing::Timing;

const SMALL: u64 = 8;
const LARGE: u64 = 256;
const WRITE: Op = Op::Write { fua: false };

/// Figure of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashFigure {
    /// Random 4 KiB reads per second at this depth.
    Reads(u64),
    /// Random 4 KiB writes per second at this depth, into an SLC buffer if there is one.
    Writes(u64),
    /// Random 4 KiB writes per second at depth 32, after writing three times the capacity in this way.
    SteadyWrites,
    /// Sequential 128 KiB reads at depth 32.
    SequentialRead,
    /// Sequential 128 KiB writes at depth 32 from the start.
    SequentialWrite,
    /// Sequential 128 KiB writes after the SLC buffer is full.
    WriteBehindSlc,
    /// Mean time of a flush after each 16 KiB write, one after the other.
    Flush,
}

impl FlashFigure {
    const fn name(self) -> &'static str {
        match self {
            Self::Reads(1) => "random 4 KiB reads, depth 1",
            Self::Reads(32) => "random 4 KiB reads, depth 32",
            Self::Reads(_) => "random 4 KiB reads, depth 128",
            Self::Writes(1) => "random 4 KiB writes, depth 1",
            Self::Writes(_) => "random 4 KiB writes, depth 32",
            Self::SteadyWrites => "random 4 KiB writes, depth 32, steady",
            Self::SequentialRead => "sequential 128 KiB reads",
            Self::SequentialWrite => "sequential 128 KiB writes",
            Self::WriteBehindSlc => "sequential writes behind the SLC buffer",
            Self::Flush => "flush after a 16 KiB write",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Reads(_) | Self::Writes(_) | Self::SteadyWrites => "IOPS",
            Self::Flush => "ms",
            _ => "MB/s",
        }
    }
}

/// Commands of one kind for a drive.
#[derive(Clone, Copy)]
struct Commands {
    /// Maximum number in flight.
    depth: u64,
    /// Total number.
    count: u64,
    op: Op,
}

/// Published figure for a model's class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedFigure {
    /// The model.
    pub model: &'static str,
    /// Kind of the figure.
    pub figure: FlashFigure,
    /// Value in the unit of the figure.
    pub value: f64,
    /// Publication.
    pub source: &'static str,
}

const fn row(model: &'static str, figure: FlashFigure, value: f64, source: &'static str) -> PublishedFigure {
    PublishedFigure { model, figure, value, source }
}

const SATA: &str = "consumer-sata-ssd";
const SATA_SOURCE: &str = "Samsung 860 EVO 250 GB, specification (techbroll.com 2018/08)";
const NVME: &str = "consumer-nvme-ssd";
const NVME_SOURCE: &str = "Samsung 970 EVO 500 GB, data sheet";
const PLP: &str = "plp-nvme-ssd";
const PLP_SOURCE: &str = "Samsung PM983 1.92 TB, data sheet rev. 1.0 (manualmachine.com)";
const ENTERPRISE: &str = "enterprise-sata-ssd";
const ENTERPRISE_SOURCE: &str = "Intel SSD DC S3700 200 GB, product specification";
const FSYNC: &str = "M. Callaghan 2026, SSDs, power loss protection and fsync latency";

/// Published figures for the classes of the shipped models.
pub(crate) const PUBLISHED: &[PublishedFigure] = &[
    row(SATA, FlashFigure::Reads(1), 10_000.0, SATA_SOURCE),
    row(SATA, FlashFigure::Reads(32), 97_000.0, SATA_SOURCE),
    row(SATA, FlashFigure::Writes(1), 42_000.0, SATA_SOURCE),
    row(SATA, FlashFigure::Writes(32), 88_000.0, SATA_SOURCE),
    row(SATA, FlashFigure::SequentialRead, 550.0, SATA_SOURCE),
    row(SATA, FlashFigure::SequentialWrite, 520.0, SATA_SOURCE),
    row(NVME, FlashFigure::Reads(1), 15_000.0, NVME_SOURCE),
    row(NVME, FlashFigure::Reads(128), 370_000.0, NVME_SOURCE),
    row(NVME, FlashFigure::Writes(32), 450_000.0, NVME_SOURCE),
    row(NVME, FlashFigure::SequentialRead, 3400.0, NVME_SOURCE),
    row(NVME, FlashFigure::SequentialWrite, 2300.0, NVME_SOURCE),
    row(NVME, FlashFigure::WriteBehindSlc, 630.0, "TechPowerUp, 970 EVO 500 GB: a bit above 600 MB/s"),
    row(NVME, FlashFigure::Flush, 0.891, FSYNC),
    row(PLP, FlashFigure::Reads(1), 11_760.0, PLP_SOURCE),
    row(PLP, FlashFigure::Reads(128), 540_000.0, PLP_SOURCE),
    row(PLP, FlashFigure::SteadyWrites, 50_000.0, PLP_SOURCE),
    row(PLP, FlashFigure::SequentialRead, 3200.0, PLP_SOURCE),
    row(PLP, FlashFigure::SequentialWrite, 2000.0, PLP_SOURCE),
    row(PLP, FlashFigure::Flush, 0.035, "the middle of 0.012 to 0.058 ms; M. Callaghan 2026"),
    row(ENTERPRISE, FlashFigure::Reads(32), 75_000.0, ENTERPRISE_SOURCE),
    row(ENTERPRISE, FlashFigure::SteadyWrites, 32_000.0, ENTERPRISE_SOURCE),
    row(ENTERPRISE, FlashFigure::SequentialRead, 500.0, ENTERPRISE_SOURCE),
    row(ENTERPRISE, FlashFigure::SequentialWrite, 365.0, ENTERPRISE_SOURCE),
];

/// Drive to measure: `made` creates a new one of `size` for each figure, so that figures do not affect each
/// other.
pub struct FlashProbe<'m> {
    /// Capacity of the drive.
    pub size: Bytes,
    /// Creates a drive.
    pub made: &'m dyn Fn() -> Box<dyn Timing>,
}

impl FlashProbe<'_> {
    /// Returns the published figures for `model` with the simulated ones.
    pub fn table(&self, model: &str) -> Vec<FigureRow> {
        let rows = PUBLISHED.iter().filter(|published| published.model == model).map(|published| FigureRow {
            name: published.figure.name(),
            unit: published.figure.unit(),
            simulated: self.measure(published.figure),
            published: Some(published.value),
            deviation: None,
            source: Some(published.source.to_owned()),
        });
        rows.map(FigureRow::compared).collect()
    }

    /// Measures a figure, in its unit.
    pub fn measure(&self, figure: FlashFigure) -> f64 {
        let mut drive = (self.made)();
        let mut probe = Probe::new(&mut *drive);
        match figure {
            FlashFigure::Reads(depth) => {
                self.random(&mut probe, Commands { depth, count: 20_000, op: Op::Read }, 1).iops()
            }
            FlashFigure::Writes(depth) => {
                self.random(&mut probe, Commands { depth, count: 20_000, op: WRITE }, 1).iops()
            }
            FlashFigure::SteadyWrites => {
                self.random(
                    &mut probe,
                    Commands { depth: 256, count: 3 * self.size.0 / (SMALL * SECTOR.0), op: WRITE },
                    1,
                );
                self.random(
                    &mut probe,
                    Commands { depth: 32, count: self.size.0 / (4 * SMALL * SECTOR.0), op: WRITE },
                    2,
                )
                .iops()
            }
            FlashFigure::SequentialRead => self.sequential(&mut probe, Op::Read, 0, 4000),
            FlashFigure::SequentialWrite => {
                // Do not count writes absorbed by the write buffer.
                self.sequential(&mut probe, WRITE, 0, 1000);
                self.sequential(&mut probe, WRITE, 1000, 4000)
            }
            FlashFigure::WriteBehindSlc => self.cliff(Bytes::gib(1)).last().map_or(0.0, |(_, rate)| *rate),
            FlashFigure::Flush => self.flush_ms(&mut probe),
        }
    }

    /// Measures sequential writes over the whole drive: bytes written so far, and MB/s over the last `step`
    /// of them.
    pub fn cliff(&self, step: Bytes) -> Vec<(Bytes, f64)> {
        let mut drive = (self.made)();
        let mut probe = Probe::new(&mut *drive);
        let chunks = step.0 / (LARGE * SECTOR.0);
        let steps = self.size.0 / step.0;
        (0..steps)
            .map(|at| (step * (at + 1), self.sequential(&mut probe, WRITE, at * chunks, chunks)))
            .collect()
    }

    /// Runs random 4 KiB commands, with places determined by `seed`.
    fn random(&self, probe: &mut Probe<'_>, commands: Commands, seed: u64) -> Taken {
        let Commands { depth, count, op } = commands;
        let blocks = self.size.0 / (SMALL * SECTOR.0);
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        probe.run(depth, count, |_| {
            let first = ((u128::from(chance.next_u64()) * u128::from(blocks)) >> 64) as u64 * SMALL;
            (op, Sectors { first, count: SMALL })
        })
    }

    /// Returns the MB/s of `count` chunks of 128 KiB from chunk `from` on, at depth 32.
    fn sequential(&self, probe: &mut Probe<'_>, op: Op, from: u64, count: u64) -> f64 {
        let chunks = self.size.0 / (LARGE * SECTOR.0);
        let at = |index| Sectors { first: (from + index) % chunks * LARGE, count: LARGE };
        let taken = probe.run(32, count, |index| (op, at(index)));
        taken.iops() * (LARGE * SECTOR.0) as f64 / 1e6
    }

    fn flush_ms(&self, probe: &mut Probe<'_>) -> f64 {
        let blocks = self.size.0 / Bytes::kib(16).0;
        let pairs = 1000;
        let write = |index: u64| (WRITE, Sectors { first: index * 7919 % blocks * 32, count: 32 });
        let both =
            probe.run(
                1,
                pairs * 2,
                |index| if index % 2 == 0 { write(index) } else { (Op::Flush, Sectors::NONE) },
            );
        let alone = probe.run(1, pairs, write);
        (both.elapsed.as_secs_f64() - alone.elapsed.as_secs_f64()) * 1e3 / pairs as f64
    }
}

//! What the terminal and the page print alike: statistics, the two sides of a load, the head.

use plumb_measure::run::TimeseriesRow;
use plumb_measure::{FlushesOf, Latency, SERIES_BUCKET, StorageSide};

use crate::document::{Environment, Sides};
use crate::printable::printable;
use crate::quantity::{self, NONE, count, duration};

/// A statistic of a latency, in seconds.
type Statistic = fn(&Latency) -> f64;

/// The statistics in the order in which they are printed.
pub(crate) const STATISTICS: [(&str, Statistic); 9] = [
    ("mean", |latency| latency.mean),
    ("std", |latency| latency.std),
    ("min", |latency| latency.min),
    ("p25", |latency| latency.p25),
    ("p50", |latency| latency.p50),
    ("p75", |latency| latency.p75),
    ("p99", |latency| latency.p99),
    ("p99.9", |latency| latency.p999),
    ("max", |latency| latency.max),
];

/// Flushes, and whose they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushCount {
    /// How many; of a run's own those of its file system's journal are part.
    pub(crate) count: u64,
    /// How they are told from those of other programs.
    pub(crate) of: FlushesOf,
}

impl FlushCount {
    /// Those of `storage`; `None` where they were not counted. Documents of older versions do not say whose they are, and
    /// are taken by their word. Where nobody asked for any, they are everybody's.
    pub(crate) fn of(storage: &StorageSide) -> Option<Self> {
        let all = storage.flushes?;
        let whose = storage.attribution.as_ref().filter(|_| all > 0);
        let of = whose.map_or(FlushesOf::OwnDevice, |whose| whose.flushes);
        let own = whose.and_then(|whose| whose.own_flushes).filter(|_| of == FlushesOf::Traced);
        let journal = whose.and_then(|whose| whose.journal_flushes).unwrap_or(0);
        // One traced flush of a volume may be one at each of its disks: no more than these were handed are seen as it.
        Some(Self { count: own.map_or(all, |own| own.saturating_add(journal).min(all)), of })
    }

    /// Whether they prove nothing about the flushes of this run, except that it had no more.
    pub(crate) fn is_of_all(self) -> bool {
        self.of == FlushesOf::AllPrograms
    }

    /// `1,200 flushes of all programs`.
    pub(crate) fn words(self) -> String {
        let whose = match self.of {
            FlushesOf::OwnDevice => " at the devices",
            FlushesOf::Traced => ", traced to it",
            FlushesOf::AllPrograms => " of all programs",
        };
        format!("{} flushes{whose}", count(self.count))
    }
}

/// `half of them within 1 ms, 99 of 100 within 3 ms`, as far as there were enough for that.
pub(crate) fn spread(latency: &Latency) -> String {
    match latency.count {
        0 | 1 => format!("it took {}", duration(latency.max)),
        2..100 => {
            format!("half of them within {}, the slowest {}", duration(latency.p50), duration(latency.max))
        }
        _ => {
            format!(
                "half of them within {}, 99 of 100 within {}",
                duration(latency.p50),
                duration(latency.p99)
            )
        }
    }
}

/// Writes from which one was taken for every flush. Where flushes are no small part of them, some may have carried data
/// and were taken with the empty ones, so that this many are the least.
pub(crate) fn writes_without_flushes(writes: u64, flushes: Option<u64>) -> String {
    let text = quantity::count(writes);
    if may_lack(writes, flushes) { format!("at least {text}") } else { text }
}

/// Whether more than a tenth of the writes may be missing.
pub(crate) fn may_lack(writes: u64, flushes: Option<u64>) -> bool {
    flushes.is_some_and(|flushes| flushes.saturating_mul(10) > writes)
}

/// One side of a load. A figure that is not known or has no meaning is a dash.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SideRow {
    /// `application`, `storage`, or a part of the former.
    pub(crate) side: &'static str,
    /// Operations per second.
    pub(crate) iops: String,
    /// MiB/s.
    pub(crate) mib: String,
    /// Mean size of an operation, with its unit.
    pub(crate) size: String,
    /// Median latency, with its unit.
    pub(crate) p50: String,
    /// 99th percentile of latency, with its unit.
    pub(crate) p99: String,
    /// 99.9th percentile of latency, with its unit.
    pub(crate) p999: String,
    /// The longest latency, with its unit.
    pub(crate) max: String,
    /// Flushes.
    pub(crate) flushes: String,
    /// Whether the storage moved nothing at all.
    pub(crate) zero: bool,
}

/// The rows of a target: application, each direction if there are several, flushes, storage where it is known.
pub(crate) fn side_rows(sides: &Sides) -> Vec<SideRow> {
    let application = &sides.application;
    let row = SideRow::moving(
        "application",
        application.iops,
        application.bytes_per_second,
        application.io_bytes_mean,
    );
    let mut rows = vec![row.taking(application.latency.as_ref())];
    let moving = sides.moving();
    if moving.len() > 1 {
        for (name, direction) in moving {
            let size = (direction.ios > 0).then(|| direction.bytes as f64 / direction.ios as f64);
            let row = SideRow::moving(name, direction.iops, direction.bytes_per_second, size);
            rows.push(row.taking(direction.latency.as_ref()));
        }
    }
    if sides.sync.is_used() {
        let row = SideRow { iops: quantity::rate(sides.sync.iops), ..SideRow::empty("sync") };
        let flushes = quantity::count(sides.sync.ios);
        rows.push(SideRow { flushes, ..row.taking(sides.sync.latency.as_ref()) });
    }
    if let Some(latency) = &sides.durable_latency {
        rows.push(SideRow::empty("durable").taking(Some(latency)));
    }
    if let Some(latency) = &application.latency_from_intended_start {
        rows.push(SideRow::empty("since intended").taking(Some(latency)));
    }
    if let Some(side) = &sides.storage {
        let row = SideRow::moving("storage", side.iops, side.bytes_per_second, side.io_bytes_mean);
        rows.push(SideRow {
            flushes: quantity::or_dash(side.flushes, quantity::count),
            zero: side.reads == 0 && side.writes == 0 && application.operations > 0,
            ..row
        });
    }
    rows
}

impl SideRow {
    fn empty(side: &'static str) -> Self {
        let none = || NONE.to_owned();
        Self {
            side,
            iops: none(),
            mib: none(),
            size: none(),
            p50: none(),
            p99: none(),
            p999: none(),
            max: none(),
            flushes: none(),
            zero: false,
        }
    }

    fn moving(side: &'static str, iops: f64, bytes_per_second: f64, size: Option<f64>) -> Self {
        Self {
            iops: quantity::rate(iops),
            mib: quantity::mebibytes(bytes_per_second),
            size: quantity::or_dash(size, quantity::bytes),
            ..Self::empty(side)
        }
    }

    fn taking(self, latency: Option<&Latency>) -> Self {
        let show =
            |of: fn(&Latency) -> f64| quantity::or_dash(latency, |latency| quantity::duration(of(latency)));
        Self {
            p50: show(|latency| latency.p50),
            p99: show(|latency| latency.p99),
            p999: show(|latency| latency.p999),
            max: show(|latency| latency.max),
            ..self
        }
    }
}

/// The width of a bucket in seconds: what lies between two of them. Long runs are recorded in wider ones.
pub(crate) fn bucket_seconds(rows: &[TimeseriesRow]) -> f64 {
    let width = match rows {
        [first, second, ..] => second.at.as_secs_f64() - first.at.as_secs_f64(),
        _ => 0.0,
    };
    if width > 0.0 { width } else { SERIES_BUCKET.as_secs_f64() }
}

/// The facts beside the target in the head of a report: host and time, where known.
pub(crate) fn masthead(environment: &Environment) -> Vec<String> {
    let time = environment.started_at.replace('T', " ").replace('Z', " UTC");
    let kernel = environment.kernel.as_deref().map(|kernel| format!("Linux {kernel}"));
    [environment.host.clone(), kernel, Some(time)]
        .into_iter()
        .flatten()
        .filter(|fact| !fact.trim().is_empty())
        .map(|fact| printable(&fact))
        .collect()
}

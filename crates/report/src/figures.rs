//! Parts common to the terminal and the page: statistics, the two sides of a load, the head.

use plumb_measure::run::TimeseriesRow;
use plumb_measure::{FlushesOf, Latency, SERIES_BUCKET, StorageSide};
use plumb_text::printable;

use crate::document::{Environment, Sides};
use crate::quantity::{count, counted, duration};

/// Statistic of a latency, in seconds; `None` if unknown.
type Statistic = fn(&Latency) -> Option<f64>;

/// Statistics in the order of printing.
pub(crate) const STATISTICS: [(&str, Statistic); 9] = [
    ("mean", |latency| Some(latency.mean)),
    ("std", |latency| Some(latency.std)),
    ("min", |latency| Some(latency.min)),
    ("p25", |latency| latency.p25),
    ("p50", |latency| latency.p50),
    ("p75", |latency| latency.p75),
    ("p99", |latency| latency.p99),
    ("p99.9", |latency| latency.p999),
    ("max", |latency| Some(latency.max)),
];

/// Number of flushes, and their attribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushCount {
    /// Number of flushes. A run's own include those of its file system's journal.
    pub(crate) count: u64,
    /// Attribution to this run or to all programs.
    pub(crate) of: FlushesOf,
}

impl FlushCount {
    /// Returns the flushes of `storage`; `None` if they were not counted. Counts without an attribution are
    /// the run's own. If the run requested none, they are those of all programs.
    pub(crate) fn from_storage(storage: &StorageSide) -> Option<Self> {
        let all = storage.flushes?;
        let whose = storage.attribution.as_ref().filter(|_| all > 0);
        let of = whose.map_or(FlushesOf::OwnDevice, |whose| whose.flushes);
        let own = whose.and_then(|whose| whose.own_flushes).filter(|_| of == FlushesOf::Traced);
        let journal = whose.and_then(|whose| whose.journal_flushes).unwrap_or(0);
        // One traced flush of a volume may cause one at each of its disks, so the total of the disks is the
        // limit.
        Some(Self { count: own.map_or(all, |own| own.saturating_add(journal).min(all)), of })
    }

    /// Returns true if the flushes include those of other programs, so that the count is only an upper bound
    /// for this run.
    pub(crate) fn is_of_all(self) -> bool {
        self.of == FlushesOf::AllPrograms
    }

    /// Returns `1,200 flushes of all programs`.
    pub(crate) fn words(self) -> String {
        let whose = match self.of {
            FlushesOf::OwnDevice => " at the devices",
            FlushesOf::Traced => ", traced to it",
            FlushesOf::AllPrograms => " of all programs",
        };
        format!("{}{whose}", counted(self.count, "flush"))
    }
}

/// Number of operations below which the 99th percentile is the maximum.
pub(crate) const P99_FROM: u64 = 100;

/// Phrase for latencies that count from the intended start.
pub(crate) const SINCE_INTENDED: &str = "since the intended start";

/// Returns `half of them within 1 ms, 99 of 100 within 3 ms`, as far as the number of operations permits.
pub(crate) fn spread(latency: &Latency) -> String {
    let slowest = duration(latency.max);
    let half = latency.p50.map(|half| format!("half of them within {}", duration(half)));
    let many = latency.p99.filter(|_| latency.count >= P99_FROM);
    let many = many.map(|many| format!("99 of 100 within {}", duration(many)));
    match (latency.count, half, many) {
        (0 | 1, ..) => format!("it took {slowest}"),
        (_, Some(half), Some(many)) => format!("{half}, {many}"),
        (_, Some(known), None) | (_, None, Some(known)) => format!("{known}, the slowest {slowest}"),
        (_, None, None) => format!("{} on average, the slowest {slowest}", duration(latency.mean)),
    }
}

/// Returns the number of writes after one was subtracted for each flush, since the kernel counts empty
/// flushes as writes. If there were many flushes, some may have carried data, so the number is a lower bound.
pub(crate) fn writes_without_flushes(writes: u64, flushes: Option<u64>) -> String {
    let text = count(writes);
    if may_lack(writes, flushes) { format!("at least {text}") } else { text }
}

/// Returns true if more than a tenth of the writes may be missing after that subtraction.
pub(crate) fn may_lack(writes: u64, flushes: Option<u64>) -> bool {
    flushes.is_some_and(|flushes| flushes.saturating_mul(10) > writes)
}

/// One side of a load. Unknown or meaningless values are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SideRow {
    /// `application`, `storage`, or a part of the former.
    pub(crate) side: &'static str,
    /// Operations per second.
    pub(crate) iops: Option<f64>,
    pub(crate) bytes_per_second: Option<f64>,
    /// Mean length of an operation, in bytes.
    pub(crate) size: Option<f64>,
    /// Latency of an operation, since the intended start if there is a schedule.
    pub(crate) latency: Option<Latency>,
    pub(crate) flushes: Option<u64>,
    /// True if the storage moved nothing at all.
    pub(crate) zero: bool,
}

/// Returns the rows of a target: application, each direction if there are several, flushes, and storage if
/// known.
pub(crate) fn side_rows(sides: &Sides) -> Vec<SideRow> {
    let application = &sides.application;
    let row = |side, latency| SideRow { side, latency, ..SideRow::default() };
    let mut rows = vec![SideRow {
        iops: Some(application.iops),
        bytes_per_second: Some(application.bytes_per_second),
        size: application.io_bytes_mean,
        ..row("application", application.operation_latency())
    }];
    let moving = sides.moving();
    if moving.len() > 1 {
        rows.extend(moving.into_iter().map(|(name, direction)| SideRow {
            iops: Some(direction.iops),
            bytes_per_second: Some(direction.bytes_per_second),
            size: (direction.ios > 0).then(|| direction.bytes as f64 / direction.ios as f64),
            ..row(name, direction.operation_latency())
        }));
    }
    if sides.sync.is_used() {
        let (iops, flushes) = (Some(sides.sync.iops), Some(sides.sync.ios));
        rows.push(SideRow { iops, flushes, ..row("sync", sides.sync.latency) });
    }
    rows.extend(sides.durable_latency.map(|latency| row("durable", Some(latency))));
    rows.extend(sides.service_time().map(|latency| row("service time", Some(latency))));
    rows.extend(sides.storage.as_ref().map(|storage| SideRow {
        iops: Some(storage.iops),
        bytes_per_second: Some(storage.bytes_per_second),
        size: storage.io_bytes_mean,
        flushes: storage.flushes,
        zero: storage.reads == 0
            && storage.writes == 0
            && sides.discards().is_none()
            && application.operations > 0,
        ..row("storage", None)
    }));
    rows.extend(sides.discards().filter(|_| application.seconds > 0.0).map(|discards| SideRow {
        iops: Some(discards.count as f64 / application.seconds),
        bytes_per_second: Some(discards.bytes as f64 / application.seconds),
        size: Some(discards.bytes as f64 / discards.count as f64),
        ..row("discards", None)
    }));
    rows
}

/// Returns the width of a bucket in seconds, which is the distance of two rows. Long runs have wider buckets.
pub(crate) fn bucket_seconds(rows: &[TimeseriesRow]) -> f64 {
    let width = match rows {
        [first, second, ..] => second.at.as_secs_f64() - first.at.as_secs_f64(),
        _ => 0.0,
    };
    if width > 0.0 { width } else { SERIES_BUCKET.as_secs_f64() }
}

/// Returns the facts next to the target in the head of a report: host and time, if known.
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

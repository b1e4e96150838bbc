//! What the terminal and the page print alike: statistics, the two sides of a load, the head.

use plumb_measure::{ApplicationSide, Latency, StorageSide, SyncResult};

use crate::document::Environment;
use crate::printable::printable;
use crate::quantity::{self, NONE};

/// A statistic of a latency, in seconds.
type Statistic = fn(&Latency) -> f64;

/// The statistics in the order in which field report D prints them, with the tail that it lacks.
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

/// Durable writes per second, one after the other.
pub(crate) fn per_second(result: &SyncResult) -> Option<f64> {
    (result.seconds > 0.0).then(|| result.operations as f64 / result.seconds)
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
    /// `application` or `storage`.
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
    /// Flushes.
    pub(crate) flushes: String,
    /// Whether the storage moved nothing at all.
    pub(crate) zero: bool,
}

/// Application, then storage where it is known.
pub(crate) fn side_rows(
    application: Option<&ApplicationSide>,
    storage: Option<&StorageSide>,
) -> Vec<SideRow> {
    let mut rows = Vec::new();
    if let Some(side) = application {
        rows.push(SideRow {
            side: "application",
            iops: quantity::rate(side.iops),
            mib: quantity::mebibytes(side.bytes_per_second),
            size: quantity::or_dash(side.io_bytes_mean, quantity::bytes),
            p50: quantity::or_dash(side.latency.as_ref(), |latency| quantity::duration(latency.p50)),
            p99: quantity::or_dash(side.latency.as_ref(), |latency| quantity::duration(latency.p99)),
            flushes: NONE.to_owned(),
            zero: false,
        });
    }
    if let Some(side) = storage {
        rows.push(SideRow {
            side: "storage",
            iops: quantity::rate(side.iops),
            mib: quantity::mebibytes(side.bytes_per_second),
            size: quantity::or_dash(side.io_bytes_mean, quantity::bytes),
            p50: NONE.to_owned(),
            p99: NONE.to_owned(),
            flushes: quantity::or_dash(side.flushes, quantity::count),
            zero: side.reads == 0 && side.writes == 0 && application.is_some_and(|side| side.operations > 0),
        });
    }
    rows
}

/// The facts beside the target in the head of the page: host and time, where known.
pub(crate) fn masthead(environment: &Environment) -> Vec<String> {
    let time = environment.started_at.replace('T', " ").replace('Z', " UTC");
    [
        environment.host.clone(),
        environment.kernel.as_ref().map(|kernel| format!("Linux {kernel}")),
        Some(time),
    ]
    .into_iter()
    .flatten()
    .filter(|fact| !fact.trim().is_empty())
    .map(|fact| printable(&fact))
    .collect()
}

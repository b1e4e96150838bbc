//! Measurements of a block: figures to compare, and counts to explain them with.

use std::collections::BTreeMap;

use plumb_load::LoadOutcome;
use plumb_report::document::Sides;
use plumb_report::document::comparison::{Block, Counts};
use plumb_workload::{Job, Scenario};

/// Name of a figure, and the function that reads it.
type Figure = (&'static str, fn(&Sides) -> Option<f64>);

/// All figures. A ratio above 1 is good for the first three, and bad for the others.
const FIGURES: [Figure; 14] = [
    ("iops", iops),
    // Set by `of_transactions`, since `Sides` has no transactions.
    (PROFILE_FIGURE, |_| None),
    (LENGTHS_FIGURE, |sides| Some(sides.application.bytes_per_second)),
    ("mean", |sides| Some(sides.operation_latency()?.mean)),
    ("p50", |sides| sides.operation_latency()?.p50),
    ("p99", |sides| sides.operation_latency()?.p99),
    ("p999", |sides| sides.operation_latency()?.p999),
    ("sync-mean", |sides| Some(sides.sync.latency?.mean)),
    ("sync-p50", |sides| sides.sync.latency?.p50),
    ("sync-p99", |sides| sides.sync.latency?.p99),
    ("durable-mean", |sides| Some(sides.durable_latency?.mean)),
    ("durable-p50", |sides| sides.durable_latency?.p50),
    ("durable-p99", |sides| sides.durable_latency?.p99),
    ("cpu-per-million", Sides::cpu_per_million),
];

/// Figure that decides by default.
pub(crate) const DEFAULT_FIGURE: &str = "iops";
/// Figure that decides by default if operations start on a schedule, which determines their rate.
pub(crate) const SCHEDULED_FIGURE: &str = "p99";
/// Figure that decides by default if the operations of the levels differ in length.
pub(crate) const LENGTHS_FIGURE: &str = "bytes-per-second";

/// Figure that decides by default for a profile over files: its transactions per second.
pub(crate) const PROFILE_FIGURE: &str = "transactions";

/// Returns the names of all figures. Times without another name are those of an operation.
pub(crate) fn figure_names() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|(name, _)| *name)
}

/// Parses the name of a figure.
///
/// # Errors
/// Fails with the known names.
pub fn figure(typed: &str) -> Result<String, String> {
    let known = figure_names().find(|name| *name == typed).map(str::to_owned);
    known.ok_or_else(|| format!("expected one of {}", figure_names().collect::<Vec<_>>().join(", ")))
}

/// Returns the operations per second. If none completed, half an operation counts, as in [`block_of`], since
/// the logarithm is needed. A level with many such blocks has no figure (see [`is_idle`]).
fn iops(sides: &Sides) -> Option<f64> {
    let application = &sides.application;
    let is_empty = application.operations == 0 && application.seconds > 0.0;
    Some(if is_empty { 0.5 / application.seconds } else { application.iops })
}

/// Returns true if no operation completed in at least half of `blocks`: the figure of the level would then be
/// the assumed half operation, which nobody measured.
pub(crate) fn is_idle<'a>(blocks: impl Iterator<Item = &'a Block>) -> bool {
    let (mut all, mut idle) = (0, 0);
    for block in blocks {
        all += 1;
        idle += usize::from(block.counts.operations == 0);
    }
    idle > 0 && 2 * idle >= all
}

/// Returns the block of a profile over files, whose counts refer to transactions instead of operations. Each
/// of `threads` is always in a transaction.
pub(crate) fn of_transactions(mut block: Block, outcome: &LoadOutcome, threads: u32) -> Block {
    let Some(transactions) = &outcome.transactions else { return block };
    let counts = &mut block.counts;
    if counts.operations == 0 {
        block.figures.retain(|name, _| ![DEFAULT_FIGURE, LENGTHS_FIGURE].contains(&&**name));
    }
    counts.operations = outcome.transaction_count();
    counts.slot_seconds = counts.seconds * f64::from(threads);
    counts.thread_seconds = Some(counts.slot_seconds);
    let mut figures =
        vec![(PROFILE_FIGURE, outcome.transactions_per_second().unwrap_or(0.0).max(0.5 / counts.seconds))];
    if let Some(of) = transactions.latency.summary() {
        counts.operation_seconds = of.mean * of.count as f64;
        let percentiles = [("p50", of.p50), ("p99", of.p99), ("p999", of.p999)];
        figures.push(("mean", of.mean));
        figures.extend(percentiles.into_iter().filter_map(|(name, seconds)| Some((name, seconds?))));
    }
    block.figures.extend(figures.into_iter().map(|(name, value)| (name.to_owned(), value)));
    block
}

/// Builds the block that `scenario` measured on all `hosts` at once. Its figures are those of their `total`;
/// its counts are the sums of theirs, because a total has no times of devices. If it has no counts of
/// devices, those of the hosts cannot be added.
pub fn block_of_hosts<'a>(
    total: &Sides,
    hosts: impl Iterator<Item = &'a Sides>,
    scenario: &Scenario,
) -> Block {
    let seconds = total.application.seconds;
    let way = Way::from_jobs(scenario.jobs());
    let block = block_of(total, way, seconds);
    let counts = hosts.map(|host| {
        let storage = total.storage.as_ref().and(host.storage.clone());
        way.counts(&Sides { storage, ..host.clone() })
    });
    let counts = counts.reduce(Counts::plus);
    let counts = counts.map_or(block.counts, |counts| Counts { seconds, ..counts });
    Block { counts, ..block }
}

/// Method of the writes of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// True if all operations go through the page cache.
    pub(crate) page_cache: bool,
    /// True if syncs or durable writes are requested.
    pub(crate) asks_durable: bool,
    /// Mean length of an operation in bytes, for a block that completed none; 0 if that is not known.
    pub(crate) length: f64,
}

impl Way {
    /// Returns the method of `jobs` together.
    pub(crate) fn from_jobs<'a>(jobs: impl Iterator<Item = &'a Job>) -> Self {
        let jobs: Vec<&Job> = jobs.collect();
        let lengths = jobs.iter().map(|job| job.workload.block_mean() as f64);
        // A program counts as durable, since it syncs by itself.
        let is_durable = |job: &&Job| job.workload.durability.is_any() || job.program.is_some();
        Self {
            page_cache: jobs.iter().all(|job| job.opening.caching.is_cached()),
            asks_durable: jobs.iter().any(is_durable),
            length: lengths.sum::<f64>() / jobs.len().max(1) as f64,
        }
    }

    fn counts(self, sides: &Sides) -> Counts {
        let unsynced_writes = if self.asks_durable { 0 } else { sides.write.ios };
        Counts { page_cache: self.page_cache, unsynced_writes, ..Counts::from_sides(sides) }
    }
}

/// Creates the block of `sides`, written by the method `way`, measured in `seconds`.
pub(crate) fn block_of(sides: &Sides, way: Way, seconds: f64) -> Block {
    let read = |(name, of): &Figure| Some(((*name).to_owned(), of(sides).filter(|value| *value > 0.0)?));
    let mut figures: BTreeMap<String, f64> = FIGURES.iter().filter_map(read).collect();
    if sides.application.operations == 0 {
        let bytes = figures.get(DEFAULT_FIGURE).map(|iops| iops * way.length).filter(|bytes| *bytes > 0.0);
        figures.extend(bytes.map(|bytes| (LENGTHS_FIGURE.to_owned(), bytes)));
    }
    let settled_after = sides.quality.ramp_seconds;
    Block { seconds, settled_after, figures, counts: way.counts(sides), ..Block::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_completed_nothing_has_rates_of_half_an_operation() {
        let mut sides = Sides::default();
        sides.application.seconds = 2.0;
        let way = Way { page_cache: false, asks_durable: false, length: 4096.0 };
        let figures = block_of(&sides, way, 2.0).figures;
        assert_eq!((figures[DEFAULT_FIGURE], figures[LENGTHS_FIGURE], figures.len()), (0.25, 1024.0, 2));
        let figures = block_of(&sides, Way { length: 0.0, ..way }, 2.0).figures;
        assert!(!figures.contains_key(LENGTHS_FIGURE));
    }
}

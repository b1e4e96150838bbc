//! Measurements of a block: figures to compare, and counts to explain them with.

use std::collections::BTreeMap;

use plumb_load::LoadOutcome;
use plumb_report::document::Sides;
use plumb_report::document::comparison::{Block, Counts};

/// A figure, and how it is read.
type Figure = (&'static str, fn(&Sides) -> Option<f64>);

/// All figures. A ratio above 1 is good for the first three, and bad for the others.
const FIGURES: [Figure; 14] = [
    ("iops", iops),
    // See `of_transactions`.
    (PROFILE_FIGURE, |_| None),
    ("bytes-per-second", |sides| Some(sides.application.bytes_per_second)),
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

/// The figure that decides unless another one is named.
pub(crate) const DEFAULT_FIGURE: &str = "iops";
/// Figure that decides where operations start on a schedule, unless another one is named: their rate is that
/// of the schedule.
pub(crate) const SCHEDULED_FIGURE: &str = "p99";

/// Figure that decides for a profile over files, unless another one is named: its transactions per second.
pub(crate) const PROFILE_FIGURE: &str = "transactions";

/// Returns the names of all figures. Times are those of an operation unless they say of what.
pub(crate) fn figure_names() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|(name, _)| *name)
}

/// Parses the name of a figure.
///
/// # Errors
/// The names that there are.
pub fn figure(typed: &str) -> Result<String, String> {
    let known = figure_names().find(|name| *name == typed).map(str::to_owned);
    known.ok_or_else(|| format!("expected one of {}", figure_names().collect::<Vec<_>>().join(", ")))
}

/// Returns the operations per second. Where none completed it is taken for half of one: a logarithm is
/// needed, and the block is no other's.
fn iops(sides: &Sides) -> Option<f64> {
    let application = &sides.application;
    let is_empty = application.operations == 0 && application.seconds > 0.0;
    Some(if is_empty { 0.5 / application.seconds } else { application.iops })
}

/// Returns the block of a profile over files: what it does from one operation to the next it does from one
/// transaction to the next. Each of `threads` is always in one.
pub(crate) fn of_transactions(mut block: Block, outcome: &LoadOutcome, threads: u32) -> Block {
    let Some(transactions) = &outcome.transactions else { return block };
    let counts = &mut block.counts;
    if counts.operations == 0 {
        block.figures.remove(DEFAULT_FIGURE);
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

/// Builds the block of what was measured in `seconds` seconds.
pub fn block_of_sides(sides: &Sides, seconds: f64) -> Block {
    block_of(sides, Way { page_cache: false, asks_durable: true }, seconds)
}

/// Way of the writes of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// True if all operations go through the page cache.
    pub(crate) page_cache: bool,
    /// True if a sync or a durable write is asked for.
    pub(crate) asks_durable: bool,
}

/// Returns the block that measured `sides` in so many seconds.
pub(crate) fn block_of(sides: &Sides, way: Way, seconds: f64) -> Block {
    let read = |(name, of): &Figure| Some(((*name).to_owned(), of(sides).filter(|value| *value > 0.0)?));
    let figures: BTreeMap<String, f64> = FIGURES.iter().filter_map(read).collect();
    let settled_after = sides.quality.ramp_seconds;
    let page_cache = way.page_cache;
    let unsynced_writes = if way.asks_durable { 0 } else { sides.write.ios };
    let counts = Counts { page_cache, unsynced_writes, ..Counts::from_sides(sides) };
    Block { seconds, settled_after, figures, counts, ..Block::default() }
}

//! What a block measured: figures to compare, and counts to explain them with.

use std::collections::BTreeMap;

use plumb_measure::Latency;
use plumb_report::document::comparison::{Block, Counts};
use plumb_report::document::{RunSpan, Sides};

/// A figure, and how it is read.
type Figure = (&'static str, fn(&Sides) -> Option<f64>);

/// All figures. A ratio above 1 is good for the first two, and bad for the others.
const FIGURES: [Figure; 13] = [
    ("iops", iops),
    ("bytes-per-second", |sides| Some(sides.application.bytes_per_second)),
    ("mean", |sides| Some(operation(sides)?.mean)),
    ("p50", |sides| Some(operation(sides)?.p50)),
    ("p99", |sides| Some(operation(sides)?.p99)),
    ("p999", |sides| Some(operation(sides)?.p999)),
    ("sync-mean", |sides| Some(sides.sync.latency?.mean)),
    ("sync-p50", |sides| Some(sides.sync.latency?.p50)),
    ("sync-p99", |sides| Some(sides.sync.latency?.p99)),
    ("durable-mean", |sides| Some(sides.durable_latency?.mean)),
    ("durable-p50", |sides| Some(sides.durable_latency?.p50)),
    ("durable-p99", |sides| Some(sides.durable_latency?.p99)),
    ("cpu-per-million", Sides::cpu_per_million),
];

/// The figure that decides unless another one is named.
pub(crate) const DEFAULT_FIGURE: &str = "iops";
/// The same where operations start on a schedule: their rate is that of the schedule.
pub(crate) const SCHEDULED_FIGURE: &str = "p99";

/// The names of all figures. Times are those of an operation unless they say of what.
pub fn figure_names() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|(name, _)| *name)
}

/// Operations per second. Where none completed it is taken for half of one: a logarithm is needed, and the block is no other's.
fn iops(sides: &Sides) -> Option<f64> {
    let application = &sides.application;
    let is_empty = application.operations == 0 && application.seconds > 0.0;
    Some(if is_empty { 0.5 / application.seconds } else { application.iops })
}

/// The time of an operation; with a schedule, since it was meant to start.
fn operation(sides: &Sides) -> Option<Latency> {
    sides.application.latency_from_intended_start.or(sides.application.latency)
}

/// What a block of `level` in `round` measured.
pub(crate) fn block_of(span: &RunSpan, level: usize, round: u64) -> Block {
    Block { level, round, ..block_of_sides(&span.total, span.duration) }
}

/// What was measured in so many seconds.
pub fn block_of_sides(sides: &Sides, seconds: f64) -> Block {
    let read = |(name, of): &Figure| Some(((*name).to_owned(), of(sides).filter(|value| *value > 0.0)?));
    let figures: BTreeMap<String, f64> = FIGURES.iter().filter_map(read).collect();
    let settled_after = sides.quality.ramp_seconds;
    Block { seconds, settled_after, figures, counts: Counts::of(sides), ..Block::default() }
}

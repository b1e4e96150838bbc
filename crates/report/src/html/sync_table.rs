//! The table of the cost of a durable write, and what became of its flushes.

use plumb_measure::{FlushWrites, Latency, StorageSide, SyncMethod};

use crate::document::{RunDocument, RunTarget};
use crate::figures::{STATISTICS, writes_without_flushes};
use crate::printable::printable;
use crate::quantity::{self, DurationUnit};
use crate::{headline, wording};

/// The table: statistics down, methods across.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SyncTable {
    /// The unit of the durations in words.
    pub(super) unit_name: &'static str,
    /// One column for each method.
    pub(super) methods: Vec<MethodColumn>,
    /// The rows.
    pub(super) rows: Vec<StatisticRow>,
    /// Why a method is missing.
    pub(super) notes: Vec<String>,
}

/// The head of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MethodColumn {
    /// `overwrite`.
    pub(super) short: &'static str,
    /// `fdatasync`.
    pub(super) how: &'static str,
    /// The name of its colour in the style sheet.
    pub(super) colour: String,
}

/// One statistic.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatisticRow {
    /// `p99`.
    pub(super) label: &'static str,
    /// The unit, if it is not in the cells.
    pub(super) unit: &'static str,
    /// One cell for each method.
    pub(super) cells: Vec<String>,
    /// Whether a line is drawn above.
    pub(super) line: bool,
    /// Whether it stands out.
    pub(super) strong: bool,
}

/// The colour of the `index`th method, in the table and in the chart.
pub(super) fn colour(index: usize) -> String {
    format!("--series-{}", index % 6 + 1)
}

/// The targets that measure what a durable write costs, with the method; those without a figure are left out.
pub(super) fn measured(document: &RunDocument) -> impl Iterator<Item = (SyncMethod, &RunTarget, &Latency)> {
    document.targets.iter().filter_map(|target| {
        Some((document.job_of(target)?.method?, target, target.sides.durable_latency.as_ref()?))
    })
}

impl SyncTable {
    /// The table of a run. Methods that could not be measured become notes.
    pub(super) fn of(document: &RunDocument) -> Self {
        let measured: Vec<_> = measured(document).collect();
        let missing = document.targets.iter().filter(|target| target.sides.durable_latency.is_none());
        let note = |target: &RunTarget| {
            let method = document.job_of(target)?.method?;
            let why = target.failed_because.as_deref().unwrap_or("no operation completed");
            let why = headline::sentence(&printable(why));
            Some(format!("{} was not measured: {why}", wording::method(method)))
        };
        let unit = DurationUnit::for_typical(measured.iter().map(|(.., latency)| latency.p50));
        let methods = measured.iter().enumerate().map(|(index, (method, ..))| MethodColumn {
            short: wording::method_short(*method),
            how: wording::method_call(*method),
            colour: colour(index),
        });
        let targets: Vec<&RunTarget> = measured.iter().map(|(_, target, _)| *target).collect();
        Self {
            unit_name: unit.name(),
            methods: methods.collect(),
            rows: if targets.is_empty() { Vec::new() } else { rows(&targets, unit) },
            notes: missing.filter_map(note).collect(),
        }
    }
}

fn rows(measured: &[&RunTarget], unit: DurationUnit) -> Vec<StatisticRow> {
    let mut rows = Vec::new();
    let mut add = |label, unit, line, of: &dyn Fn(&RunTarget) -> String| {
        let cells = measured.iter().map(|target| of(target)).collect();
        rows.push(StatisticRow { label, unit, cells, line, strong: label == "p50" });
    };
    let shown = |latency: Option<&Latency>, of: fn(&Latency) -> f64| {
        quantity::or_dash(latency, |latency| unit.show(of(latency)))
    };
    for (label, of) in STATISTICS {
        add(label, unit.symbol(), label == "min", &|target| shown(target.sides.durable_latency.as_ref(), of));
    }
    let apart = |target: &RunTarget, latency: Option<Latency>| {
        shown(latency.filter(|_| target.sides.sync.is_used()).as_ref(), |latency| latency.p50)
    };
    add("p50, write", unit.symbol(), true, &|target| apart(target, target.sides.write.latency));
    add("p50, sync", unit.symbol(), false, &|target| apart(target, target.sides.sync.latency));
    add("durable writes", "/s", true, &|target| quantity::rate(target.sides.application.iops));
    add("measured", "", false, &|target| quantity::count(target.sides.application.operations));
    rows
}

/// The writes of a window, as far as they can be told from its flushes.
fn writes(storage: &StorageSide) -> String {
    match storage.flush_writes {
        FlushWrites::TakenOut => writes_without_flushes(storage.writes, storage.flushes),
        FlushWrites::NotCounted | FlushWrites::Unknown => quantity::count(storage.writes),
    }
}

/// One row of the flush accounts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FlushRow {
    /// The method, or the target.
    pub(super) name: String,
    /// Syncs, or writes that are durable when they complete.
    pub(super) syncs: String,
    /// Flushes that the devices were handed.
    pub(super) flushes: String,
    /// Whether there was none although there were syncs.
    pub(super) zero: bool,
    /// Flushes for each sync.
    pub(super) per: String,
    /// Mean time of a flush.
    pub(super) mean: String,
    /// Writes that the devices were handed.
    pub(super) writes: String,
    /// What is to be said about it: why it is unknown, or each device.
    pub(super) words: String,
}

/// The flush accounts of the targets that made something durable.
pub(super) fn flush_rows(document: &RunDocument) -> Vec<FlushRow> {
    let labelled = document.labels().into_iter().zip(&document.targets);
    let flushed = labelled.filter(|(_, target)| target.sides.syncs() > 0);
    flushed.filter(|(_, target)| flushes_or_is_durable(document, target)).map(flush_row).collect()
}

/// Whether its job makes writes durable.
fn flushes_or_is_durable(document: &RunDocument, target: &RunTarget) -> bool {
    document.job_of(target).is_some_and(|job| job.flush.is_some() || job.durable_write_every.is_some())
}

fn flush_row((label, target): (String, &RunTarget)) -> FlushRow {
    let sides = &target.sides;
    let storage = sides.storage.as_ref();
    let flushes = storage.and_then(|storage| storage.flushes);
    let mut words = Vec::new();
    if flushes.is_none() {
        let why = headline::sentence(&printable(sides.flushes_unknown_because()));
        words.push(format!("Not known: {why}"));
    }
    let devices = storage.map_or(&[][..], |storage| &storage.devices);
    if devices.len() > 1 {
        let each: Vec<String> = devices
            .iter()
            .map(|device| {
                format!("{} {}", printable(&device.name), quantity::or_dash(device.flushes, quantity::count))
            })
            .collect();
        words.push(format!("Flushes by device: {}.", each.join(", ")));
    }
    FlushRow {
        name: printable(&label),
        syncs: quantity::count(sides.syncs()),
        flushes: quantity::or_dash(flushes, quantity::count),
        // A direct write may be durable by FUA, without any flush.
        zero: flushes == Some(0) && sides.sync.is_used(),
        per: quantity::or_dash(sides.flushes_per_sync(), |per| format!("{per:.2}")),
        mean: quantity::or_dash(storage.and_then(|storage| storage.flush_mean), quantity::duration),
        writes: quantity::or_dash(storage, writes),
        words: words.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn writes_beside_many_flushes_are_a_lower_bound() {
        let mut document = fixture::virtual_machine();
        assert_eq!(flush_rows(&document)[0].writes, "at least 52,410");
        let storage = document.targets[0].sides.storage.as_mut().unwrap();
        storage.flushes = Some(5241);
        assert_eq!(flush_rows(&document)[0].writes, "52,410");
        let storage = document.targets[0].sides.storage.as_mut().unwrap();
        (storage.flushes, storage.flush_writes) = (Some(52_410), FlushWrites::NotCounted);
        assert_eq!(flush_rows(&document)[0].writes, "52,410", "nothing was taken out");
    }
}

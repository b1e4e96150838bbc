//! The table of the cost of a durable write, and what became of its flushes.

use plumb_measure::{FlushWrites, Latency, StorageSide, SyncMethod, SyncResult};

use crate::figures::{STATISTICS, per_second, writes_without_flushes};
use crate::printable::printable;
use crate::quantity::{self, DurationUnit, NONE};
use crate::{headline, wording};

/// The table: statistics down, methods across.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SyncTable {
    /// Whether any method was measured.
    pub(super) has_rows: bool,
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

impl SyncTable {
    /// The table of `sync`. Methods that could not be measured become notes.
    pub(super) fn of(sync: &[SyncResult]) -> Self {
        let measured: Vec<&SyncResult> = sync.iter().filter(|result| result.latency.is_some()).collect();
        let notes = sync
            .iter()
            .filter(|result| result.latency.is_none())
            .map(|result| {
                let why = result.failed_because.as_deref().unwrap_or("no operation completed");
                format!(
                    "{} was not measured: {}",
                    wording::method(result.method),
                    headline::sentence(&printable(why))
                )
            })
            .collect();
        let unit = DurationUnit::for_typical(
            measured.iter().filter_map(|result| result.latency.as_ref()).map(|latency| latency.p50),
        );
        let methods = measured
            .iter()
            .enumerate()
            .map(|(index, result)| MethodColumn {
                short: wording::method_short(result.method),
                how: wording::method_call(result.method),
                colour: colour(index),
            })
            .collect();
        Self {
            has_rows: !measured.is_empty(),
            unit_name: unit.name(),
            methods,
            rows: rows(&measured, unit),
            notes,
        }
    }
}

fn rows(measured: &[&SyncResult], unit: DurationUnit) -> Vec<StatisticRow> {
    let mut rows = Vec::new();
    for (label, of) in STATISTICS {
        let cells =
            measured.iter().map(|r| quantity::or_dash(r.latency.as_ref(), |l| unit.show(of(l)))).collect();
        let line = matches!(label, "min");
        rows.push(StatisticRow { label, unit: unit.symbol(), cells, line, strong: label == "p50" });
    }
    let mut add = |label, unit, line, of: &dyn Fn(&SyncResult) -> String| {
        rows.push(StatisticRow {
            label,
            unit,
            line,
            strong: false,
            cells: measured.iter().map(|result| of(result)).collect(),
        });
    };
    let p50 =
        |latency: &Option<Latency>| quantity::or_dash(latency.as_ref(), |latency| unit.show(latency.p50));
    add("p50, write", unit.symbol(), true, &|result| p50(&result.write_latency));
    add("p50, sync", unit.symbol(), false, &|result| p50(&result.sync_latency));
    add("durable writes", "/s", true, &|result| {
        per_second(result).map_or_else(|| NONE.to_owned(), quantity::rate)
    });
    add("measured", "", false, &|result| quantity::count(result.operations));
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
    /// The method.
    pub(super) method: &'static str,
    /// Durable writes.
    pub(super) syncs: String,
    /// Flushes that the devices were handed.
    pub(super) flushes: String,
    /// Whether there was none although there were durable writes.
    pub(super) zero: bool,
    /// Flushes per durable write.
    pub(super) per: String,
    /// Mean time of a flush.
    pub(super) mean: String,
    /// Writes that the devices were handed.
    pub(super) writes: String,
    /// What is to be said about it: why it is unknown, or each device.
    pub(super) words: String,
}

/// The flush accounts of `sync`; methods that could not be measured are left out.
pub(super) fn flush_rows(sync: &[SyncResult]) -> Vec<FlushRow> {
    sync.iter().filter(|result| result.operations > 0).map(flush_row).collect()
}

fn flush_row(result: &SyncResult) -> FlushRow {
    let storage = result.storage.as_ref();
    let mut words = Vec::new();
    if result.device_flushes.is_none() {
        let why = result.device_flushes_unknown_because.as_deref().unwrap_or("the devices could not be read");
        words.push(format!("Not known: {}", headline::sentence(&printable(why))));
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
        method: wording::method(result.method),
        syncs: quantity::count(result.operations),
        flushes: quantity::or_dash(result.device_flushes, quantity::count),
        // A direct write may be durable by FUA, without any flush.
        zero: result.device_flushes == Some(0) && result.method != SyncMethod::DirectDsync,
        per: quantity::or_dash(result.flushes_per_sync, |per| format!("{per:.2}")),
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
        assert_eq!(flush_rows(&document.sync)[0].writes, "at least 52,410");
        let storage = document.sync[0].storage.as_mut().unwrap();
        storage.flushes = Some(5241);
        assert_eq!(flush_rows(&document.sync)[0].writes, "52,410");
        let storage = document.sync[0].storage.as_mut().unwrap();
        (storage.flushes, storage.flush_writes) = (Some(52_410), FlushWrites::NotCounted);
        assert_eq!(flush_rows(&document.sync)[0].writes, "52,410", "nothing was taken out");
    }
}

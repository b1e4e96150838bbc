//! Tables of figures: the cost of a durable write, and application and storage side.

use plumb_block::SyncMethod;
use plumb_measure::Latency;
use plumb_path::WritePath;
use plumb_text::printable;

use super::Style;
use super::pen::Ink;
use super::table::{Cell, Table};
use super::wrap::hang;
use crate::document::{RunDocument, RunTarget};
use crate::figures::{FlushCount, STATISTICS, SideRow};
use crate::quantity::{DurationUnit, bytes, count, counted, duration, flush_time, mebibytes, or_dash, rate};
use crate::{headline, levels, wording};

/// Column of the table of sides: its name, and its content.
type Column = (&'static str, fn(&SideRow) -> String);

/// Columns of the table of sides.
const COLUMNS: [Column; 8] = [
    ("IOPS", |side| or_dash(side.iops, rate)),
    ("MiB/s", |side| or_dash(side.bytes_per_second, mebibytes)),
    ("mean I/O", |side| or_dash(side.size, bytes)),
    ("p50", |side| or_dash(side.latency, |latency| duration(latency.p50))),
    ("p99", |side| or_dash(side.latency, |latency| duration(latency.p99))),
    ("p99.9", |side| or_dash(side.latency, |latency| duration(latency.p999))),
    ("max", |side| or_dash(side.latency, |latency| duration(latency.max))),
    ("flushes", |side| or_dash(side.flushes, count)),
];
/// Columns that are left out on narrow terminals, the least important first.
const DISPENSABLE: [&str; 6] = ["p99.9", "max", "mean I/O", "p50", "flushes", "p99"];

/// Target that measures the cost of a durable write, with its method.
pub(crate) type MeasuredTarget<'a> = (SyncMethod, &'a RunTarget, &'a Latency);

/// Returns the cost of a durable write with its parts, with methods as columns; `None` if none was measured.
pub(crate) fn durable_table(document: &RunDocument) -> Option<(DurationUnit, Table)> {
    let measured: Vec<MeasuredTarget<'_>> = measured(document).collect();
    let unit = DurationUnit::for_typical(measured.iter().filter_map(|(.., latency)| latency.p50));
    let mut table = methods_table(&measured, unit, true);
    let mut add = |name: &str, of: &dyn Fn(&RunTarget) -> String| {
        let cells = measured.iter().map(|(_, target, _)| Cell::plain(of(target)));
        table.row(std::iter::once(Cell::plain(name)).chain(cells).collect());
    };
    let p50 = |target: &RunTarget, latency: Option<Latency>| {
        or_dash(latency.filter(|_| target.sides.sync.is_used()), |latency| unit.show(latency.p50))
    };
    add("p50, write", &|target| p50(target, target.sides.write.latency));
    add("p50, sync", &|target| p50(target, target.sides.sync.latency));
    add("measured", &|target| count(target.sides.application.operations));
    (!measured.is_empty()).then_some((unit, table))
}

/// Returns the targets that measure the cost of a durable write, without those that have no figure.
pub(crate) fn measured(document: &RunDocument) -> impl Iterator<Item = MeasuredTarget<'_>> {
    document.targets.iter().filter_map(|target| {
        Some((document.job_of(target)?.method?, target, target.sides.durable_latency.as_ref()?))
    })
}

/// Returns the cost of a durable write, and the fate of its flushes. Methods are rows, or columns if the
/// lines are too short.
pub(super) fn durable_writes(document: &RunDocument, style: Style) -> String {
    let methods: Vec<(SyncMethod, &RunTarget)> = document
        .targets
        .iter()
        .filter_map(|target| Some((document.job_of(target)?.method?, target)))
        .collect();
    let measured: Vec<MeasuredTarget<'_>> = measured(document).collect();
    let unit = DurationUnit::for_typical(measured.iter().filter_map(|(.., latency)| latency.p50));
    let mut out = String::new();
    if !measured.is_empty() {
        let down = methods_table(&measured, unit, false);
        let table = if down.width() <= style.columns() { down } else { methods_table(&measured, unit, true) };
        out.push_str(&table.show(style));
    }
    for (method, target) in methods {
        out.push_str(&hang("  ", &flush_words(document, method, target), style.columns()));
    }
    out
}

/// Returns the statistics of each method as a row, or with `across` as a column under its call.
fn methods_table(measured: &[MeasuredTarget<'_>], unit: DurationUnit, across: bool) -> Table {
    let ink = |name: &str| if name == "p50" { Ink::Bold } else { Ink::Plain };
    let lead = |text: &str| Cell::inked(Ink::Dim, text);
    let mut head = vec![lead(unit.symbol())];
    head.extend(across.then(|| Cell::plain("")));
    head.extend(STATISTICS.map(|(name, _)| if across { Cell::inked(ink(name), name) } else { lead(name) }));
    head.push(if across { Cell::plain("per second") } else { lead("per second") });
    let mut rows = vec![head];
    for (method, target, latency) in measured {
        let mut row = match across {
            true => vec![lead(wording::method_write(*method)), lead(wording::method_call(*method))],
            false => vec![Cell::plain(wording::method(*method))],
        };
        row.extend(STATISTICS.map(|(name, of)| Cell::inked(ink(name), unit.show(of(latency)))));
        row.push(Cell::plain(rate(target.sides.application.iops)));
        rows.push(row);
    }
    if across {
        let columns = 0..rows[0].len();
        rows = columns.map(|column| rows.iter().map(|row| row[column].clone()).collect()).collect();
    }
    Table::of_figures(rows)
}

/// Describes the fate of the flushes of one method, or why it was not measured. Flushes of all programs are
/// not compared with its writes.
fn flush_words(document: &RunDocument, method: SyncMethod, target: &RunTarget) -> String {
    let name = wording::method(method);
    let (sides, path) = (&target.sides, document.path_of(target));
    if sides.durable_latency.is_none() {
        let why = target.failed_because.as_deref().unwrap_or("no operation completed");
        return format!("{name}: not measured: {}", headline::sentence(&printable(why)));
    }
    let what = levels::synced_writes(document, [target]);
    let writes = format!("{name}: {} {what}", count(sides.application.operations));
    let Some(flushes) = sides.storage.as_ref().and_then(FlushCount::from_storage) else {
        let why = headline::sentence(&printable(sides.flushes_unknown_because()));
        return format!("{writes}, device flushes not known: {why}");
    };
    let mean = sides.storage.as_ref().and_then(|storage| storage.flush_mean);
    let each = mean.map_or_else(String::new, |mean| format!(", {} a flush", flush_time(mean)));
    if flushes.is_of_all() {
        return format!("{writes}; {} were counted meanwhile{each}.", flushes.words());
    }
    let per = flushes.count as f64 / sides.syncs().max(1) as f64;
    let by = path.and_then(WritePath::synchronous).filter(|_| sides.sync.is_used());
    let why = by.map_or_else(String::new, |by| format!(" (the {by} flushes each write, its sync once more)"));
    format!("{writes}, {}, {per:.2} for each{why}{each}.", counted(flushes.count, "device flush"))
}

/// Name and rows of a group.
pub(crate) type Group = (String, Vec<SideRow>);

/// Returns the table of `groups`. Columns are left out, the least important first, until it fits.
pub(super) fn side_table(groups: &[Group], style: Style) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let tables = (0..=DISPENSABLE.len()).map(|left_out| side_table_without(groups, &DISPENSABLE[..left_out]));
    let mut tables = tables.skip_while(|table| table.width() > style.columns());
    tables.next().unwrap_or_else(|| side_table_without(groups, &DISPENSABLE)).show(style)
}

pub(crate) fn side_table_without(groups: &[Group], without: &[&str]) -> Table {
    let is_cut = !without.is_empty();
    let side_of = |of: &SideRow| if is_cut && of.side == "application" { "app" } else { of.side };
    let rows = groups.iter().flat_map(|(name, rows)| {
        rows.iter()
            .enumerate()
            .map(move |(number, side)| (if number == 0 { name.as_str() } else { "" }, side))
    });
    let table = Table::for_rows(rows)
        .left("", |(name, _)| Cell::inked(Ink::Bold, *name))
        .left("", |(_, side)| side_of(side));
    let shown = COLUMNS.iter().filter(|(name, _)| !without.contains(name));
    let columns = shown.fold(table, |table, (name, of)| {
        let ink = |side: &SideRow| if side.zero && *name == "IOPS" { Ink::Red } else { Ink::Plain };
        table.right(name, |(_, side)| Cell::inked(ink(side), of(side)))
    });
    columns.table()
}

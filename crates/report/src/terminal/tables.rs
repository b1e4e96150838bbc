//! The two tables of figures: the cost of a durable write, and application beside storage.

use plumb_measure::{IoResult, SyncResult};

use super::Style;
use super::pen::Ink;
use super::table::{Cell, Side, Table};
use super::wrap::hang;
use crate::figures::{STATISTICS, SideRow, per_second, side_rows};
use crate::printable::printable;
use crate::quantity::{self, DurationUnit};
use crate::{headline, wording};

/// The cost of a durable write, and where its flushes went. Methods across if the lines are too short for them down.
pub(super) fn durable_writes(sync: &[SyncResult], style: Style) -> String {
    let measured: Vec<&SyncResult> = sync.iter().filter(|result| result.latency.is_some()).collect();
    let unit = DurationUnit::for_typical(
        measured.iter().filter_map(|result| result.latency.as_ref()).map(|latency| latency.p50),
    );
    let mut out = String::new();
    if !measured.is_empty() {
        let down = methods_down(&measured, unit);
        let table = if down.width() <= style.columns() { down } else { methods_across(&measured, unit) };
        out.push_str(&table.show(style));
    }
    for result in sync {
        out.push_str(&hang("  ", &flush_words(result), style.columns()));
    }
    out
}

fn methods_down(measured: &[&SyncResult], unit: DurationUnit) -> Table {
    let title = unit.symbol();
    let mut head = vec![(title, Side::Left)];
    head.extend(STATISTICS.iter().map(|(name, _)| (*name, Side::Right)));
    head.push(("per second", Side::Right));
    let mut table = Table::new(&head);
    for result in measured {
        let Some(latency) = &result.latency else { continue };
        let mut row = vec![Cell::plain(wording::method(result.method))];
        row.extend(STATISTICS.iter().map(|(name, of)| {
            Cell::inked(if *name == "p50" { Ink::Bold } else { Ink::Plain }, unit.show(of(latency)))
        }));
        row.push(Cell::plain(quantity::or_dash(per_second(result), quantity::rate)));
        table.row(row);
    }
    table
}

fn methods_across(measured: &[&SyncResult], unit: DurationUnit) -> Table {
    let mut head = vec![(unit.symbol(), Side::Left)];
    head.extend(measured.iter().map(|result| (wording::method_short(result.method), Side::Right)));
    let mut table = Table::new(&head);
    let mut calls = vec![Cell::plain("")];
    calls.extend(measured.iter().map(|result| Cell::inked(Ink::Dim, wording::method_call(result.method))));
    table.row(calls);
    for (name, of) in STATISTICS {
        let ink = if name == "p50" { Ink::Bold } else { Ink::Plain };
        let mut row = vec![Cell::inked(ink, name)];
        row.extend(measured.iter().map(|result| {
            Cell::inked(ink, quantity::or_dash(result.latency.as_ref(), |latency| unit.show(of(latency))))
        }));
        table.row(row);
    }
    let mut rates = vec![Cell::plain("per second")];
    rates.extend(
        measured.iter().map(|result| Cell::plain(quantity::or_dash(per_second(result), quantity::rate))),
    );
    table.row(rates);
    table
}

/// What became of the flushes of one method, or why it was not measured.
fn flush_words(result: &SyncResult) -> String {
    let name = wording::method(result.method);
    if result.operations == 0 || result.latency.is_none() {
        let why = result.failed_because.as_deref().unwrap_or("no operation completed");
        return format!("{name}: not measured: {}", headline::sentence(&printable(why)));
    }
    let writes = quantity::count(result.operations);
    match (result.device_flushes, result.flushes_per_sync) {
        (Some(flushes), Some(per)) => {
            let mean = result.storage.as_ref().and_then(|storage| storage.flush_mean);
            let each =
                mean.map_or_else(String::new, |mean| format!(", {} a flush", quantity::duration(mean)));
            format!(
                "{name}: {writes} durable writes, {} device flushes, {per:.2} for each{each}.",
                quantity::count(flushes)
            )
        }
        _ => {
            let why =
                result.device_flushes_unknown_because.as_deref().unwrap_or("the devices could not be read");
            format!(
                "{name}: {writes} durable writes, device flushes not known: {}",
                headline::sentence(&printable(why))
            )
        }
    }
}

/// Application beside storage, by the loads of a check.
pub(super) fn sides(io: &[IoResult], style: Style) -> String {
    let groups: Vec<Group> = io
        .iter()
        .filter(|io| io.application.is_some())
        .map(|io| (printable(&io.name), side_rows(io.application.as_ref(), io.storage.as_ref())))
        .collect();
    let columns = ["IOPS", "MiB/s", "mean I/O", "p50", "p99", "flushes"];
    let mut out = side_table(&groups, &columns, &["p50", "flushes", "p99"], style);
    for io in io.iter().filter(|io| io.application.is_none() || io.failed_because.is_some()) {
        let why = io.failed_because.as_deref().unwrap_or("no figures were kept");
        let text = format!("{}: not measured: {}", printable(&io.name), headline::sentence(&printable(why)));
        out.push_str(&hang("  ", &text, style.columns()));
    }
    let mut unknown: Vec<&str> = io
        .iter()
        .filter(|io| io.application.is_some() && io.storage.is_none())
        .filter_map(|io| io.storage_unknown_because.as_deref())
        .collect();
    unknown.dedup();
    for why in unknown {
        let text = format!("What the storage saw is not known: {}", headline::sentence(&printable(why)));
        out.push_str(&hang("  ", &text, style.columns()));
    }
    out
}

/// What is measured together, with its name and its rows.
pub(super) type Group = (String, Vec<SideRow>);

/// The table of `groups`. While it is too wide, the columns of `dispensable` are left out, one after the other.
pub(super) fn side_table(groups: &[Group], columns: &[&str], dispensable: &[&str], style: Style) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut table = side_table_without(groups, columns, &[]);
    for left_out in 1..=dispensable.len() {
        if table.width() <= style.columns() {
            break;
        }
        table = side_table_without(groups, columns, &dispensable[..left_out]);
    }
    table.show(style)
}

fn side_table_without(groups: &[Group], columns: &[&str], without: &[&str]) -> Table {
    let shown: Vec<&str> = columns.iter().copied().filter(|name| !without.contains(name)).collect();
    let mut head = vec![("", Side::Left), ("", Side::Left)];
    head.extend(shown.iter().map(|name| (*name, Side::Right)));
    let mut table = Table::new(&head);
    for (name, rows) in groups {
        for (number, side) in rows.iter().enumerate() {
            let name = if number == 0 { name.clone() } else { String::new() };
            let short = if !without.is_empty() && side.side == "application" { "app" } else { side.side };
            let mut row = vec![Cell::inked(Ink::Bold, name), Cell::plain(short)];
            row.extend(shown.iter().map(|column| cell(side, column)));
            table.row(row);
        }
    }
    table
}

fn cell(side: &SideRow, column: &str) -> Cell {
    let text = match column {
        "IOPS" => return Cell::inked(if side.zero { Ink::Red } else { Ink::Plain }, side.iops.clone()),
        "MiB/s" => &side.mib,
        "mean I/O" => &side.size,
        "p50" => &side.p50,
        "p99" => &side.p99,
        "p99.9" => &side.p999,
        "max" => &side.max,
        _ => &side.flushes,
    };
    Cell::plain(text.clone())
}

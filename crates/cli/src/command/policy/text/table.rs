//! Many disks: a line each, and below what is wrong and what cannot be seen.

use plumb_path::{Finding, Severity};
use plumb_policy::state::Found;
use plumb_policy::view::{DeviceView, PolicyDocument};
use plumb_report::Style;
use plumb_report::terminal::Cell;

use super::layout::{self, Ink, cell, hang, model};
use super::words;

/// The columns, and what they say, if the name does not say it.
const HEAD: [(&str, &str); 12] = [
    ("disk", ""),
    (
        "state",
        "off: the cache is off; on: the cache is on and flushes are sent; protected: it is on and the kernel sends no flushes; \
         none: no write cache of its own",
    ),
    ("cache", "whether the drive says that its write cache is on"),
    ("changeable", "whether the drive lets its write cache be switched"),
    ("default", "the write cache as the maker set it"),
    ("saved", "the write cache after the next power cut"),
    ("kernel", "write back: the kernel sends flushes to the drive; write through: it sends none"),
    ("protection", "who says that the cache survives a power cut"),
    ("worst finding", "its id; the sentence is below"),
    ("transport", ""),
    ("model", ""),
    ("identity", "by what plumb knows the disk again: WWN, EUI or serial number"),
];

/// The disks as a table; where a terminal is too narrow for it, as a paragraph each.
pub(in super::super) fn of(document: &PolicyDocument, style: Style, is_terminal: bool) -> String {
    let rows: Vec<Vec<Cell>> = document.devices.iter().map(row).collect();
    let legend = legend(document, &rows, style);
    let table = layout::table(&HEAD.map(|(name, _)| name), rows);
    let fits = table.width() <= style.width || !is_terminal;
    let mut out = if fits { table.show(style) } else { stacked(document, style) };
    out.push_str(&legend);
    out.push_str(&wrong(document, style));
    style.finish(out)
}

fn row(view: &DeviceView) -> Vec<Cell> {
    let device = &view.device;
    let protection = view.protection.as_ref().map_or("", |protection| protection.rank.word());
    let worst = worst(view)
        .map_or_else(|| plain(""), |finding| cell(words::severity_ink(finding.severity), &finding.id));
    vec![
        cell(Ink::Bold, &view.name),
        state(view),
        plain(words::on_off(device.wce)),
        plain(words::yes_no(device.changeable)),
        plain(words::on_off(device.default)),
        plain(words::on_off(device.saved)),
        plain(view.kernel.write_cache.as_deref().unwrap_or("?")),
        plain(protection),
        worst,
        plain(&view.transport),
        plain(&model(view)),
        plain(view.identity.as_deref().unwrap_or("none")),
    ]
}

fn plain(text: &str) -> Cell {
    cell(Ink::Plain, text)
}

/// Suppressed flushes without a claim are what loses data.
fn state(view: &DeviceView) -> Cell {
    let ink = match view.state {
        Found::Protected if view.protection.is_none() => Ink::Red,
        Found::Off | Found::Protected => Ink::Green,
        Found::Unknown => Ink::Dim,
        Found::On | Found::None => Ink::Plain,
    };
    cell(ink, view.state.word())
}

fn worst(view: &DeviceView) -> Option<&Finding> {
    view.findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info)
        .max_by_key(|finding| finding.severity)
}

fn stacked(document: &PolicyDocument, style: Style) -> String {
    let each = document.devices.iter().map(|view| {
        let device = &view.device;
        let cell = state(view);
        let lead = format!("{}  {}  ", style.ink(Ink::Bold, &view.name), style.ink(cell.ink, &cell.text));
        let cache = format!(
            "cache {} (changeable {}, default {}, saved {}), kernel {}, {} {} {}",
            words::on_off(device.wce),
            words::yes_no(device.changeable),
            words::on_off(device.default),
            words::on_off(device.saved),
            view.kernel.write_cache.as_deref().unwrap_or("?"),
            view.transport,
            model(view),
            view.identity.as_deref().unwrap_or("without identity"),
        );
        format!("{lead}\n{}", hang("    ", &cache, style))
    });
    each.collect()
}

/// Warnings and dangers: what several disks share is said once.
fn wrong(document: &PolicyDocument, style: Style) -> String {
    let said = document.devices.iter().flat_map(|view| {
        let serious = view.findings.iter().filter(|finding| finding.severity > Severity::Info);
        serious.map(|finding| (finding, &*view.name))
    });
    let mut said = grouped(said);
    said.sort_by_key(|(finding, _)| std::cmp::Reverse(finding.severity));
    let each =
        said.iter().map(|(finding, disks)| format!("\n{}", self::finding(finding, Some(disks), style)));
    each.collect()
}

/// Each thing once, with the disks of which it is said.
fn grouped<'a, T: PartialEq>(said: impl Iterator<Item = (T, &'a str)>) -> Vec<(T, Vec<&'a str>)> {
    let mut grouped: Vec<(T, Vec<&str>)> = Vec::new();
    for (thing, disk) in said {
        match grouped.iter_mut().find(|(known, _)| *known == thing) {
            Some((_, disks)) => disks.push(disk),
            None => grouped.push((thing, vec![disk])),
        }
    }
    grouped
}

/// A finding: how bad it is, the sentence, what to do.
pub(super) fn finding(finding: &Finding, disks: Option<&[&str]>, style: Style) -> String {
    let word = finding.severity.word();
    let on = disks.map_or_else(String::new, |disks| format!(", {}", disks.join(" ")));
    let text = format!("{} [{}{on}]", finding.sentence, finding.id);
    let lead = format!("{word:<9}");
    let mut out = hang(&lead, &text, style);
    out = out.replacen(word, &style.ink(words::severity_ink(finding.severity), word), 1);
    if !finding.remedy.is_empty() {
        out.push_str(&hang("         > ", &finding.remedy, style));
    }
    out
}

/// Explains the columns that are shown, and why a value is not known.
fn legend(document: &PolicyDocument, rows: &[Vec<Cell>], style: Style) -> String {
    let shown = |column: usize| rows.iter().any(|row| !row[column].text.is_empty());
    let columns = HEAD.iter().enumerate().filter(|(column, (_, says))| !says.is_empty() && shown(*column));
    let columns = columns.map(|(_, (name, says))| hang(&format!("  {name:<14}"), says, style));
    let unknown = grouped(document.devices.iter().flat_map(unknown));
    let unknown = unknown.iter().map(|((what, why), disks)| {
        hang("  ?             ", &format!("{what} of {}: {why}", disks.join(" ")), style)
    });
    format!("\n{}{}", columns.collect::<String>(), unknown.collect::<String>())
}

/// Lists the values of a disk that are not known, and why.
fn unknown(view: &DeviceView) -> Vec<((&'static str, &str), &str)> {
    let device = &view.device;
    let why = match (device.wce, device.mechanism.as_str()) {
        (None, _) => device.wce_unknown_because.as_deref().unwrap_or("the drive does not say"),
        (_, "ata-identify") => "ATA drives do not report it",
        (_, "virtio-config") => "virtio disks do not report it",
        _ => "the drive does not report it",
    };
    let kernel = view.kernel.write_cache.as_deref().map(|_| true);
    let values = [
        ("cache", device.wce, why),
        ("changeable", device.changeable, why),
        ("default", device.default, why),
        ("saved", device.saved, why),
        ("kernel", kernel, "it has no request queue of its own"),
    ];
    let unknown = values.into_iter().filter(|(_, value, _)| value.is_none());
    unknown.map(|(what, _, why)| ((what, why), &*view.name)).collect()
}

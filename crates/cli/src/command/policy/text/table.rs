//! Many disks: a line each, and below what is wrong and what cannot be seen.

use plumb_path::{Finding, Severity};
use plumb_policy::state::Found;
use plumb_policy::view::{DeviceView, PolicyDocument};
use plumb_report::terminal::Cell;
use plumb_report::{Style, wording};

use super::layout::{self, Ink, cell, hang, model};
use super::words;

const HEAD: [&str; 12] = [
    "disk",
    "state",
    "cache",
    "changeable",
    "default",
    "saved",
    "kernel",
    "protection",
    "worst finding",
    "transport",
    "model",
    "identity",
];

/// The disks as a table; where a terminal is too narrow for it, as a paragraph each.
pub(in super::super) fn of(document: &PolicyDocument, style: Style, is_terminal: bool) -> String {
    let table = layout::table(&HEAD, document.devices.iter().map(row).collect());
    let fits = table.width() <= style.width || !is_terminal;
    let mut out = if fits { table.show(style) } else { stacked(document, style) };
    out.push_str(&wrong(document, style));
    out.push_str(&unseen(document, style));
    style.finish(out)
}

fn row(view: &DeviceView) -> Vec<Cell> {
    let device = &view.device;
    let protection = view.protection.as_ref().map_or("", |protection| words::rank(protection.rank));
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
    let mut said: Vec<(&Finding, Vec<&str>)> = Vec::new();
    for view in &document.devices {
        for finding in view.findings.iter().filter(|finding| finding.severity > Severity::Info) {
            match said.iter_mut().find(|(known, _)| *known == finding) {
                Some((_, disks)) => disks.push(&view.name),
                None => said.push((finding, vec![&view.name])),
            }
        }
    }
    said.sort_by_key(|(finding, _)| std::cmp::Reverse(finding.severity));
    let each =
        said.iter().map(|(finding, disks)| format!("\n{}", self::finding(finding, Some(disks), style)));
    each.collect()
}

/// A finding: how bad it is, the sentence, what to do.
pub(super) fn finding(finding: &Finding, disks: Option<&[&str]>, style: Style) -> String {
    let word = wording::severity(finding.severity);
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

fn unseen(document: &PolicyDocument, style: Style) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for view in document.devices.iter().filter(|view| view.device.wce.is_none()) {
        let why = view.device.wce_unknown_because.as_deref().unwrap_or("it does not say");
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, disks)) => disks.push(&view.name),
            None => reasons.push((why, vec![&view.name])),
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    let lines = reasons.iter().map(|(why, disks)| hang("  ", &format!("{}: {why}", disks.join(" ")), style));
    format!("\nNot seen:\n{}", lines.collect::<String>())
}

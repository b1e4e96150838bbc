//! Write paths alone, without a measurement.

use plumb_path::{Severity, Survey, WritePath};

use super::Style;
use super::path_tree::path_tree;
use super::pen::{self, Ink};
use super::table::{Cell, Side, Table};
use super::verdicts::verdicts;
use super::wrap::hang;
use crate::headline::sentence;
use crate::levels;
use crate::printable::printable;
use crate::wording;

/// The paths of `survey` in full, one below the other.
pub fn survey(survey: &Survey, style: Style) -> String {
    let paths: Vec<String> = survey.paths.iter().map(|path| one(path, style)).collect();
    let text =
        if paths.is_empty() { "Nothing to survey was found.\n".to_owned() } else { paths.join("\n\n") };
    style.finish(text)
}

/// The paths of `survey` as a list, one line each, with the warnings below: for many targets.
pub fn survey_list(survey: &Survey, style: Style) -> String {
    let mut table = Table::new(&[
        ("target", Side::Left),
        ("durable after fsync", Side::Left),
        ("volatile", Side::Left),
        ("worst finding", Side::Left),
    ]);
    for path in &survey.paths {
        let worst = path.findings.iter().max_by_key(|finding| finding.severity);
        let volatile: Vec<String> = path
            .layers
            .iter()
            .filter(|layer| {
                !wording::is_above_devices(layer.kind) && layer.cache == plumb_path::Cache::Volatile
            })
            .map(|layer| printable(&layer.name))
            .collect();
        let volatile = match volatile.as_slice() {
            [] => "–".to_owned(),
            [one] => one.clone(),
            [first, ..] => format!("{first} and {} more", volatile.len() - 1),
        };
        let durable = path.durable_at.fsync.as_deref().map_or_else(|| "not known".to_owned(), printable);
        table.row(vec![
            Cell::plain(printable(&path.target)),
            Cell::inked(if path.durable_at.fsync.is_some() { Ink::Plain } else { Ink::Yellow }, durable),
            Cell::plain(volatile),
            worst.map_or_else(
                || Cell::inked(Ink::Dim, "none"),
                |finding| {
                    let text = format!("{}: {}", wording::severity(finding.severity), printable(&finding.id));
                    Cell::inked(pen::severity(Some(finding.severity)), text)
                },
            ),
        ]);
    }
    let mut out = if table.width() <= style.columns() { table.show(style) } else { stacked(survey, style) };
    for path in &survey.paths {
        let serious: Vec<_> =
            path.findings.iter().filter(|finding| finding.severity > Severity::Info).cloned().collect();
        if !serious.is_empty() {
            out.push_str(&format!(
                "\n{}\n{}",
                style.ink(Ink::Bold, &printable(&path.target)),
                verdicts(&serious, style)
            ));
        }
    }
    style.finish(out)
}

/// The list where lines are too short for a table.
fn stacked(survey: &Survey, style: Style) -> String {
    survey
        .paths
        .iter()
        .map(|path| {
            let way: Vec<String> = path.layers.iter().map(|layer| printable(&layer.name)).collect();
            let target = style.ink(Ink::Bold, &printable(&path.target));
            format!(
                "{target}\n{}{}",
                hang("  ", &way.join(" > "), style.columns()),
                hang("  ", &printable(&sentence(&path.durable_at.sentence)), style.columns())
            )
        })
        .collect()
}

fn one(path: &WritePath, style: Style) -> String {
    let width = style.columns();
    let mut out = format!("{}\n", style.ink(Ink::Bold, &printable(&path.target)));
    out.push_str(&hang("", &printable(&sentence(&path.durable_at.sentence)), width));
    if let Some(below) =
        path.unknown_below.as_ref().filter(|below| !path.durable_at.sentence.contains(*below))
    {
        out.push_str(&hang("", &format!("Unknown below: {}", printable(&sentence(below))), width));
    }
    out.push('\n');
    out.push_str(&path_tree(path, style));
    let identities: String = path
        .layers
        .iter()
        .filter_map(|layer| Some((layer, layer.identity.as_deref()?)))
        .map(|(layer, identity)| {
            hang("  ", &format!("{}: {}", printable(&layer.name), printable(identity)), width)
        })
        .collect();
    if !identities.is_empty() {
        out.push_str(&format!("\n{}\n{identities}", style.ink(Ink::Bold, "Identity")));
    }
    let known =
        levels::acknowledged_at(path).is_some() || path.layers.iter().any(|layer| !layer.evidence.is_empty());
    if known {
        out.push_str(&format!("\n{}\n", style.ink(Ink::Bold, "Evidence")));
        for layer in path.layers.iter().filter(|layer| !layer.evidence.is_empty()) {
            for line in &layer.evidence {
                let text = format!(
                    "{}: {} = {} ({})",
                    printable(&layer.name),
                    printable(&line.source),
                    printable(&line.value),
                    printable(&line.means)
                );
                out.push_str(&style.ink_lines(Ink::Dim, &hang("  ", &text, width)));
            }
        }
    }
    if !path.findings.is_empty() {
        out.push_str(&format!("\n{}\n{}", style.ink(Ink::Bold, "Findings"), verdicts(&path.findings, style)));
    }
    out
}

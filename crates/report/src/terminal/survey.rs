//! Write paths alone, without a measurement.

use plumb_path::{Layer, Severity, Survey, WritePath};
use plumb_text::printable;

use super::head::verdict_line;
use super::path_tree::path_tree;
use super::pen::{self, Ink};
use super::table::{Cell, Table};
use super::verdicts::verdicts;
use super::wrap::hang;
use super::{Style, outline};
use crate::headline::{Headline, sentence};
use crate::levels::{self, FsyncState};
use crate::{exposure, untorn, wording};

/// Meaning of the signs and words of the tree.
const LEGEND: [&str; 4] = [
    "↓ a flush from above arrives here, ✕ it has ended above, ? whether it arrives is not known.",
    "cache: what the layer holds of acknowledged data. Volatile: a power cut empties it; protected: it survives one; none: \
     nothing is held back; unknown: nothing says.",
    "flush: what becomes of a flush. Forwarded: it is passed down, or carried out by a drive; absorbed: it ends here, and \
     nothing volatile is below; dropped: it ends here although something volatile is; unknown: nothing says.",
    "FUA: a write that is durable by itself. Native: it is taken; emulated: it becomes a write and a flush; –: the layer has \
     no FUA.",
];

/// Returns the paths of a survey: a single one in full, several as a list with the problems below.
pub(crate) fn surveyed(of: &Survey, style: Style) -> String {
    if of.paths.len() > 1 { survey_list(of, style) } else { survey(of, style) }
}

/// Returns the paths of `survey` in full.
pub fn survey(survey: &Survey, style: Style) -> String {
    let paths: Vec<String> = survey.paths.iter().map(|path| one(path, style)).collect();
    let text =
        if paths.is_empty() { "Nothing to survey was found.\n".to_owned() } else { paths.join("\n\n") };
    style.finish(text)
}

/// Returns the paths of `survey` as a list, one line each, with the warnings below, for many targets.
pub fn survey_list(survey: &Survey, style: Style) -> String {
    // Reversed: the first of equally severe findings counts, since a cause precedes its consequence.
    let worst = |path: &WritePath| path.findings.iter().rev().max_by_key(|finding| finding.severity).cloned();
    let table = Table::for_rows(&survey.paths)
        .left("target", |path| printable(&path.target))
        .left("durable after fsync", |path| match levels::synced(path) {
            FsyncState::Durable(index) => Cell::plain(printable(&path.layers[index].name)),
            FsyncState::Lost => Cell::inked(Ink::Red, "no"),
            FsyncState::NoWrites => Cell::inked(Ink::Dim, "no writes"),
            FsyncState::Unknown => Cell::inked(Ink::Yellow, "not known"),
        })
        .left("volatile", |path| volatile(path))
        .left("worst finding", |path| match worst(path) {
            None => Cell::inked(Ink::Dim, "none"),
            Some(finding) => Cell::inked(
                pen::severity(Some(finding.severity)),
                format!("{}: {}", finding.severity.word(), printable(&finding.id)),
            ),
        })
        .table();
    let headline = Headline::of_survey(survey);
    let mut out = verdict_line(&headline, style);
    out.push_str(&format!("{}\n", hang("", &printable(&headline.meaning), style.columns())));
    out.push_str(&if table.width() <= style.columns() { table.show(style) } else { stacked(survey, style) });
    let legend = "Durable after fsync: the layer in which synced data survives a power cut; no: a power cut can lose it; no writes: \
                  the path is read-only; not known: the path goes on where it cannot be seen from here. Volatile: what a power cut empties.";
    out.push_str(&style.ink_lines(Ink::Dim, &hang("  ", legend, style.columns())));
    for (path, of) in survey.paths.iter().filter_map(|path| Some((path, path.exposure.as_ref()?))) {
        let text = format!("{}: {}", printable(&path.target), exposure::sentence(of));
        out.push_str(&format!("\n{}", hang("", &text, style.columns())));
    }
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

/// Returns the devices of a path that a power cut empties, or the file system if it is in memory.
fn volatile(path: &WritePath) -> String {
    let last = path.layers.len().saturating_sub(1);
    let is_volatile = |(index, layer): &(usize, &Layer)| {
        let is_of_storage = *index == last || !wording::is_above_devices(layer.kind);
        is_of_storage && layer.cache == plumb_path::Cache::Volatile
    };
    let layers = path.layers.iter().enumerate().filter(is_volatile);
    let names: Vec<&str> = layers.map(|(_, layer)| &*layer.name).collect();
    match names.as_slice() {
        [] => "–".to_owned(),
        [one] => printable(one),
        [first, rest @ ..] => format!("{} and {} more", printable(first), rest.len()),
    }
}

/// Returns the list for lines that are too short for a table.
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
    let headline = Headline::of_path(path);
    out.push_str(&verdict_line(&headline, style));
    out.push_str(&hang("", &printable(&headline.meaning), width));
    let is_said =
        |below: &&String| [&headline.verdict, &headline.meaning].iter().any(|text| text.contains(*below));
    if let Some(below) = path.unknown_below.as_ref().filter(|below| !is_said(below)) {
        out.push_str(&hang("", &format!("Unknown below: {}", printable(&sentence(below))), width));
    }
    if let Some(of) = &path.exposure {
        out.push_str(&format!("\n{}\n", style.ink(Ink::Bold, exposure::TITLE)));
        out.extend(exposure::items(of).iter().map(|item| outline::item(item, style)));
    }
    out.push('\n');
    out.push_str(&path_tree(path, style));
    for line in LEGEND {
        out.push_str(&style.ink_lines(Ink::Dim, &hang("  ", line, width)));
    }
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
    let pages: String = untorn::lines(path).iter().map(|line| hang("  ", &printable(line), width)).collect();
    if !pages.is_empty() {
        out.push_str(&format!("\n{}\n{pages}", style.ink(Ink::Bold, "Untorn pages")));
    }
    if !path.findings.is_empty() {
        out.push_str(&format!("\n{}\n{}", style.ink(Ink::Bold, "Findings"), verdicts(&path.findings, style)));
    }
    out
}

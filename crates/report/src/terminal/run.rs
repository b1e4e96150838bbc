//! Report of a run for a terminal.

use std::collections::HashSet;

use plumb_path::{Finding, Severity};
use plumb_text::printable;

use super::head::{head, incomplete_line, title_line, verdict_line};
use super::outline::item;
use super::path_tree::path_tree;
use super::pen::Ink;
use super::tables::{Group, durable_writes, side_table};
use super::verdicts::verdicts;
use super::wrap::{columns, end, hang, start};
use super::{Style, Verbosity};
use crate::document::{RunDocument, RunTarget, Sides};
use crate::facts;
use crate::figures::{SideRow, masthead, side_rows};
use crate::headline::{Headline, sentence};
use crate::levels::{as_measured, loses_synced};
use crate::outline::Item;
use crate::{levels, rules, sentences, tables, untorn};

/// Maximum width of a target's name, which is also limited to a third of the line. Longer names lose their
/// middle.
const NAME_MAX: usize = 36;
/// Number of figures in a short report.
const FIGURES: usize = 3;
/// Returns the report of `document`, ended by a newline. Empty sections are left out.
pub fn run(document: &RunDocument, style: Style) -> String {
    let width = style.columns();
    let headline = Headline::new(document);
    if style.verbosity == Verbosity::Quiet {
        return style.finish(verdict_line(&headline, style));
    }
    let title = format!("plumb {} {}", document.command(), names(document));
    let facts = masthead(&document.environment);
    if style.verbosity == Verbosity::Normal {
        return style.finish(brief(document, &headline, &title, &facts, style));
    }
    let mut out = head(&title, &facts, &headline, style);
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            out.push_str(&format!("\n{}\n{body}", style.ink(Ink::Bold, title)));
        }
    };
    let hung = |lead: &str, lines: &[String]| -> String {
        lines.iter().map(|line| hang(lead, &printable(line), width)).collect()
    };
    let paths = document.all_paths();
    for path in &paths {
        let of = if paths.len() > 1 { format!(" of {}", printable(&path.target)) } else { String::new() };
        section(&format!("The write path{of}"), path_tree(&as_measured(path, document), style));
    }
    let is_lost = levels::is_lost(document.path.as_ref());
    let cost = if is_lost {
        "The cost of a sync, which makes nothing durable here"
    } else {
        "The cost of a durable write"
    };
    section(cost, durable_writes(document, style));
    let mut table = side_table(&groups(document, NAME_MAX.min(width / 3)), style);
    table.push_str(&hung("  ", &sentences::unmeasured(document)));
    table.push_str(&hung("  ", &sentences::unknown_storage(document)));
    section("Application beside storage", table);
    section("Where the data went", hung("  - ", &sentences::balances(document)));
    let items = |items: &[Item]| -> String { items.iter().map(|of| item(of, style)).collect() };
    let labels = short(&document.labels(), NAME_MAX.min(width / 3));
    for of in tables::device_sections(document, &labels) {
        section(&of.title, items(&of.items));
    }
    section("How it ran", hung("  - ", &sentences::lines(document)));
    section("Verdicts", verdicts(&document.verdicts, style));
    section("Notes", hung("  - ", &document.notes));
    section("Run as root, plumb would also read", hung("  - ", &document.environment.root_would_add));
    let facts = facts::facts(document);
    let facts = facts.iter().map(|fact| Item::Line(format!("{}: {}", fact.name, fact.value)));
    section("Where and how", items(&facts.collect::<Vec<_>>()));
    if let Some(directory) = &document.run_directory {
        out.push_str(&format!("\n{}\n", style.ink(Ink::Bold, "Report")));
        // Not wrapped, so that it can be copied.
        out.push_str(&format!("  {}/report.html\n", printable(directory)));
    }
    style.finish(out)
}

/// Returns the verdict, three figures, the quality of the measurement, and the problems with their remedies.
fn brief(document: &RunDocument, headline: &Headline, title: &str, facts: &[String], style: Style) -> String {
    let width = style.columns();
    let mut out = title_line(title, facts, style);
    out.push_str(&verdict_line(headline, style));
    out.push_str(&incomplete_line(headline, style));
    let (serious, notes): (Vec<&Finding>, Vec<&Finding>) =
        document.verdicts.iter().partition(|finding| finding.severity > Severity::Info);
    for (number, finding) in serious.iter().enumerate() {
        let sentence = sentence(&finding.sentence);
        if number > 0 {
            out.push_str(&hang("", &printable(&sentence), width));
        }
        let arrow = if style.unicode { "→ " } else { "> " };
        out.push_str(&hang(
            arrow,
            &format!("{} [{}]", printable(&finding.remedy), printable(&finding.id)),
            width,
        ));
    }
    // The meaning of the headline includes the sentence on quality.
    let is_meaning_said = headline.label.starts_with("Not");
    if is_meaning_said {
        out.push_str(&hang("", &printable(&headline.meaning), width));
    }
    out.push('\n');
    for figure in facts::figures(document).iter().take(FIGURES) {
        let text = format!("{}: {} {} ({})", figure.label, figure.value, figure.unit, figure.note);
        out.push_str(&hang("  ", &printable(&text), width));
    }
    for line in sentences::unmeasured(document) {
        out.push_str(&hang("  ", &printable(&line), width));
    }
    for line in document.path.iter().filter(|_| document.is_check()).flat_map(untorn::lines) {
        out.push_str(&hang("  ", &printable(&line), width));
    }
    out.push('\n');
    if !is_meaning_said {
        out.push_str(&hang("", &headline.quality, width));
    }
    let noted =
        notes.iter().filter(|finding| rules::find(&finding.id).is_none_or(|rule| rule.quality.is_none()));
    let noted: Vec<&str> = noted.map(|finding| finding.id.as_str()).collect();
    if !noted.is_empty() {
        let text = format!("Worth knowing: {} (plumb explain RULE).", noted.join(", "));
        out.push_str(&style.ink_lines(Ink::Dim, &hang("", &printable(&text), width)));
    }
    match &document.run_directory {
        // Not wrapped, so that it can be copied.
        Some(directory) => {
            out.push_str(&format!("Everything: -v, or {}/report.html\n", printable(directory)))
        }
        None => out.push_str("Everything: -v\n"),
    }
    out
}

/// Returns up to three names of targets, otherwise the first and the number of the others.
fn names(document: &RunDocument) -> String {
    let names: Vec<String> = document.names().into_iter().map(printable).collect();
    match names.as_slice() {
        [] => "without a target".to_owned(),
        short if short.len() <= 3 => short.join(", "),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// Returns one group for each target, and one for all targets of each span; names have at most `name_most`
/// columns. Devices that several targets share have their row only in the latter.
pub(crate) fn groups(document: &RunDocument, name_most: usize) -> Vec<Group> {
    let labelled = document.labels().into_iter().zip(document.targets.iter().enumerate());
    let shown = labelled.filter(|(_, (_, target))| target.failed_because.is_none());
    let (labels, targets): (Vec<String>, Vec<_>) = shown
        .filter(|(_, (_, target))| !sentences::is_method(document, target))
        .map(|(label, target)| (printable(&label), target))
        .unzip();
    let own_rows = |(index, target): (usize, &RunTarget)| {
        let mut rows = rows(&target.sides, loses_synced(document, target));
        rows.retain(|row| row.side != "storage" || document.sharers(index).len() == 1);
        rows
    };
    let mut groups: Vec<Group> =
        short(&labels, name_most).into_iter().zip(targets.into_iter().map(own_rows)).collect();
    let lost = document.targets.iter().any(|target| loses_synced(document, target));
    groups.extend(document.sums().into_iter().map(|(name, sides)| (name, rows(sides, lost))));
    groups
}

/// Returns the rows of `sides`. The time of a sync is not called `durable` if the sync makes nothing durable
/// (`lost`).
fn rows(sides: &Sides, lost: bool) -> Vec<SideRow> {
    let mut rows = side_rows(sides);
    rows.retain(|row| row.side != "application" || sides.is_application_seen());
    for row in rows.iter_mut().filter(|row| lost && row.side == "durable") {
        row.side = "write and sync";
    }
    rows
}

/// Returns the labels in at most `most` columns, numbered if the short ones are ambiguous.
fn short(labels: &[String], most: usize) -> Vec<String> {
    let mut cut_labels: Vec<String> = labels.iter().map(|label| cut(label, most)).collect();
    let distinct: HashSet<&String> = cut_labels.iter().collect();
    if distinct.len() < cut_labels.len() {
        let number = |(index, label): (usize, &String)| {
            let number = format!("{}: ", index + 1);
            format!("{number}{}", cut(label, most.saturating_sub(columns(&number))))
        };
        cut_labels = labels.iter().enumerate().map(number).collect();
    }
    cut_labels
}

/// Returns a long name without its middle, since names usually differ at their ends.
fn cut(name: &str, most: usize) -> String {
    if columns(name) <= most {
        return name.to_owned();
    }
    format!("{}…{}", start(name, most / 3), end(name, most.saturating_sub(most / 3 + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let labels =
            ["/srv/io.dat, read-cached, span 1", "/srv/io.dat, write-cached, span 1"].map(str::to_owned);
        assert_eq!(short(&labels, 33), labels);
        assert_eq!(short(&labels, 24), ["1: /srv/io…ached, span 1", "2: /srv/io…ached, span 1"]);
        assert!(short(&labels, 28).iter().all(|name| columns(name) <= 28));
        assert_eq!(cut("abc", 0), "…");
    }

    #[test]
    fn a_run_that_is_not_complete_says_so_beside_a_finding() {
        let mut document = crate::fixture::document("interrupted");
        document.verdicts = vec![Finding {
            id: "backlog".to_owned(),
            severity: Severity::Warning,
            sentence: "It fell behind.".to_owned(),
            evidence: Vec::new(),
            remedy: "Lower the rate.".to_owned(),
        }];
        for verbosity in [Verbosity::Normal, Verbosity::Verbose] {
            let text = run(&document, Style { verbosity, ..Style::PLAIN });
            assert!(text.contains("It fell behind.") && text.contains("Not complete: Interrupted"), "{text}");
        }
    }
}

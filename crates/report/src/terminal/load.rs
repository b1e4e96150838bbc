//! The report of a load for a terminal.

use std::collections::HashSet;

use super::Style;
use super::head::head;
use super::pen::Ink;
use super::tables::{Group, side_table};
use super::verdicts::verdicts;
use super::wrap::{columns, hang};
use crate::document::RunDocument;
use crate::figures::load_rows;
use crate::headline::Headline;
use crate::printable::printable;
use crate::sentences;

/// Names of targets take at most so many columns, and never more than a third of the line: longer ones lose their
/// middle, so that the table stays a table.
const NAME_MAX: usize = 36;
/// The columns of the table.
const COLUMNS: [&str; 8] = ["IOPS", "MiB/s", "mean I/O", "p50", "p99", "p99.9", "max", "flushes"];
/// What is left out on narrow terminals, the least telling first.
const DISPENSABLE: [&str; 6] = ["p99.9", "max", "mean I/O", "p50", "flushes", "p99"];

/// The report of `document`, ending in a newline.
pub fn load(document: &RunDocument, style: Style) -> String {
    let width = style.columns();
    let title = format!("plumb load {}", names(document));
    let mut out = head(
        &title,
        &crate::figures::masthead(
            document.environment.host.as_deref(),
            document.environment.kernel.as_deref(),
            &document.environment.started_at,
        ),
        &Headline::of_load(document),
        style,
    );
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            out.push_str(&format!("\n{}\n{body}", style.ink(Ink::Bold, title)));
        }
    };
    let hung = |lines: Vec<String>| -> String {
        lines.iter().map(|line| hang("  - ", &printable(line), width)).collect()
    };
    let mut table = side_table(&groups(document, width), &COLUMNS, &DISPENSABLE, style);
    let unknown = sentences::unknown_storage(document);
    table.extend(unknown.iter().map(|line| hang("  ", &printable(line), width)));
    section("Application beside storage", table);
    section("Where the bytes were", hung(sentences::balances(document)));
    section("How it ran", hung(sentences::lines(document)));
    section("Verdicts", verdicts(&document.verdicts, style));
    section("Notes", hung(document.notes.clone()));
    if let Some(directory) = &document.run_directory {
        out.push_str(&format!("\n{}\n", style.ink(Ink::Bold, "Report")));
        // Not wrapped: it is to be copied.
        out.push_str(&format!("  {}/report.html\n", printable(directory)));
    }
    style.finish(out)
}

/// The targets' names, if they are few.
fn names(document: &RunDocument) -> String {
    let mut seen = HashSet::new();
    let distinct = document.targets.iter().filter(|target| seen.insert(target.name.as_str()));
    let names: Vec<String> = distinct.map(|target| printable(&target.name)).collect();
    match names.as_slice() {
        [] => "without a target".to_owned(),
        few if few.len() <= 3 => few.join(", "),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// One group for each target, and one for the targets of each span together.
fn groups(document: &RunDocument, width: usize) -> Vec<Group> {
    let labels: Vec<String> = document.labels().iter().map(|label| printable(label)).collect();
    let mut groups: Vec<Group> = short(&labels, NAME_MAX.min(width / 3))
        .into_iter()
        .zip(&document.targets)
        .map(|(name, target)| (name, load_rows(&target.sides)))
        .collect();
    groups.extend(document.sums().into_iter().map(|(name, sides)| (name, load_rows(sides))));
    groups
}

/// The labels in at most `most` columns; numbered if they cannot be told apart any more.
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

/// The name without its middle if it is long: what tells names apart is mostly at their ends.
fn cut(name: &str, most: usize) -> String {
    let length = columns(name);
    if length <= most {
        return name.to_owned();
    }
    let head: String = name.chars().take(most / 3).collect();
    let tail: String = name.chars().skip(length - most.saturating_sub(most / 3 + 1)).collect();
    format!("{head}…{tail}")
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
}

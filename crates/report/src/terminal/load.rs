//! The report of a load for a terminal.

use super::Style;
use super::head::head;
use super::pen::Ink;
use super::tables::{Group, side_table};
use super::verdicts::verdicts;
use super::wrap::{columns, hang};
use crate::figures::load_rows;
use crate::headline::Headline;
use crate::load::{LoadDocument, sentences};
use crate::printable::printable;

/// Longer names of targets lose their middle, so that the table stays a table.
const NAME_MAX: usize = 24;
/// The columns of the table.
const COLUMNS: [&str; 8] = ["IOPS", "MiB/s", "mean I/O", "p50", "p99", "p99.9", "max", "flushes"];
/// What is left out on narrow terminals, the least telling first.
const DISPENSABLE: [&str; 6] = ["p99.9", "max", "mean I/O", "p50", "flushes", "p99"];

/// The report of `document`, ending in a newline.
pub fn load(document: &LoadDocument, style: Style) -> String {
    let width = style.columns();
    let title = format!("plumb load {}", names(document));
    let mut out = head(&title, &document.environment.masthead(), &Headline::of_load(document), style);
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            out.push_str(&format!("\n{}\n{body}", style.ink(Ink::Bold, title)));
        }
    };
    let hung = |lines: Vec<String>| -> String {
        lines.iter().map(|line| hang("  - ", &printable(line), width)).collect()
    };
    let mut table = side_table(&groups(document), &COLUMNS, &DISPENSABLE, style);
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
fn names(document: &LoadDocument) -> String {
    let mut names: Vec<String> = Vec::new();
    for target in &document.targets {
        let name = printable(&target.name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [] => "without a target".to_owned(),
        few if few.len() <= 3 => few.join(", "),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// One group for each target, and one for all of them if there are several.
fn groups(document: &LoadDocument) -> Vec<Group> {
    let mut groups: Vec<Group> = document
        .targets
        .iter()
        .enumerate()
        .map(|(index, target)| (cut(&printable(&document.label_of(index))), load_rows(&target.sides)))
        .collect();
    if groups.len() > 1 {
        groups.push(("all".to_owned(), load_rows(&document.total)));
    }
    groups
}

/// The name without its middle if it is long: what tells names apart is mostly at their ends.
fn cut(name: &str) -> String {
    let length = columns(name);
    if length <= NAME_MAX {
        return name.to_owned();
    }
    let head: String = name.chars().take(NAME_MAX / 3).collect();
    let tail: String = name.chars().skip(length - (NAME_MAX - NAME_MAX / 3 - 1)).collect();
    format!("{head}…{tail}")
}

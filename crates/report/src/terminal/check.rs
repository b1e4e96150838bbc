//! The report of a check for a terminal.

use super::Style;
use super::path_tree::path_tree;
use super::pen::{self, Ink};
use super::tables;
use super::verdicts::verdicts;
use super::wrap::{columns, hang};
use crate::document::CheckDocument;
use crate::figures::masthead;
use crate::headline::Headline;
use crate::printable::printable;

/// The report of `document`, ending in a newline.
pub fn check(document: &CheckDocument, style: Style) -> String {
    let width = style.columns();
    let mut out = head(document, style);
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            out.push_str(&format!("\n{}\n{body}", style.ink(Ink::Bold, title)));
        }
    };
    section("The way of a write", path_tree(&document.path, style));
    section("The cost of a durable write", tables::durable_writes(&document.sync, style));
    if !document.io.is_empty() {
        section("Application beside storage", tables::sides(&document.io, style));
    }
    section("Verdicts", verdicts(&document.verdicts, style));
    let root: String = document
        .environment
        .root_would_add
        .iter()
        .map(|line| hang("  - ", &printable(line), width))
        .collect();
    section("Run as root, plumb would also read", root);
    if let Some(directory) = &document.run_directory {
        out.push_str(&format!("\n{}\n", style.ink(Ink::Bold, "Report")));
        // Not wrapped: it is to be copied.
        out.push_str(&format!("  {}/report.html\n", printable(directory)));
    }
    style.finish(out)
}

fn head(document: &CheckDocument, style: Style) -> String {
    let width = style.columns();
    let headline = Headline::of(document);
    let title = format!("plumb check {}", printable(&document.target));
    let facts = masthead(&document.environment).join(", ");
    let mut out = String::new();
    if columns(&title) + columns(&facts) + 3 <= width {
        let gap = width - columns(&title) - columns(&facts);
        out.push_str(&style.ink(Ink::Bold, &title));
        out.push_str(&" ".repeat(gap));
        out.push_str(&style.ink(Ink::Dim, &facts));
        out.truncate(out.trim_end().len());
        out.push('\n');
    } else {
        out.push_str(&style.ink_lines(Ink::Bold, &hang("", &title, width)));
        out.push_str(&style.ink_lines(Ink::Dim, &hang("", &facts, width)));
    }
    out.push('\n');
    let label = headline.label.to_uppercase();
    let ink = match headline.severity {
        None if !document.complete => Ink::Yellow,
        severity => pen::severity(severity),
    };
    out.push_str(&style.ink(ink, &label));
    out.push('\n');
    out.push_str(&style.ink_lines(Ink::Bold, &hang("", &printable(&headline.verdict), width)));
    out.push_str(&hang("", &printable(&headline.meaning), width));
    if let Some(why) = &headline.incomplete {
        let text = format!("Not complete: {}", printable(why));
        out.push_str(&style.ink_lines(Ink::Yellow, &hang("", &text, width)));
    }
    out
}

//! The report of a proof for a terminal.

use super::head::{head, verdict_line};
use super::pen::Ink;
use super::wrap::hang;
use super::{Style, Verbosity};
use crate::document::ProofDocument;
use crate::figures::masthead;
use crate::printable::printable;
use crate::proof::{self, Item};

/// The report of `document`, ending in a newline. A section that has nothing to say is left out.
pub fn proof(document: &ProofDocument, style: Style) -> String {
    let headline = proof::headline(document);
    let is_verbose = style.verbosity == Verbosity::Verbose;
    if style.verbosity == Verbosity::Quiet {
        return style.finish(verdict_line(&headline, style));
    }
    let title = format!("plumb prove app {}", printable(&document.subject));
    let at = if is_verbose { masthead(&document.environment) } else { Vec::new() };
    let mut out = head(&title, &at, &headline, style);
    let mut section = |title: &str, items: &[Item]| {
        if !items.is_empty() {
            out.push_str(&format!("\n{}\n", style.ink(Ink::Bold, title)));
            out.extend(items.iter().map(|of| item(of, style)));
        }
    };
    for of in proof::sections(document).iter().filter(|of| is_verbose || !of.is_detail) {
        section(of.title, &of.items);
    }
    if is_verbose {
        let facts = proof::facts(document).into_iter();
        let lines = facts.map(|fact| Item::Line(format!("{}: {}", fact.name, fact.value)));
        section("How it was recorded", &lines.collect::<Vec<_>>());
    }
    if let Some(directory) = &document.run_directory {
        section("Report", &[Item::Command(format!("{}/report.html", printable(directory)))]);
    }
    style.finish(out)
}

fn item(item: &Item, style: Style) -> String {
    let width = style.columns();
    match item {
        Item::Table(table) => table.show_wrapped(style),
        Item::Line(text) => hang("  - ", text, width),
        Item::Remedy(text) => hang(if style.unicode { "    → " } else { "    > " }, text, width),
        // Not wrapped: it is to be copied.
        Item::Command(line) => style.ink_lines(Ink::Dim, &format!("    {line}\n")),
    }
}

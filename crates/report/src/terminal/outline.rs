//! A report in sections, for a terminal.

use super::head::{head, verdict_line};
use super::pen::Ink;
use super::wrap::hang;
use super::{Style, Verbosity};
use crate::figures::masthead;
use crate::outline::{Item, Outline};
use crate::printable::printable;

/// The report, ending in a newline. A section that has nothing to say is left out.
pub(crate) fn outline(of: &Outline<'_>, style: Style) -> String {
    let is_verbose = style.verbosity == Verbosity::Verbose;
    if style.verbosity == Verbosity::Quiet {
        return style.finish(verdict_line(&of.headline, style));
    }
    let title = format!("plumb {} {}", of.command, printable(of.of));
    let at = if is_verbose { masthead(of.environment) } else { Vec::new() };
    let mut out = head(&title, &at, &of.headline, style);
    let mut section = |title: &str, items: &[Item]| {
        if !items.is_empty() {
            out.push_str(&format!("\n{}\n", style.ink(Ink::Bold, title)));
            out.extend(items.iter().map(|of| item(of, style)));
        }
    };
    for of in of.sections.iter().filter(|of| is_verbose || !of.is_detail) {
        section(&of.title, &of.items);
    }
    if is_verbose {
        let lines = of.facts.iter().map(|fact| Item::Line(format!("{}: {}", fact.name, fact.value)));
        section(of.facts_title, &lines.collect::<Vec<_>>());
    }
    if let Some(directory) = of.run_directory {
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

//! Outlines and pages for a terminal.

use plumb_text::printable;

use super::head::{head, verdict_line};
use super::pen::Ink;
use super::table::Cell;
use super::verdicts::verdict;
use super::wrap::{columns, hang};
use super::{Style, Verbosity};
use crate::figures::masthead;
use crate::outline::{Item, Outline, Page, Row};

/// Returns the report, ended by a newline. Empty sections are left out.
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

/// Returns the page as text, ended by a newline.
pub(crate) fn page(page: &Page, style: Style) -> String {
    let mut out = String::new();
    for section in &page.sections {
        if !out.is_empty() {
            out.push('\n');
        }
        if !section.title.is_empty() {
            out.push_str(&format!("{}\n", style.ink(Ink::Bold, &section.title)));
        }
        out.extend(section.items.iter().map(|of| item(of, style)));
    }
    style.finish(out)
}

/// Returns one element as text.
pub(super) fn item(item: &Item, style: Style) -> String {
    let width = style.columns();
    match item {
        Item::Table(table) => table.show_wrapped(style),
        Item::Wide(table) if style.is_terminal && table.width() > width => table.stacked(style),
        Item::Wide(table) => table.show(style),
        Item::Fitting { table, columns_min } => table.fitting(*columns_min, style).show(style),
        Item::Rows(rows) => self::rows(rows, style),
        Item::Text(Cell { text, ink }) => style.ink_lines(*ink, &hang("", text, width)),
        Item::Line(text) => hang("  - ", text, width),
        Item::Remedy(text) => hang(if style.unicode { "    → " } else { "    > " }, text, width),
        // Not wrapped, so that it can be copied.
        Item::Command(line) => style.ink_lines(Ink::Dim, &format!("    {line}\n")),
        Item::Block(lines) => lines.lines().map(|line| format!("  {line}\n")).collect(),
        Item::Finding { finding, about } => verdict(finding, about, usize::MAX, style),
    }
}

/// Returns the names in a column, with wrapped texts next to them.
fn rows(rows: &[Row], style: Style) -> String {
    let widest = rows.iter().map(|row| columns(&row.name.text)).max().unwrap_or(0);
    let apart = if widest > 0 { "  " } else { "" };
    let line = |row: &Row| {
        let pad = " ".repeat(widest - columns(&row.name.text));
        let lead = format!("  {}{pad}{apart}", row.name.text);
        let painted = style.ink(row.name.ink, &row.name.text);
        hang(&lead, &row.text, style.columns()).replacen(&row.name.text, &painted, 1)
    };
    rows.iter().map(line).collect()
}

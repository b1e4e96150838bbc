//! The report of a proof for a terminal.

use super::head::{head, verdict_line};
use super::pen::Ink;
use super::wrap::hang;
use super::{Style, Verbosity};
use crate::document::ProofDocument;
use crate::figures::masthead;
use crate::printable::printable;
use crate::proof;

/// More windows than this are not shown one by one.
const WINDOWS_MAX: usize = 60;

/// The report of `document`, ending in a newline. A section that has nothing to say is left out.
pub fn proof(document: &ProofDocument, style: Style) -> String {
    let width = style.columns();
    let headline = proof::headline(document);
    if style.verbosity == Verbosity::Quiet {
        return style.finish(verdict_line(&headline, style));
    }
    let title = format!("plumb prove app {}", printable(&document.subject));
    let mut out = match style.verbosity {
        Verbosity::Verbose => head(&title, &masthead(&document.environment), &headline, style),
        _ => head(&title, &[], &headline, style),
    };
    let mut section = |title: &str, body: String| {
        if !body.is_empty() {
            out.push_str(&format!("\n{}\n{body}", style.ink(Ink::Bold, title)));
        }
    };
    let list = |lines: &[String]| -> String {
        lines.iter().map(|line| hang("  - ", &printable(line), width)).collect()
    };
    let shown =
        |table: Option<super::Table>| table.map_or_else(String::new, |table| table.show_wrapped(style));
    section("What fails", shown(proof::failures(document)));
    section("What to change", changes(document, style));
    section("Under each drive profile", shown(proof::profiles(document)));
    let mut explored = hang("  ", &headline.quality, width);
    explored.extend(proof::flushes(document).map(|line| hang("  ", &line, width)));
    section("What was explored", explored);
    section("Why it is not proved", list(&document.not_proved_because));
    if style.verbosity == Verbosity::Verbose {
        let (windows, left_out) = proof::windows(document, WINDOWS_MAX);
        let mut windows = windows.show(style);
        if left_out > 0 {
            windows.push_str(&hang("  ", &format!("{left_out} more windows are not shown."), width));
        }
        section("Windows", windows);
        let facts = proof::facts(document);
        let facts = facts.iter().map(|fact| hang("  - ", &format!("{}: {}", fact.name, fact.value), width));
        section("How it was recorded", facts.collect());
    }
    section("Notes", list(&document.notes));
    if let Some(directory) = &document.run_directory {
        // Not wrapped: it is to be copied.
        out.push_str(&format!(
            "\n{}\n  {}/report.html\n",
            style.ink(Ink::Bold, "Report"),
            printable(directory)
        ));
    }
    style.finish(out)
}

/// For each failure what the checker said, what to do, and the command that shows it again.
fn changes(document: &ProofDocument, style: Style) -> String {
    let width = style.columns();
    let arrow = if style.unicode { "  → " } else { "  > " };
    let mut out = String::new();
    for failure in &document.failures {
        out.push_str(&hang("  ", &proof::words(failure), width));
        let none = || "No change that removes it was found.".to_owned();
        let change = failure.change.as_ref().map_or_else(none, proof::change);
        out.push_str(&hang(arrow, &change, width));
        // Not wrapped: it is to be copied.
        let replay = format!("    {}\n", printable(&failure.replay));
        out.push_str(&style.ink_lines(Ink::Dim, &replay));
    }
    out
}

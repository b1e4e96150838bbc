//! The report of a check for a terminal.

use super::Style;
use super::head::head;
use super::path_tree::path_tree;
use super::pen::Ink;
use super::tables;
use super::verdicts::verdicts;
use super::wrap::hang;
use crate::document::CheckDocument;
use crate::headline::Headline;
use crate::printable::printable;

/// The report of `document`, ending in a newline.
pub fn check(document: &CheckDocument, style: Style) -> String {
    let width = style.columns();
    let title = format!("plumb check {}", printable(&document.target));
    let mut out = head(
        &title,
        &crate::figures::masthead(
            document.environment.host.as_deref(),
            document.environment.kernel.as_deref(),
            &document.environment.started_at,
        ),
        &Headline::of(document),
        style,
    );
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

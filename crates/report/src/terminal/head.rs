//! Head of a report: the action, the target, and the verdict in one sentence.

use plumb_text::printable;

use super::Style;
use super::pen::{self, Ink};
use super::wrap::{columns, hang};
use crate::headline::Headline;

/// Returns the head. `title` and `facts` are printable.
pub(super) fn head(title: &str, facts: &[String], headline: &Headline, style: Style) -> String {
    let width = style.columns();
    let mut out = title_line(title, facts, style);
    out.push_str(&verdict_line(headline, style));
    out.push_str(&hang("", &printable(&headline.meaning), width));
    out.push_str(&incomplete_line(headline, style));
    out
}

/// Returns a line that states that the run is not complete, unless the verdict does.
pub(super) fn incomplete_line(headline: &Headline, style: Style) -> String {
    let line = headline.incomplete.as_ref().map(|why| {
        let text = format!("Not complete: {}", printable(why));
        style.ink_lines(Ink::Yellow, &hang("", &text, style.columns()))
    });
    line.unwrap_or_default()
}

/// Returns a line with the action, the place and the time, followed by an empty line.
pub(super) fn title_line(title: &str, facts: &[String], style: Style) -> String {
    let width = style.columns();
    let facts = facts.join(", ");
    let mut out = String::new();
    if columns(title) + columns(&facts) + 3 <= width {
        let gap = width - columns(title) - columns(&facts);
        out.push_str(&style.ink(Ink::Bold, title));
        out.push_str(&" ".repeat(gap));
        out.push_str(&style.ink(Ink::Dim, &facts));
        out.truncate(out.trim_end().len());
        out.push('\n');
    } else {
        out.push_str(&style.ink_lines(Ink::Bold, &hang("", title, width)));
        out.push_str(&style.ink_lines(Ink::Dim, &hang("", &facts, width)));
    }
    out.push('\n');
    out
}

/// Returns the verdict, under its severity.
pub(super) fn verdict_line(headline: &Headline, style: Style) -> String {
    let ink = match headline.severity {
        None if headline.label.starts_with("Not") => Ink::Yellow,
        severity => pen::severity(severity),
    };
    let label = style.ink(ink, &headline.label.to_uppercase());
    let verdict = hang("", &printable(&headline.verdict), style.columns());
    format!("{label}\n{}", style.ink_lines(Ink::Bold, &verdict))
}

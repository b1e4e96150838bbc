//! A rule in words: `plumb explain`.

use plumb_path::Rule;

use super::pen::Ink;
use super::table::Table;
use super::{Style, hang};

/// Explains what `rule` means, how it is found, what to do, and where to read more.
pub fn explain(rule: &Rule, style: Style) -> String {
    let mut out = format!("{}\n", style.ink(Ink::Bold, &rule.id));
    let parts =
        [("What it means", &rule.meaning), ("How it is found", &rule.found), ("What to do", &rule.remedy)];
    for (title, text) in parts {
        out.push_str(&format!("\n{}\n{}", style.ink(Ink::Bold, title), hang("  ", text, style.columns())));
    }
    if !rule.sources.is_empty() {
        out.push_str(&format!("\n{}\n", style.ink(Ink::Bold, "Sources")));
        rule.sources.iter().for_each(|source| out.push_str(&hang("  - ", source, style.columns())));
    }
    style.finish(out)
}

/// All rules, a line each.
pub fn explain_list(style: Style) -> String {
    let table = Table::of(crate::rules::all())
        .left("rule", |rule| &rule.id)
        .left("what it means", |rule| &rule.meaning)
        .table();
    style.finish(table.show_wrapped(style))
}

//! Description of a rule: `plumb explain`.

use plumb_path::{Rule, Severity};

use super::pen::Ink;
use super::table::Table;
use super::{Style, hang};

/// Describes the meaning, the condition and the remedy of `rule`, with references.
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

/// Lists all rules by layer, with the possible severities of their findings.
pub fn explain_list(style: Style) -> String {
    let mut rules = crate::rules::all();
    rules.sort_by_key(|rule| rule.layer);
    let chapters = rules.chunk_by(|one, other| one.layer == other.layer).map(|rules| {
        let title = rules.first().map_or("", |rule| rule.layer.title());
        let table = Table::for_rows(rules.iter().copied())
            .left("rule", |rule| &rule.id)
            .left("severity", |rule| severities(rule))
            .left("what it means", |rule| &rule.meaning)
            .table();
        format!("{}\n{}", style.ink(Ink::Bold, title), table.show_wrapped(style))
    });
    style.finish(chapters.collect::<Vec<_>>().join("\n"))
}

/// Returns the severities of a rule's findings in words, such as `info, warning`.
fn severities(rule: &Rule) -> String {
    rule.severities().into_iter().map(Severity::word).collect::<Vec<_>>().join(", ")
}

//! Report in Markdown (GitHub's dialect, with tables), for issue trackers and chats: the verdict, the
//! figures, the path, the verdicts with their rules, and the environment.
//!
//! Nothing from outside becomes markup, a link or a mention. Equal recordings give equal text.

use plumb_path::Finding;
use plumb_text::printable;

use crate::document::{Environment, RunDocument, RunRecording};
use crate::facts::{self, Fact, Figure};
use crate::figures::masthead;
use crate::headline::{Headline, sentence};
use crate::levels::as_measured;
use crate::outline::{Item, Outline, Page, Row, Section};
use crate::printable::shell_line;
use crate::terminal::path_tree::{path_table, unsettled};
use crate::terminal::run::groups;
use crate::terminal::tables::{durable_table, side_table_without};
use crate::terminal::{Cell, Ink, Side, Table};
use crate::{levels, sentences, tables};

/// Returns the report of `recording`, ended by a newline. Empty sections are left out.
pub(crate) fn markdown(recording: &RunRecording) -> String {
    let document = &recording.document;
    let names: Vec<String> = document.names().into_iter().map(code).collect();
    let headline = Headline::new(document);
    let mut out =
        head(&format!("{} {}", document.command(), names.join(", ")), &headline, &document.environment);
    let shown = figures(&facts::figures(document));
    if !shown.is_empty() {
        out.push_str(&format!("\n## Figures\n\n{shown}"));
    }
    out.extend(sections(document).iter().filter(|of| !of.items.is_empty()).map(section));
    let root = document.environment.root_would_add.iter();
    let root = root.map(|line| Fact { name: "Run as root, plumb would also read", value: line.clone() });
    let facts: Vec<Fact> = facts::facts(document).into_iter().chain(root).collect();
    out + &environment(&facts::command(document), &facts)
}

/// Returns the sections of a run except headline, figures and facts, in order.
fn sections(document: &RunDocument) -> Vec<Section> {
    let with_words = |table: Option<Table>, words: &[String]| {
        Item::table(table).into_iter().chain(Item::lines(words)).collect::<Vec<_>>()
    };
    let lost = document.targets.iter().any(|target| levels::loses_synced(document, target));
    let cost = if lost { "The cost of a write and its sync" } else { "The cost of a durable write" };
    let durable = durable_table(document).map(|(_, durable)| durable);
    let loads = groups(document, usize::MAX);
    let sides = (!loads.is_empty()).then(|| side_table_without(&loads, &[]));
    let words = [
        sentences::unmeasured(document),
        sentences::unknown_storage(document),
        sentences::balances(document),
    ];
    let verdicts = match document.verdicts.as_slice() {
        [] => vec![Item::text("No rule found anything.")],
        found => found.iter().map(Item::finding).collect(),
    };
    let mut sections = vec![
        Section::new("The write path", paths(document)),
        Section::new(cost, with_words(durable, &tables::unmeasured_methods(document))),
        Section::new("Application beside storage", with_words(sides, &words.concat())),
    ];
    sections.extend(tables::device_sections(document, &document.labels()));
    let said = [sentences::lines(document), document.notes.clone()].concat();
    sections.push(Section::new("How it ran", Item::lines(&said)));
    sections.push(Section::new("Verdicts", verdicts));
    sections
}

/// Returns an outline in Markdown, ended by a newline.
pub(crate) fn outline(of: &Outline<'_>) -> String {
    let mut out = head(&format!("{} {}", of.command, code(of.of)), &of.headline, of.environment);
    out.push_str(&format!("\n## Figures\n\n{}", figures(&of.figures)));
    out.extend(of.sections.iter().filter(|section| !section.items.is_empty()).map(self::section));
    out + &environment(&shell_line(&of.environment.argv), &of.facts)
}

/// Returns a page in Markdown, ended by a newline.
pub(crate) fn page(page: &Page) -> String {
    format!("# {}\n{}", page.title, page.sections.iter().map(section).collect::<String>())
}

fn section(section: &Section) -> String {
    let title = match &*section.title {
        "" => String::new(),
        title => format!("## {}\n\n", escape(title)),
    };
    let mut out = format!("\n{title}");
    let mut items = section.items.iter().peekable();
    while let Some(of) = items.next() {
        out.push_str(&item(of));
        // Lists and tables need an empty line before a table or a paragraph.
        let is_list = |of: &Item| matches!(of, Item::Line(_) | Item::Remedy(_) | Item::Command(_));
        let goes_on = |next: &&Item| matches!(of, Item::Line(_)) || is_list(of) && is_list(next);
        if items.peek().is_some_and(|next| !goes_on(next)) {
            out.push('\n');
        }
    }
    out
}

fn item(item: &Item) -> String {
    match item {
        Item::Table(rows) | Item::Wide(rows) | Item::Fitting { table: rows, .. } => table(rows),
        Item::Rows(rows) => rows.iter().map(row).collect(),
        Item::Text(text) => format!("{}\n", cell(text)),
        Item::Line(text) => format!("- {}\n", escape(text)),
        Item::Remedy(text) => format!("  - {}\n", escape(text)),
        Item::Command(line) => format!("  - {}\n", code(line)),
        Item::Block(lines) => lines.lines().map(|line| format!("    {line}\n")).collect(),
        Item::Finding { finding, about } => {
            let about = if about.is_empty() { String::new() } else { format!(", {}", about.join(" ")) };
            verdict(&Finding { id: format!("{}{about}", finding.id), ..finding.clone() })
        }
    }
}

fn row(row: &Row) -> String {
    match &*row.name.text {
        "" => format!("- {}\n", escape(&row.text)),
        _ => format!("- {}: {}\n", cell(&row.name), escape(&row.text)),
    }
}

/// Appends the invisible line by which plumb recognises its own report before it replaces the file.
pub(crate) fn ended(report: String) -> String {
    report + "\n<!-- end of a report of plumb -->\n"
}

fn head(of: &str, headline: &Headline, environment: &Environment) -> String {
    let mut out = format!("# plumb {of}\n\n");
    let facts: Vec<String> = masthead(environment).iter().map(|fact| escape(fact)).collect();
    if !facts.is_empty() {
        out.push_str(&format!("{}\n\n", facts.join(" · ")));
    }
    out.push_str(&format!("**{}: {}**\n", headline.label, escape(&headline.verdict)));
    for text in [
        Some(headline.meaning.clone()),
        headline.incomplete.as_ref().map(|why| format!("Not complete: {why}")),
    ] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.push_str(&format!("\n{}\n", escape(&text)));
        }
    }
    out
}

fn figures(figures: &[Figure]) -> String {
    let value = |figure: &Figure| format!("{} {}", figure.value, figure.unit).trim_end().to_owned();
    let shown = Table::for_rows(figures)
        .left("", |figure| figure.label)
        .right("", |figure| Cell::inked(Ink::Bold, value(figure)))
        .left("", |figure| &figure.note);
    shown.if_any().as_ref().map(table).unwrap_or_default()
}

/// Returns the path below each target.
fn paths(document: &RunDocument) -> Vec<Item> {
    let mut items = Vec::new();
    for (targets, path) in document.named_paths() {
        if document.paths.len() > 1 {
            items.push(Item::text(&format!("Beneath {targets}:")));
        }
        let path = &as_measured(path, document);
        items.push(Item::Table(path_table(path, true)));
        items.extend(unsettled(path).map(|(_, words)| Item::text(words)));
    }
    let unknown = document.path_unknown_because.iter();
    items.extend(unknown.map(|why| Item::text(&format!("Not known: {}", sentence(why)))));
    items
}

fn verdict(finding: &Finding) -> String {
    let mut out = format!(
        "- **{}** `{}`: {}\n",
        finding.severity.word(),
        printable(&finding.id).replace('`', "'"),
        escape(&sentence(&finding.sentence))
    );
    finding.evidence.iter().for_each(|line| out.push_str(&format!("  - {}\n", escape(line))));
    if !finding.remedy.is_empty() {
        out.push_str(&format!("  - **What to do:** {}\n", escape(&sentence(&finding.remedy))));
    }
    out
}

/// Returns the last section: the command, and facts.
fn environment(command: &str, facts: &[Fact]) -> String {
    let facts = facts.iter().map(|fact| format!("- {}: {}\n", fact.name, escape(&fact.value)));
    format!("\n## Where and how\n\n    {command}\n\n{}", facts.collect::<String>())
}

fn table(table: &Table) -> String {
    let mut out = String::new();
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let noted = (!table.notes().is_empty()).then_some(("", Side::Left));
    let head: Vec<(&str, Side)> = table.head().chain(noted).collect();
    out.push_str(&row(head.iter().map(|(name, _)| escape(name)).collect()));
    let rule = |side: &Side| if *side == Side::Right { "---:" } else { "---" }.to_owned();
    out.push_str(&row(head.iter().map(|(_, side)| rule(side)).collect()));
    let columns = table.head().count() + usize::from(!table.notes().is_empty());
    for (number, cells) in table.body().iter().enumerate() {
        let mut cells: Vec<String> = cells.iter().map(cell).collect();
        cells.extend(table.notes().get(number).map(|note| escape(note)));
        cells.resize(columns, String::new());
        out.push_str(&row(cells));
    }
    out
}

fn cell(cell: &Cell) -> String {
    // Indented text is deeper in a tree, and Markdown drops spaces at the start of a cell.
    let text = cell.text.trim_start();
    let indent = "&nbsp;".repeat(cell.text.len() - text.len());
    match (escape(text.trim_end()), cell.ink) {
        (text, Ink::Bold | Ink::Red) if !text.is_empty() => format!("{indent}**{text}**"),
        (text, _) => format!("{indent}{text}"),
    }
}

/// Returns `text` in one line, escaped so that it contains no markup, link or mention.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '|' | '~' | '$' => out.extend(['\\', c]),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Trackers look for mentions and references in visible text only, so an empty comment breaks
            // them.
            '@' | '#' => out.extend([c].into_iter().chain("<!-- -->".chars())),
            _ => out.push(c),
        }
    }
    // A bare address would become a link.
    out.replace("://", ":<!-- -->//").replace("www.", "www<!-- -->.")
}

/// Returns `text` as code, which may contain anything but its own fence.
fn code(text: &str) -> String {
    let text = printable(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(escape("a|b_c <img> [x](y) *z*"), r"a\|b\_c &lt;img&gt; \[x\](y) \*z\*");
        assert_eq!(escape("@root #12 http://x"), "@<!-- -->root #<!-- -->12 http:<!-- -->//x");
        assert_eq!(escape("two\nlines\u{202e}"), r"two\\nlines\\u\{202e\}");
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`"), "`` ` ``");
        let mut document = fixture::virtual_machine();
        let evil = "x|y\n# z <script>@all";
        document.verdicts = vec![Finding {
            id: "evil`id".into(),
            severity: plumb_path::Severity::Warning,
            sentence: evil.into(),
            evidence: vec![evil.into()],
            remedy: evil.into(),
        }];
        document.environment.host = Some(evil.into());
        document.target = evil.into();
        let text = markdown(&RunRecording::without_distributions(document));
        // Within code nothing is markup.
        let text = text.split_once('\n').unwrap().1;
        assert!(!text.contains("<script>") && !text.contains("@all") && !text.contains("\n# z"), "{text}");
        assert!(text.contains("evil'id"), "{text}");
    }

    #[test]
    fn every_table_has_as_many_cells_in_each_row() {
        for document in fixture::all() {
            let text = markdown(&RunRecording::without_distributions(document));
            let cells = |line: &str| line.replace(r"\|", "").matches('|').count();
            let lines: Vec<&str> = text.lines().collect();
            for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("| -")) {
                assert!(
                    lines[index - 1].starts_with('|') && lines[index.saturating_sub(2)].is_empty(),
                    "{text}"
                );
                let rows = lines[index..].iter().take_while(|line| line.starts_with('|'));
                rows.for_each(|row| assert_eq!(cells(row), cells(line), "{row}"));
            }
        }
    }
}

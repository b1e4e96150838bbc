//! Pages that consist of the sections common to all formats: of many hosts, surveys, and statuses.

use askama::Template;
use plumb_path::{Finding, Survey, WritePath};
use plumb_text::printable;

use super::escape::{escape, prose};
use super::frame::Frame;
use super::path_view::PathView;
use super::table;
use crate::document::FleetDocument;
use crate::headline::{Headline, sentence};
use crate::outline::{Item, Outline, Page, Row, Section};
use crate::quantity::counted;
use crate::terminal::Cell;
use crate::{fleet, survey};

/// Content of the page.
#[derive(Template)]
#[template(path = "sections.html")]
pub(super) struct SectionsPage {
    frame: Frame,
    sections: Vec<SectionView>,
    foot: &'static str,
}

impl SectionsPage {
    /// Returns the page of many hosts.
    pub(super) fn of_fleet(document: &FleetDocument) -> Self {
        let mut outline = fleet::outline(document);
        Self {
            sections: sections(&mut outline),
            frame: Frame::new("plumb fleet", outline, document.seed),
            foot: "Percentiles of all hosts are those of all operations: the distributions are added, never averaged.",
        }
    }

    /// Returns the page of a survey.
    pub(super) fn of_survey(survey: &Survey) -> Self {
        let sections = survey.paths.iter().enumerate().map(|(number, path)| surveyed(path, number));
        let headline = Some(Headline::of_survey(survey)).filter(|_| !survey.paths.is_empty());
        let frame = Frame { headline, ..Frame::plain("plumb survey") };
        Self { sections: sections.collect(), frame, foot: "" }
    }

    /// Returns the page of a status. Its headline is its summary; without one the title of its first section,
    /// or the first line of that.
    pub(super) fn of_page(page: &Page) -> Self {
        let mut sections: Vec<SectionView> = page.sections.iter().map(section).collect();
        let mut frame = Frame::plain(page.title);
        if let Some(summary) = &page.summary {
            frame.headline = Some(Headline::of_state(summary));
        } else if let Some((verdict, items)) = page.sections.first().and_then(Section::gist) {
            let first = Section::new("", Vec::new());
            sections[0] = SectionView { body: items.iter().map(item).collect(), ..section(&first) };
            sections.retain(|section| !section.body.is_empty() || !section.title.is_empty());
            frame.headline = Some(Headline::of_state(verdict));
        }
        Self { sections, frame, foot: "" }
    }
}

/// Section of a page, ready to print.
pub(super) struct SectionView {
    pub(super) title: String,
    /// Summary shown while the section is folded.
    pub(super) gist: String,
    pub(super) body: String,
    pub(super) is_folded: bool,
}

/// Takes the sections that are not empty out of `outline`.
pub(super) fn sections(outline: &mut Outline<'_>) -> Vec<SectionView> {
    let all = std::mem::take(&mut outline.sections);
    all.iter().filter(|of| !of.items.is_empty()).map(section).collect()
}

/// Returns the view of a section. Details are folded.
pub(super) fn section(of: &Section) -> SectionView {
    let rows = of.items.iter().map(|item| match item {
        Item::Table(table) | Item::Wide(table) | Item::Fitting { table, .. } => table.body().len(),
        _ => 0,
    });
    let gist = match rows.sum::<usize>() {
        0 => "All of it".to_owned(),
        rows => format!("A table of {}", counted(rows as u64, "row")),
    };
    SectionView {
        title: of.title.to_string(),
        gist,
        body: of.items.iter().map(item).collect(),
        is_folded: of.is_detail,
    }
}

/// Returns `text` made printable line by line.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

fn item(item: &Item) -> String {
    match item {
        Item::Table(of) | Item::Wide(of) | Item::Fitting { table: of, .. } => table::table(of, ""),
        Item::Rows(rows) if rows.iter().all(|row| row.name.text.is_empty()) => {
            rows.iter().map(|row| format!("<p>{}</p>", prose(&row.text))).collect()
        }
        Item::Rows(rows) => {
            let row = |row: &Row| format!("<dt>{}</dt><dd>{}</dd>", prose(&row.name.text), prose(&row.text));
            format!(r#"<dl class="facts">{}</dl>"#, rows.iter().map(row).collect::<String>())
        }
        Item::Text(Cell { text, .. }) | Item::Line(text) | Item::Remedy(text) => {
            format!("<p>{}</p>", prose(text))
        }
        Item::Command(lines) | Item::Block(lines) => format!("<pre><code>{}</code></pre>", escape(lines)),
        Item::Finding { finding, about } => self::finding(finding, about),
    }
}

fn finding(of: &Finding, about: &[String]) -> String {
    let about: String = about.iter().map(|name| format!(" {}", escape(&printable(name)))).collect();
    let paragraph = |text: &String| format!("<p>{}</p>", prose(printable(text)));
    let remedy = sentence(&of.remedy);
    let said = of.evidence.iter().chain(Some(&remedy).filter(|remedy| !remedy.is_empty()));
    format!(
        "<p><strong>{}</strong> {} <code>{}</code>{about}</p>{}",
        of.severity.word(),
        prose(printable(&sentence(&of.sentence))),
        escape(&printable(&of.id)),
        said.map(paragraph).collect::<String>()
    )
}

/// Returns a write path: where synced data is durable, its drawings and layers, and its findings.
fn surveyed(path: &WritePath, number: usize) -> SectionView {
    let view = PathView { number, targets: String::new(), path: path.clone() };
    let view_of = section(&survey::section(path));
    SectionView { body: format!("{}{}", view.drawings().concat(), view_of.body), ..view_of }
}

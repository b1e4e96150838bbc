//! Reports as sections, which every format lays out in its own way. All text in them is printable, except the
//! names of the measured object and its place.
//!
//! An [`Outline`] describes a run: it has a headline, figures, and facts about place and conditions. A
//! [`Page`] describes a status or the result of a command, and has only sections.

use std::borrow::Cow;

use plumb_path::Finding;
use plumb_text::printable;

use crate::document::Environment;
use crate::facts::{Fact, Figure};
use crate::headline::Headline;
use crate::terminal::{Cell, Ink, Table};

/// Report of a run.
pub(crate) struct Outline<'a> {
    /// Command typed after `plumb`.
    pub(crate) command: &'static str,
    /// Object of the command.
    pub(crate) of: &'a str,
    pub(crate) headline: Headline,
    /// The figures that matter most.
    pub(crate) figures: Vec<Figure>,
    pub(crate) sections: Vec<Section>,
    /// Title of the facts.
    pub(crate) facts_title: &'static str,
    pub(crate) facts: Vec<Fact>,
    pub(crate) environment: &'a Environment,
    pub(crate) run_directory: Option<&'a str>,
}

/// Report of a status, or of the result of a command.
#[derive(Debug, Default)]
pub struct Page {
    /// Command of the page, for formats with a title: `plumb cache status`.
    pub(crate) title: &'static str,
    /// Summary for the headline of formats that have one.
    pub(crate) summary: Option<String>,
    pub(crate) sections: Vec<Section>,
}

impl Page {
    /// Adds a section, unless it is empty.
    pub(crate) fn add(&mut self, title: impl Into<Cow<'static, str>>, items: Vec<Item>) {
        let section = Section::new(title, items);
        if !section.items.is_empty() || !section.title.is_empty() {
            self.sections.push(section);
        }
    }
}

/// Section of a report. A section without items is left out.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: Cow<'static, str>,
    pub(crate) items: Vec<Item>,
    /// True for a section of details, which the terminal shows only with `--verbose`.
    pub(crate) is_detail: bool,
    /// True if the page draws a chart of the section, so that its tables only serve for copying.
    pub(crate) is_charted: bool,
}

impl Section {
    /// Creates a section that is always shown.
    pub(crate) fn new(title: impl Into<Cow<'static, str>>, items: Vec<Item>) -> Self {
        Self { title: title.into(), items, is_detail: false, is_charted: false }
    }

    /// Marks the section as a detail, for readers who request everything.
    pub(crate) fn detail(self) -> Self {
        Self { is_detail: true, ..self }
    }

    /// Marks the section as one for which the page draws a chart.
    pub(crate) fn charted(self) -> Self {
        Self { is_charted: true, ..self }
    }

    /// Returns a sentence that can head the section, its title or its first text, and the remaining items;
    /// `None` if it begins with neither.
    pub(crate) fn gist(&self) -> Option<(&str, &[Item])> {
        match self.items.split_first() {
            _ if !self.title.is_empty() => Some((&self.title, &self.items)),
            Some((Item::Text(Cell { text, .. }) | Item::Line(text), rest)) => Some((text, rest)),
            _ => None,
        }
    }
}

/// Element of a section.
#[derive(Debug)]
pub(crate) enum Item {
    Table(Table),
    /// Table with so many columns that a terminal may be too narrow for it.
    Wide(Table),
    /// Table whose last columns are left out on short lines, down to `columns_min`.
    Fitting {
        table: Table,
        columns_min: usize,
    },
    /// List of names, each with a text.
    Rows(Vec<Row>),
    /// Paragraph.
    Text(Cell),
    /// Separate line.
    Line(String),
    /// Remedy for the line before it.
    Remedy(String),
    /// Command to copy.
    Command(String),
    /// Preformatted lines.
    Block(String),
    /// Finding, with the names of its objects where they are not obvious.
    Finding {
        finding: Finding,
        about: Vec<String>,
    },
}

impl Item {
    /// Creates an item of a finding alone.
    pub(crate) fn finding(finding: &Finding) -> Self {
        Self::Finding { finding: finding.clone(), about: Vec::new() }
    }

    /// Creates an item of a finding whose evidence is elsewhere in the report.
    pub(crate) fn conclusion(finding: &Finding) -> Self {
        Self::finding(&Finding { evidence: Vec::new(), ..finding.clone() })
    }

    /// Creates an item for each of `lines`, made printable.
    pub(crate) fn lines(lines: &[String]) -> Vec<Self> {
        lines.iter().map(|line| Self::Line(printable(line))).collect()
    }

    /// Creates an item of the table, if there is one.
    pub(crate) fn table(table: Option<Table>) -> Vec<Self> {
        table.map(Self::Table).into_iter().collect()
    }

    /// Creates a paragraph, made printable.
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(Cell::plain(printable(text)))
    }

    /// Creates unnamed facts, one per line, made printable.
    pub(crate) fn facts<T: AsRef<str>>(facts: impl IntoIterator<Item = T>) -> Self {
        Self::Rows(facts.into_iter().map(|fact| Row::new("", fact.as_ref())).collect())
    }
}

/// Name and text of a row.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: Cell,
    pub(crate) text: String,
}

impl Row {
    /// Creates a row, made printable.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        Self::inked(Ink::Plain, name, text)
    }

    /// Creates a row whose name is set in `ink`, made printable.
    pub(crate) fn inked(ink: Ink, name: &str, text: &str) -> Self {
        Self { name: Cell::inked(ink, printable(name)), text: printable(text) }
    }
}

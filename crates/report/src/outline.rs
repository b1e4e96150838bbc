//! Reports in sections, which every format sets in its own way. All of it is printable but the names of what
//! it is of and where.
//!
//! An [`Outline`] is of a run: it has a headline, figures, and where and how it was made. A [`Page`] is of
//! how something is or what a command did, and has sections alone.

use std::borrow::Cow;

use plumb_path::Finding;
use plumb_text::printable;

use crate::document::Environment;
use crate::facts::{Fact, Figure};
use crate::headline::Headline;
use crate::terminal::{Cell, Ink, Table};

/// A report of a run.
pub(crate) struct Outline<'a> {
    /// Command typed after `plumb`.
    pub(crate) command: &'static str,
    /// Object of the command.
    pub(crate) of: &'a str,
    pub(crate) headline: Headline,
    /// The figures that matter most.
    pub(crate) figures: Vec<Figure>,
    pub(crate) sections: Vec<Section>,
    /// Title that says what the facts are about.
    pub(crate) facts_title: &'static str,
    pub(crate) facts: Vec<Fact>,
    pub(crate) environment: &'a Environment,
    pub(crate) run_directory: Option<&'a str>,
}

/// A report of how something is, or of what a command did.
#[derive(Debug, Default)]
pub struct Page {
    /// Command that the page is of, for formats with a title: `plumb cache status`.
    pub(crate) title: &'static str,
    /// Summary for the headline of formats that have one.
    pub(crate) summary: Option<String>,
    pub(crate) sections: Vec<Section>,
}

impl Page {
    /// Adds a section, unless it says nothing.
    pub(crate) fn add(&mut self, title: impl Into<Cow<'static, str>>, items: Vec<Item>) {
        let section = Section::new(title, items);
        if !section.items.is_empty() || !section.title.is_empty() {
            self.sections.push(section);
        }
    }
}

/// A part of the report. One that has nothing to say has no items.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: Cow<'static, str>,
    pub(crate) items: Vec<Item>,
    /// True if only those want to see it who want to know everything.
    pub(crate) is_detail: bool,
    /// True if a page draws its figures, so that its tables are for readers who want to copy them.
    pub(crate) is_charted: bool,
}

impl Section {
    /// Creates a section that everybody sees.
    pub(crate) fn new(title: impl Into<Cow<'static, str>>, items: Vec<Item>) -> Self {
        Self { title: title.into(), items, is_detail: false, is_charted: false }
    }

    /// Marks the part as one for readers who want to know everything.
    pub(crate) fn detail(self) -> Self {
        Self { is_detail: true, ..self }
    }

    /// Marks the part as one whose figures a page draws.
    pub(crate) fn charted(self) -> Self {
        Self { is_charted: true, ..self }
    }

    /// Returns the sentence that the part can be headed by, its title or its first words, and the items that
    /// are left; `None` if it begins with neither.
    pub(crate) fn gist(&self) -> Option<(&str, &[Item])> {
        match self.items.split_first() {
            _ if !self.title.is_empty() => Some((&self.title, &self.items)),
            Some((Item::Text(Cell { text, .. }) | Item::Line(text), rest)) => Some((text, rest)),
            _ => None,
        }
    }
}

/// Element of a part of the report.
#[derive(Debug)]
pub(crate) enum Item {
    Table(Table),
    /// A table of so many columns that a terminal may be too narrow for it.
    Wide(Table),
    /// A table of which the last columns are left out where lines are too short, down to so many.
    Fitting {
        table: Table,
        columns_min: usize,
    },
    /// List of names, each with its text.
    Rows(Vec<Row>),
    /// A paragraph.
    Text(Cell),
    /// A line of its own.
    Line(String),
    /// Remedy that follows from the line before it.
    Remedy(String),
    /// A command to copy.
    Command(String),
    /// Lines that keep their spaces.
    Block(String),
    /// A finding, with the names of what it is about, where that is not plain.
    Finding {
        finding: Finding,
        about: Vec<String>,
    },
}

impl Item {
    /// Returns a finding on its own.
    pub(crate) fn finding(finding: &Finding) -> Self {
        Self::Finding { finding: finding.clone(), about: Vec::new() }
    }

    /// Returns a finding whose evidence stands elsewhere in the report.
    pub(crate) fn conclusion(finding: &Finding) -> Self {
        Self::finding(&Finding { evidence: Vec::new(), ..finding.clone() })
    }

    /// Returns each of `lines`, made printable.
    pub(crate) fn lines(lines: &[String]) -> Vec<Self> {
        lines.iter().map(|line| Self::Line(printable(line))).collect()
    }

    /// Returns the table, if there is one.
    pub(crate) fn table(table: Option<Table>) -> Vec<Self> {
        table.map(Self::Table).into_iter().collect()
    }

    /// Creates a paragraph, made printable.
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(Cell::plain(printable(text)))
    }

    /// Creates facts below one another without names, made printable.
    pub(crate) fn facts<T: AsRef<str>>(facts: impl IntoIterator<Item = T>) -> Self {
        Self::Rows(facts.into_iter().map(|fact| Row::new("", fact.as_ref())).collect())
    }
}

/// A name, and what is to be said of it.
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

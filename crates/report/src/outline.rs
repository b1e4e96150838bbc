//! A report in sections, which every format sets in its own way. All of it is printable but the names of what
//! it is of and where.

use std::borrow::Cow;

use crate::document::Environment;
use crate::facts::{Fact, Figure};
use crate::headline::Headline;
use crate::printable::printable;
use crate::terminal::Table;

/// A report.
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

/// A part of the report. One that has nothing to say has no items.
pub(crate) struct Section {
    pub(crate) title: Cow<'static, str>,
    pub(crate) items: Vec<Item>,
    /// True if only those want to see it who want to know everything.
    pub(crate) is_detail: bool,
}

impl Section {
    /// A part for everybody.
    pub(crate) fn new(title: impl Into<Cow<'static, str>>, items: Vec<Item>) -> Self {
        Self { title: title.into(), items, is_detail: false }
    }

    /// Marks the part as one for readers who want to know everything.
    pub(crate) fn detail(self) -> Self {
        Self { is_detail: true, ..self }
    }
}

/// Element of a part of the report.
pub(crate) enum Item {
    Table(Table),
    /// A line of its own.
    Line(String),
    /// Remedy that follows from the line before it.
    Remedy(String),
    /// A command to copy.
    Command(String),
}

impl Item {
    /// Each of `lines`, made printable.
    pub(crate) fn lines(lines: &[String]) -> Vec<Self> {
        lines.iter().map(|line| Self::Line(printable(line))).collect()
    }

    /// The table, if there is one.
    pub(crate) fn table(table: Option<Table>) -> Vec<Self> {
        table.map(Self::Table).into_iter().collect()
    }
}

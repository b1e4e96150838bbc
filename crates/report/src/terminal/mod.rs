//! Reports for a terminal, as plain functions from a document and a [`Style`] to a string.
//!
//! Nothing here looks at the terminal or the environment: whoever prints knows whether there are colours, how
//! wide a line is and whether the locale is UTF-8.

mod explain;
mod head;
mod outline;
pub(crate) mod path_tree;
mod pen;
pub(crate) mod run;
mod survey;
mod table;
pub(crate) mod tables;
mod verdicts;
mod wrap;

pub use explain::{explain, explain_list};
pub(crate) use outline::{outline, page};
pub use pen::Ink;
pub(crate) use pen::severity as severity_ink;
pub use run::run;
pub(crate) use survey::surveyed;
pub use survey::{survey, survey_list};
pub use table::{Cell, Side, Table};
pub(crate) use wrap::{columns, hang};

/// How to write for one terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; fewer than 40 are taken as 40.
    pub width: usize,
    /// True if to colour: only on a terminal, and not with NO_COLOR.
    pub colour: bool,
    /// True if the locale is UTF-8; otherwise everything is written in ASCII.
    pub unicode: bool,
    /// True if it is a terminal, on which a table that is too wide cannot be read.
    pub is_terminal: bool,
    /// How much of a run is shown.
    pub verbosity: Verbosity,
}

/// How much of a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// The verdict alone.
    Quiet,
    /// The verdict, three figures, what is wrong, and one line about the quality of the measurement.
    Normal,
    /// Everything.
    Verbose,
}

impl Style {
    /// Style of a file: 100 columns, no colour, UTF-8, everything.
    pub const PLAIN: Self =
        Self { width: 100, colour: false, unicode: true, is_terminal: false, verbosity: Verbosity::Verbose };
    /// Minimum width: anything narrower is not laid out any better.
    pub const WIDTH_MIN: usize = 40;

    /// Returns the columns to lay out for.
    pub(crate) fn columns(self) -> usize {
        self.width.max(Self::WIDTH_MIN)
    }
}

impl Default for Style {
    fn default() -> Self {
        Self::PLAIN
    }
}

//! Reports for a terminal, as pure functions from a document and a [`Style`] to a string.
//!
//! The style tells whether there are colours, how wide a line is, and whether the locale is UTF-8. Nothing
//! here queries the terminal or the environment.

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

/// Capabilities of a terminal, and the requested amount of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Width of the terminal in columns; less than 40 counts as 40.
    pub width: usize,
    /// True for colours: only on a terminal, and not with NO_COLOR.
    pub colour: bool,
    /// True if the locale is UTF-8; otherwise the output is ASCII.
    pub unicode: bool,
    /// True for a terminal, where a table that is too wide cannot be read.
    pub is_terminal: bool,
    /// Amount of text about a run.
    pub verbosity: Verbosity,
}

/// Amount of text about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Only the verdict.
    Quiet,
    /// The verdict, three figures, the problems, and one line about the quality of the measurement.
    Normal,
    /// Everything.
    Verbose,
}

impl Style {
    /// Style of a file: 100 columns, no colour, UTF-8, everything.
    pub const PLAIN: Self =
        Self { width: 100, colour: false, unicode: true, is_terminal: false, verbosity: Verbosity::Verbose };
    /// Minimum width for the layout.
    pub const WIDTH_MIN: usize = 40;

    /// Returns the number of columns for the layout.
    pub(crate) fn columns(self) -> usize {
        self.width.max(Self::WIDTH_MIN)
    }
}

impl Default for Style {
    fn default() -> Self {
        Self::PLAIN
    }
}

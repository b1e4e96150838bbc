//! Error in an expression, with a caret under the place.

use std::fmt;

/// An expression that is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectError {
    /// The whole expression as it was typed.
    pub typed: String,
    /// Where it goes wrong, in characters from its start.
    pub column: usize,
    /// Message: what was expected, and what was probably meant.
    pub message: String,
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        // Tabs and line ends would move the caret away from its place.
        let line: String = self.typed.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        writeln!(f, "  {line}")?;
        write!(f, "  {:>width$}", '^', width = self.column + 1)
    }
}

impl std::error::Error for SelectError {}

//! Error in an expression, displayed with a caret below the position.

use std::fmt;

/// Error of an invalid expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectError {
    /// Complete expression as typed.
    pub typed: String,
    /// Position of the error, in characters.
    pub column: usize,
    /// Message: what was expected, and a suggestion.
    pub message: String,
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        // Tabs and line feeds would misplace the caret.
        let line: String = self.typed.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        writeln!(f, "  {line}")?;
        write!(f, "  {:>width$}", '^', width = self.column + 1)
    }
}

impl std::error::Error for SelectError {}

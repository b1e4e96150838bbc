//! Lines of text output.

use std::fmt::Write as _;

/// A line of stars.
pub(super) const STARS: &str =
    "*******************************************************************************";

/// Text output under construction.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) written: String,
}

impl Page {
    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let written = writeln!(self.written, "{line}");
        debug_assert!(written.is_ok(), "a string refused to be written to");
    }
}

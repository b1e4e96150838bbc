//! Line numbers of positions in a text.

/// Starts of the lines of a file.
pub(super) struct Lines<'a> {
    file: &'a str,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Creates the line table of `text` from the file `file`.
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        let starts = text.match_indices('\n').map(|(newline, _)| newline + 1).collect();
        Self { file, text, starts }
    }

    /// Returns `file:line` of a byte offset, lines counted from 1.
    pub(super) fn place(&self, byte: usize) -> String {
        format!("{}:{}", self.file, self.starts.partition_point(|start| *start <= byte) + 1)
    }

    /// Returns the text at `span`, shortened to one line.
    pub(super) fn quote(&self, span: std::ops::Range<usize>) -> String {
        const SHOWN: usize = 60;
        let text = self.text.get(span).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(SHOWN).collect();
        if shown.len() < text.len() { format!("{shown}...") } else { shown }
    }
}

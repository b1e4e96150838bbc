//! From a place in a text to its line.

/// Where the lines of a file begin.
pub(super) struct Lines<'a> {
    file: &'a str,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Finds the lines of `text`, which is called `file`.
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        let starts = text.match_indices('\n').map(|(newline, _)| newline + 1).collect();
        Self { file, text, starts }
    }

    /// Returns `file:line` of a byte of the text, from 1.
    pub(super) fn place(&self, byte: usize) -> String {
        format!("{}:{}", self.file, self.starts.partition_point(|start| *start <= byte) + 1)
    }

    /// Returns what stands there, cut to a short line.
    pub(super) fn quote(&self, span: std::ops::Range<usize>) -> String {
        const SHOWN: usize = 60;
        let text = self.text.get(span).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(SHOWN).collect();
        if shown.len() < text.len() { format!("{shown}...") } else { shown }
    }
}

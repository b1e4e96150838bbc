//! Tables without lines: columns two spaces apart, figures to the right.

use super::Style;
use super::pen::Ink;
use super::wrap::columns;

/// Which side a column's text is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    /// What it says.
    pub(super) text: String,
    /// How it is set.
    pub(super) ink: Ink,
}

impl Cell {
    /// A plain cell.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ink: Ink::Plain }
    }

    /// A cell in `ink`.
    pub(super) fn inked(ink: Ink, text: impl Into<String>) -> Self {
        Self { text: text.into(), ink }
    }
}

/// A table. Rows may be shorter than the widest.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<Cell>>,
}

const INDENT: usize = 2;
const APART: usize = 2;

impl Table {
    /// A table with a dim head.
    pub(super) fn new(head: &[(&str, Side)]) -> Self {
        let cells = head.iter().map(|(name, _)| Cell::inked(Ink::Dim, *name)).collect();
        Self { sides: head.iter().map(|(_, side)| *side).collect(), rows: vec![cells] }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The columns that the widest line takes.
    pub(super) fn width(&self) -> usize {
        let widths = self.widths();
        INDENT + widths.iter().sum::<usize>() + APART * widths.len().saturating_sub(1)
    }

    /// The table as text.
    pub(super) fn show(&self, style: Style) -> String {
        let widths = self.widths();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(INDENT);
            let mut owed = 0;
            for (index, cell) in row.iter().enumerate() {
                let pad = widths[index].saturating_sub(columns(&cell.text));
                let right = self.sides.get(index) == Some(&Side::Right);
                let before = owed + if right { pad } else { 0 };
                if !cell.text.is_empty() {
                    line.push_str(&" ".repeat(before));
                    line.push_str(&style.ink(cell.ink, &cell.text));
                    owed = 0;
                } else {
                    owed = before;
                }
                owed += APART + if right { 0 } else { pad };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn widths(&self) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        (0..count)
            .map(|index| {
                self.rows.iter().filter_map(|row| row.get(index)).map(|cell| columns(&cell.text)).max()
            })
            .map(Option::unwrap_or_default)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_to_the_right_and_no_line_ends_in_spaces() {
        let mut table = Table::new(&[("", Side::Left), ("IOPS", Side::Right), ("", Side::Left)]);
        table.row(vec![Cell::plain("read"), Cell::plain("215,000"), Cell::plain("x")]);
        table.row(vec![Cell::plain("w"), Cell::plain("39"), Cell::plain("")]);
        table.row(vec![Cell::plain("w"), Cell::plain(""), Cell::plain("y")]);
        assert_eq!(
            table.show(Style::PLAIN),
            "           IOPS\n  read  215,000  x\n  w          39\n  w              y\n"
        );
        assert_eq!(table.width(), 18);
    }
}

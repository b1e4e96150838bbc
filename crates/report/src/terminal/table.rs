//! Tables without lines: columns two spaces apart, figures aligned to the right.

use super::Style;
use super::pen::Ink;
use super::wrap::{columns, hang, wrap};

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Left, for words.
    Left,
    /// Right, for figures.
    Right,
}

/// Cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Text of the cell.
    pub text: String,
    /// Style of the text.
    pub ink: Ink,
}

impl Cell {
    /// Creates a plain cell.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ink: Ink::Plain }
    }

    /// Creates a cell in `ink`.
    pub fn inked(ink: Ink, text: impl Into<String>) -> Self {
        Self { text: text.into(), ink }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::plain(text)
    }
}

/// Table. Rows may be shorter than the head.
#[derive(Debug, Clone, Default)]
pub struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<Cell>>,
    /// Notes, each below its row.
    notes: Vec<String>,
}

/// Table while its columns are added.
#[derive(Debug)]
pub struct Rows<T> {
    of: Vec<T>,
    table: Table,
}

impl<T> Rows<T> {
    /// Adds a column of words under `name`.
    pub fn left<C: Into<Cell>>(self, name: &str, cell: impl Fn(&T) -> C) -> Self {
        self.column(name, Side::Left, cell)
    }

    /// Adds a column of figures under `name`.
    pub fn right<C: Into<Cell>>(self, name: &str, cell: impl Fn(&T) -> C) -> Self {
        self.column(name, Side::Right, cell)
    }

    fn column<C: Into<Cell>>(mut self, name: &str, side: Side, cell: impl Fn(&T) -> C) -> Self {
        self.table.sides.push(side);
        self.table.rows[0].push(Cell::inked(Ink::Dim, name));
        for (row, of) in self.table.rows[1..].iter_mut().zip(&self.of) {
            row.push(cell(of).into());
        }
        self
    }

    /// Returns the table.
    pub fn table(self) -> Table {
        self.table
    }

    /// Returns the table if it has rows below its head.
    pub fn if_any(self) -> Option<Table> {
        (!self.of.is_empty()).then_some(self.table)
    }
}

const INDENT: usize = 2;
const APART: usize = 2;
/// Indent of the text below a row.
const NOTE: &str = "      ";
/// Minimum width of a last column. With less room its text is placed below each row.
const LAST_MIN: usize = 20;

impl Table {
    /// Creates a table with a dim head.
    pub fn new(head: &[(&str, Side)]) -> Self {
        let cells = head.iter().map(|(name, _)| Cell::inked(Ink::Dim, *name)).collect();
        Self { sides: head.iter().map(|(_, side)| *side).collect(), rows: vec![cells], notes: Vec::new() }
    }

    /// Starts a table of `rows`, to which columns are added.
    pub fn for_rows<T>(rows: impl IntoIterator<Item = T>) -> Rows<T> {
        let of: Vec<T> = rows.into_iter().collect();
        let rows = vec![Vec::new(); of.len() + 1];
        Rows { of, table: Self { rows, ..Self::default() } }
    }

    /// Creates a table of figures under `rows[0]`, with words in its first column.
    pub(crate) fn of_figures(rows: Vec<Vec<Cell>>) -> Self {
        let columns = rows.first().map_or(0, Vec::len);
        let sides = (0..columns).map(|column| if column == 0 { Side::Left } else { Side::Right });
        Self { sides: sides.collect(), rows, notes: Vec::new() }
    }

    /// Returns the table without empty columns.
    pub(crate) fn without_empty_columns(self) -> Self {
        let says = |column: usize| {
            self.body().iter().any(|row| row.get(column).is_some_and(|of| !of.text.is_empty()))
        };
        let shown: Vec<bool> = (0..self.sides.len()).map(says).collect();
        let kept = |row: Vec<Cell>| row.into_iter().zip(&shown).filter(|(_, is)| **is).map(|(cell, _)| cell);
        let sides = self.sides.iter().zip(&shown).filter(|(_, is)| **is).map(|(side, _)| *side).collect();
        let rows = self.rows.into_iter().map(|row| kept(row).collect()).collect();
        Self { sides, rows, notes: self.notes }
    }

    /// Returns the table with as many columns as fit, at least `columns_min`.
    pub(super) fn fitting(&self, columns_min: usize, style: Style) -> Self {
        let most = self.sides.len();
        let cut = |columns: usize| Self {
            sides: self.sides[..columns].to_vec(),
            rows: self.rows.iter().map(|row| row[..columns.min(row.len())].to_vec()).collect(),
            notes: self.notes.clone(),
        };
        let fits =
            (columns_min.min(most)..=most).rev().map(cut).find(|table| table.width() <= style.columns());
        fits.unwrap_or_else(|| cut(columns_min.min(most)))
    }

    /// Returns the table with a note below each row.
    pub(crate) fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// Returns the notes below the rows, if there are any.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Returns the names of the columns, each with its side.
    pub(crate) fn head(&self) -> impl Iterator<Item = (&str, Side)> {
        self.rows[0].iter().map(|cell| cell.text.as_str()).zip(self.sides.iter().copied())
    }

    /// Returns the rows below the head.
    pub(crate) fn body(&self) -> &[Vec<Cell>] {
        self.rows.get(1..).unwrap_or_default()
    }

    /// Returns the width of the widest line, in columns.
    pub fn width(&self) -> usize {
        let widths = self.widths();
        INDENT + widths.iter().sum::<usize>() + APART * widths.len().saturating_sub(1)
    }

    /// Returns the table as text.
    pub fn show(&self, style: Style) -> String {
        let widths = self.widths();
        let mut out = String::new();
        for (number, row) in self.rows.iter().enumerate() {
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
            let note = number.checked_sub(1).and_then(|number| self.notes.get(number));
            if let Some(note) = note.filter(|note| !note.is_empty()) {
                out.push_str(&hang(NOTE, note, style.columns()));
            }
        }
        out
    }

    /// Returns the table for a terminal that is too narrow: the first two cells of a row, and below them the
    /// others, each with the name of its column.
    pub(crate) fn stacked(&self, style: Style) -> String {
        let names: Vec<&str> = self.head().map(|(name, _)| name).collect();
        let row = |cells: &Vec<Cell>| {
            let lead = cells.iter().take(2);
            let plain = lead.clone().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join("  ");
            let lead = match INDENT + columns(&plain) <= style.columns() {
                true => format!(
                    "  {}\n",
                    lead.map(|cell| style.ink(cell.ink, &cell.text)).collect::<Vec<_>>().join("  ")
                ),
                false => hang("  ", &plain, style.columns()),
            };
            let rest = cells.iter().zip(&names).skip(2).filter(|(cell, _)| !cell.text.is_empty());
            let rest: Vec<String> = rest.map(|(cell, name)| format!("{name} {}", cell.text)).collect();
            format!("{lead}{}", hang(NOTE, &rest.join(", "), style.columns()))
        };
        self.body().iter().map(row).collect()
    }

    /// Returns the table as text. If it is too wide, the last column is wrapped, or becomes a note below its
    /// row.
    pub fn show_wrapped(&self, style: Style) -> String {
        if !self.notes.is_empty() {
            // A note belongs to a row and is wrapped by itself.
            return self.show(style);
        }
        let widths = self.widths();
        let Some((longest, others)) = widths.split_last() else { return self.show(style) };
        let before: usize = others.iter().map(|width| width + APART).sum();
        let room = style.columns().saturating_sub(INDENT + before);
        if *longest > room && room < LAST_MIN {
            let below = self.last_below();
            let is_narrow = below.width() <= style.columns();
            return if is_narrow { below.show(style) } else { self.stacked(style) };
        }
        let last = others.len();
        let mut wrapped = Self { sides: self.sides.clone(), ..Self::default() };
        for row in &self.rows {
            let long = row.get(last).filter(|cell| columns(&cell.text) > room);
            let Some(Cell { text, ink }) = long else {
                wrapped.row(row.clone());
                continue;
            };
            for (index, line) in wrap(text, room).into_iter().enumerate() {
                let blank = || vec![Cell::plain(""); last];
                let mut cells = if index == 0 { row[..last].to_vec() } else { blank() };
                cells.push(Cell::inked(*ink, line));
                wrapped.row(cells);
            }
        }
        wrapped.show(style)
    }

    /// Returns the table with the last column as notes below the rows, each with the name of the column.
    fn last_below(&self) -> Self {
        let last = self.sides.len().saturating_sub(1);
        let name = self.head().nth(last).map_or("", |(name, _)| name);
        let text = |row: &Vec<Cell>| match row.get(last) {
            Some(cell) if name.is_empty() || cell.text.is_empty() => cell.text.clone(),
            Some(cell) => format!("{name}: {}", cell.text),
            None => String::new(),
        };
        Self {
            sides: self.sides[..last].to_vec(),
            rows: self.rows.iter().map(|row| row.iter().take(last).cloned().collect()).collect(),
            notes: self.body().iter().map(text).collect(),
        }
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

    #[test]
    fn a_last_column_that_is_too_wide_hangs() {
        let mut table = Table::new(&[("", Side::Left), ("IOPS", Side::Right), ("source", Side::Left)]);
        table.row(vec![
            Cell::plain("r"),
            Cell::plain("9"),
            Cell::plain("a data sheet of the vendor of 2012, page 3"),
        ]);
        table.row(vec![Cell::plain("w"), Cell::plain("8"), Cell::plain("the same")]);
        let style = Style { width: 40, ..Style::PLAIN };
        assert_eq!(
            table.show_wrapped(style),
            "     IOPS  source\n  r     9  a data sheet of the vendor of\n           2012, page 3\n  w     8  the same\n"
        );
        let mut table = Table::new(&[("", Side::Left), ("IOPS", Side::Right), ("source", Side::Left)]);
        let source = "a data sheet of the vendor of 2012, page 3";
        table.row(vec![Cell::plain("read of a file"), Cell::plain("9"), Cell::plain(source)]);
        assert_eq!(
            table.show_wrapped(style),
            "                  IOPS\n  read of a file     9\n      source: a data sheet of the vendor\n      of 2012, page 3\n"
        );
        let wide = table.show(Style::PLAIN);
        let name = "read of a file that has a long name";
        table.row(vec![Cell::plain(name), Cell::plain("9"), Cell::plain(source)]);
        let narrow = table.show_wrapped(style);
        assert!(narrow.lines().all(|line| columns(line) <= 40), "{narrow}");
        assert!(narrow.contains("source a data sheet"), "{narrow}");
        table.rows.pop();
        assert_eq!(table.show_wrapped(Style::PLAIN), wide);
    }
}

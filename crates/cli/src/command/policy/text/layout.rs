//! Columns, hanging lines and inks.

use plumb_policy::view::DeviceView;
use plumb_report::Style;
use plumb_report::printable::printable;

/// How a piece of text is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Bold,
    Dim,
    Red,
    Yellow,
    Green,
}

/// `text` in `ink`, if there are colours.
pub(super) fn ink(style: Style, ink: Ink, text: &str) -> String {
    let code = match ink {
        Ink::Plain => return text.to_owned(),
        Ink::Bold => "1",
        Ink::Dim => "2",
        Ink::Red => "1;31",
        Ink::Yellow => "33",
        Ink::Green => "32",
    };
    if style.colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) ink: Ink,
}

impl Cell {
    /// A cell; what comes from outside can steer no terminal.
    pub(super) fn new(ink: Ink, text: &str) -> Self {
        Self { text: printable(text), ink }
    }

    pub(super) fn plain(text: &str) -> Self {
        Self::new(Ink::Plain, text)
    }
}

/// Rows of equal length as lines, columns two spaces apart; and how wide the widest line is.
pub(super) fn columns(rows: &[Vec<Cell>], style: Style) -> (String, usize) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        let mut owed = 0;
        for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            let length = cell.text.chars().count();
            if length > 0 {
                line.push_str(&" ".repeat(owed));
                line.push_str(&ink(style, cell.ink, &cell.text));
                owed = 0;
            }
            owed += width - if length > 0 { length } else { 0 } + 2;
        }
        out.push_str(&line);
        out.push('\n');
    }
    let shown = widths.iter().filter(|width| **width > 0);
    let wide = shown.clone().sum::<usize>() + 2 * shown.count().saturating_sub(1);
    (out, wide)
}

/// `text` after `first`, wrapped at the width of the terminal; further lines hang below where it began.
pub(super) fn hang(first: &str, text: &str, style: Style) -> String {
    let indent = first.chars().count();
    let room = style.width.max(Style::WIDTH_MIN).saturating_sub(indent).max(16);
    let mut out = String::new();
    let mut line = String::new();
    let mut lead = first.to_owned();
    let text = printable(text);
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            out.push_str(&format!("{lead}{line}\n"));
            line.clear();
            lead = " ".repeat(indent);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(&format!("{lead}{line}\n"));
    out
}

/// Vendor and model as one; the vendor that a translation layer makes up is left out.
pub(super) fn model(view: &DeviceView) -> String {
    let vendor = view.vendor.as_deref().filter(|vendor| *vendor != "ATA" && *vendor != "NVMe");
    let model = view.model.as_deref();
    let both: Vec<&str> = vendor.into_iter().chain(model).map(str::trim).collect();
    both.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_one_another_and_empty_ones_take_no_room() {
        let row = |cells: [&str; 3]| cells.into_iter().map(Cell::plain).collect::<Vec<_>>();
        let (text, wide) = columns(&[row(["a", "", "bb"]), row(["ccc", "", "d\u{1b}"])], Style::PLAIN);
        assert_eq!(text, "a    bb\nccc  d\\u{1b}\n");
        assert_eq!(wide, 12);
    }

    #[test]
    fn further_lines_hang_and_no_word_is_lost() {
        let style = Style { width: 40, ..Style::PLAIN };
        let text = "one two three four five six seven eight nine ten eleven twelve";
        let out = hang("  - ", text, style);
        assert!(out.lines().all(|line| line.chars().count() <= 40), "{out}");
        assert!(out.lines().skip(1).all(|line| line.starts_with("    ")), "{out}");
        assert_eq!(out.replace("  - ", "").split_whitespace().collect::<Vec<_>>().join(" "), text);
    }
}

//! How these pages are set: with the pieces of `plumb_report::terminal`, and with names from outside made fit
//! to print.

use plumb_policy::view::DeviceView;
use plumb_report::Style;
use plumb_report::printable::printable;
use plumb_report::terminal::{self, Cell, Side, Table};

pub(super) use plumb_report::terminal::Ink;

/// A cell; what comes from outside can steer no terminal.
pub(super) fn cell(ink: Ink, text: &str) -> Cell {
    Cell::inked(ink, printable(text))
}

/// A table of words. Columns of which no row says anything are left out.
pub(super) fn table(head: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    let says =
        |column: usize| rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.text.is_empty()));
    let shown: Vec<bool> = (0..head.len()).map(says).collect();
    let names = head.iter().zip(&shown).filter(|(_, shown)| **shown);
    let names: Vec<(&str, Side)> = names.map(|(name, _)| (*name, Side::Left)).collect();
    let mut table = Table::new(&names);
    for row in rows {
        let cells = row.into_iter().zip(&shown).filter(|(_, shown)| **shown);
        table.row(cells.map(|(cell, _)| cell).collect());
    }
    table
}

/// `text` after `first`, wrapped at the width of the terminal; further lines hang below where it began.
pub(super) fn hang(first: &str, text: &str, style: Style) -> String {
    terminal::hang(first, &printable(text), style.width.max(Style::WIDTH_MIN))
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
    fn columns_that_say_nothing_take_no_room_and_no_name_steers_the_terminal() {
        let row = |cells: [&str; 3]| cells.map(|text| cell(Ink::Plain, text)).to_vec();
        let table = table(&["one", "two", "three"], vec![row(["a", "", "bb"]), row(["c", "", "d\u{1b}"])]);
        assert_eq!(table.show(Style::PLAIN), "  one  three\n  a    bb\n  c    d\\u{1b}\n");
    }
}

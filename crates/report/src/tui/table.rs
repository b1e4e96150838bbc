//! Figures of each target: application side, syncs, storage side.

use plumb_text::printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style as Paint};
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};

use super::paint::{colour_of, ink};
use super::sample::LivePercentiles;
use super::view::LiveView;
use crate::quantity::{duration, mebibytes, or_dash, rate};

/// Width of a column of figures.
const FIGURE: u16 = 10;
/// Maximum and minimum width of a name.
const NAME: (u16, u16) = (28, 8);
/// Columns of figures in order. Without room the last are left out first.
const COLUMNS: [&str; 7] = ["IOPS", "MiB/s", "p50", "p99", "p99.9", "max", "flushes/s"];
const DISPENSABLE: [&str; 6] = ["max", "p99.9", "p50", "flushes/s", "p99", "MiB/s"];

/// Row: its target, and its figures in the order of [`COLUMNS`].
struct Figures {
    target: usize,
    name: String,
    cells: [String; 7],
}

/// Returns the number of rows of the table in a view of this height: all, but at most half of the view.
pub(super) fn height(view: &LiveView, height: u16) -> u16 {
    let wanted = rows(view).len() + 1;
    let most = match height {
        0..=3 => 0,
        few @ 4..=9 => few - 3,
        many => many / 2,
    };
    u16::try_from(wanted).unwrap_or(u16::MAX).min(most)
}

/// Draws the table into `area`.
pub(super) fn draw(view: &LiveView, frame: &mut Frame<'_>, area: Rect) {
    if area.height < 2 {
        return;
    }
    let mut all = rows(view);
    let room = usize::from(area.height) - 1;
    if all.len() > room {
        let hidden = all.len() - room.saturating_sub(1);
        all.truncate(room.saturating_sub(1));
        all.push(Figures { target: 0, name: format!("and {hidden} more rows"), cells: Default::default() });
    }
    let shown = columns_within(area.width);
    let dim = ink(view, Paint::new().add_modifier(Modifier::DIM));
    let head = Row::new(
        std::iter::once(Line::default())
            .chain(shown.iter().map(|at| Line::from(COLUMNS[*at]).right_aligned())),
    )
    .style(dim);
    let body = all.iter().map(|row| {
        let name = Line::styled(row.name.clone(), ink(view, colour_of(row.target)));
        let cells = shown.iter().map(|at| Line::from(row.cells[*at].clone()).right_aligned());
        Row::new(std::iter::once(name).chain(cells))
    });
    let mut widths = vec![Constraint::Max(NAME.0)];
    widths.extend(shown.iter().map(|_| Constraint::Length(FIGURE)));
    frame.render_widget(Table::new(body, widths).header(head).column_spacing(1), area);
}

/// Returns the indices of the columns that fit.
fn columns_within(width: u16) -> Vec<usize> {
    let room = usize::from(width.saturating_sub(NAME.1) / (FIGURE + 1)).clamp(1, COLUMNS.len());
    let gone = &DISPENSABLE[..(COLUMNS.len() - room).min(DISPENSABLE.len())];
    (0..COLUMNS.len()).filter(|at| !gone.contains(&COLUMNS[*at])).collect()
}

fn rows(view: &LiveView) -> Vec<Figures> {
    let Some(sample) = &view.last else { return Vec::new() };
    let mut rows = Vec::new();
    for (index, target) in sample.targets.iter().enumerate() {
        let rates = view.rates.get(index).copied().flatten();
        let storage = rates.and_then(|rates| rates.storage);
        let mine = &target.application;
        let mut add =
            |name: String, moved: Option<(f64, f64)>, took: LivePercentiles, flushes: Option<f64>| {
                let [p50, p99, p999, max] =
                    [took.p50, took.p99, took.p999, took.max].map(|latency| or_dash(latency, duration));
                let (iops, bytes) =
                    (or_dash(moved, |moved| rate(moved.0)), or_dash(moved, |moved| mebibytes(moved.1)));
                let cells = [iops, bytes, p50, p99, p999, max, or_dash(flushes, rate)];
                rows.push(Figures { target: index, name, cells });
            };
        let moved = rates.map(|rates| (rates.iops, rates.bytes));
        let flushes = rates.map(|rates| rates.flushes);
        add(printable(&target.name), moved, mine.latency, flushes);
        if mine.flushes > 0 {
            add("  sync".to_owned(), None, mine.sync, flushes);
        }
        if target.storage.is_some() {
            let name = if target.shares_devices { "  storage, shared" } else { "  storage" };
            let moved = storage.map(|rates| (rates.iops, rates.bytes));
            add(name.to_owned(), moved, LivePercentiles::default(), storage.and_then(|rates| rates.flushes));
        }
    }
    rows
}

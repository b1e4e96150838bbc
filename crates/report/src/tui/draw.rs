//! Draws the whole view: head, chart, table, foot. Parts that do not fit are left out, the least important
//! first.

use plumb_text::printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as Paint};
use ratatui::text::{Line, Span, Text};

use super::paint::ink;
use super::sample::{LivePhase, LiveSample};
use super::view::LiveView;
use super::{chart, table};
use crate::quantity::{duration, percent};

impl LiveView {
    /// Draws the latest sample into the whole of `frame`, of any size.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.is_empty() {
            return;
        }
        let rows = table::height(self, area.height);
        let remarks = self.last.as_ref().map_or(0, |sample| sample.remarks.len() as u16);
        let spare = area.height.saturating_sub(3 + rows + remarks);
        let chart_rows = if spare > chart::HEIGHT_MIN { spare - 1 } else { 0 };
        let key_rows = u16::from(chart_rows > 0);
        let [head, bar, plot, key, figures, rest, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::from(area.height > 1)),
            Constraint::Length(chart_rows),
            Constraint::Length(key_rows),
            Constraint::Length(rows),
            Constraint::Fill(1),
            Constraint::Length(u16::from(area.height > 2)),
        ])
        .areas(area);
        frame.render_widget(title(self), head);
        frame.render_widget(progress_bar(self, bar.width), bar);
        if chart_rows > 0 {
            chart::draw(self, frame, plot);
            frame.render_widget(chart::key(self), key);
        }
        table::draw(self, frame, figures);
        let remarks = self.last.iter().flat_map(|sample| &sample.remarks);
        frame.render_widget(Text::from_iter(remarks.map(|remark| Line::raw(printable(remark)))), rest);
        let stop = match self.last.as_ref().map(|sample| sample.phase) {
            Some(LivePhase::Serving) => "q or Ctrl-C ends the view, and nothing else",
            _ => "q or Ctrl-C stops the load; what was measured until then is kept",
        };
        frame.render_widget(Line::styled(stop, ink(self, Paint::new().add_modifier(Modifier::DIM))), foot);
        if !self.style.unicode {
            to_ascii(frame, area);
        }
    }
}

fn title(view: &LiveView) -> Line<'static> {
    let time = view.last.as_ref().map_or_else(String::new, clock);
    let left = view.last.as_ref().and_then(LiveSample::left);
    let left = left.map_or_else(String::new, |left| match left.round() {
        0.0 => String::new(),
        left => format!(", {} left", duration(left)),
    });
    Line::from(vec![
        Span::styled(printable(&view.title), ink(view, Paint::new().add_modifier(Modifier::BOLD))),
        Span::raw("  "),
        Span::styled(view.phase(), ink(view, Paint::new().fg(Color::Green))),
        Span::raw(format!("  {time}{left}")),
    ])
}

/// Returns `12 s of 30 s`, or `12 s` if the end is unknown.
fn clock(sample: &LiveSample) -> String {
    let elapsed = duration(sample.elapsed.max(0.0).round());
    match sample.expected {
        Some(expected) if expected.is_finite() => format!("{elapsed} of {}", duration(expected.round())),
        _ => elapsed,
    }
    .replace("0 ns", "0 s")
}

fn progress_bar(view: &LiveView, width: u16) -> Line<'static> {
    let Some(share) = view.last.as_ref().and_then(LiveSample::share) else {
        return Line::default();
    };
    let text = format!(" {}", percent(share));
    let room = usize::from(width).saturating_sub(text.chars().count());
    let done = (share * room as f64).round() as usize;
    Line::from(vec![
        Span::styled("█".repeat(done), ink(view, Paint::new().fg(Color::Green))),
        Span::styled(
            "░".repeat(room.saturating_sub(done)),
            ink(view, Paint::new().add_modifier(Modifier::DIM)),
        ),
        Span::raw(text),
    ])
}

/// Replaces characters that are not ASCII by others of the same width.
fn to_ascii(frame: &mut Frame<'_>, area: Rect) {
    let buffer = frame.buffer_mut();
    for position in area.positions() {
        let Some(cell) = buffer.cell_mut(position) else { continue };
        let sign = match cell.symbol() {
            symbol if symbol.is_ascii() => continue,
            "│" => "|",
            "─" | "━" | "–" => "-",
            "┌" | "┐" | "└" | "┘" => "+",
            "█" => "#",
            "░" => ".",
            "µ" => "u",
            _ => "?",
        };
        cell.set_symbol(sign);
    }
}

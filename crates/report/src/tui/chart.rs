//! Operations per second over time, one line for each target, side by side.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};

use super::draw::{colour_of, frame_of, ink};
use super::view::LiveView;
use crate::printable::printable;
use crate::quantity;

/// Lower than this there is no room for a line.
pub(super) const HEIGHT_MIN: u16 = 6;

/// Draws the chart into `area`.
pub(super) fn draw(view: &LiveView, frame: &mut Frame<'_>, area: Rect) {
    let end = view
        .last
        .as_ref()
        .map_or(1.0, |sample| sample.expected.unwrap_or(sample.elapsed).max(sample.elapsed));
    let end = if end.is_finite() { end.max(1.0) } else { 1.0 };
    let top = ceiling(view.lines.iter().flatten().map(|point| point.1).fold(0.0, f64::max));
    let datasets = view
        .lines
        .iter()
        .enumerate()
        .map(|(index, points)| {
            Dataset::default()
                .name(name(view, index))
                .marker(if view.style.unicode { Marker::Braille } else { Marker::Custom(sign(index)) })
                .graph_type(GraphType::Line)
                .style(ink(view, colour_of(index)))
                .data(points)
        })
        .collect();
    let labels = |texts: [String; 3]| texts.map(Line::from).to_vec();
    let seconds = |value: f64| format!("{} s", quantity::three_digits(value.round()));
    let chart = Chart::new(datasets)
        .block(frame_of(view, " IOPS "))
        .x_axis(Axis::default().bounds([0.0, end]).labels(labels([
            seconds(0.0),
            seconds(end / 2.0),
            seconds(end),
        ])))
        .y_axis(Axis::default().bounds([0.0, top]).labels(labels([0.0, top / 2.0, top].map(quantity::rate))))
        // Names have a place of their own, which does not vanish when there is little room.
        .legend_position(None);
    frame.render_widget(chart, area);
}

/// Which line is which target's, in one line of text.
pub(super) fn key(view: &LiveView) -> Line<'static> {
    let mut spans = Vec::new();
    for index in 0..view.lines.len() {
        let sign = if view.style.unicode { "━ ".to_owned() } else { format!("{} ", sign(index)) };
        spans.push(Span::styled(sign, ink(view, colour_of(index))));
        spans.push(Span::raw(format!("{}   ", name(view, index))));
    }
    Line::from(spans)
}

fn name(view: &LiveView, index: usize) -> String {
    let target = view.last.as_ref().and_then(|sample| sample.targets.get(index));
    target.map_or_else(String::new, |target| printable(&target.name))
}

/// In ASCII, lines are told apart by what they are made of.
fn sign(index: usize) -> char {
    ['*', '+', 'o', 'x', '#', '@'][index % 6]
}

/// A round number that is not below `value`: 1, 2 or 5 times a power of ten.
fn ceiling(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_in_a_round_number() {
        for (value, top) in
            [(0.0, 1.0), (f64::NAN, 1.0), (1.0, 1.0), (39.0, 50.0), (158_000.0, 200_000.0), (9.0, 10.0)]
        {
            assert!((ceiling(value) - top).abs() < 1e-6 * top, "{value}: {}", ceiling(value));
        }
    }
}

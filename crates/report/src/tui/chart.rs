//! Operations per second over time, with one line for the application and one for the storage of each target.

use plumb_text::printable;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style as Paint};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType};

use super::paint::{colour_of, frame_of, ink};
use super::view::LiveView;
use crate::quantity;

/// Minimum height for a chart.
pub(super) const HEIGHT_MIN: u16 = 6;

/// Line of the chart: its target, whether it is of the storage, and its points.
struct ShownLine<'a> {
    target: usize,
    is_storage: bool,
    points: &'a [(f64, f64)],
}

/// Returns the lines with points. Targets that share devices have one line for the storage.
fn shown(view: &LiveView) -> Vec<ShownLine<'_>> {
    let shares = |target: usize| {
        let sample = view.last.as_ref();
        sample.and_then(|sample| sample.targets.get(target)).is_some_and(|target| target.shares_devices)
    };
    let first_shared = (0..view.lines.len()).find(|target| shares(*target));
    let lines = view.lines.iter().enumerate().flat_map(|(target, lines)| {
        [false, true].map(|is_storage| ShownLine {
            target,
            is_storage,
            points: &lines[usize::from(is_storage)],
        })
    });
    let told = |line: &ShownLine<'_>| {
        !line.points.is_empty()
            && (!line.is_storage || !shares(line.target) || first_shared == Some(line.target))
    };
    lines.filter(told).collect()
}

/// Draws the chart into `area`. Both axes end at the largest value.
pub(super) fn draw(view: &LiveView, frame: &mut Frame<'_>, area: Rect) {
    let end = view.last.as_ref().map_or(1.0, |sample| sample.elapsed);
    let end = if end.is_finite() { end.max(1.0) } else { 1.0 };
    let lines = shown(view);
    let top = ceiling(lines.iter().flat_map(|line| line.points).map(|point| point.1).fold(0.0, f64::max));
    // Lines of the application are drawn over those of the storage.
    let (storage, application): (Vec<&ShownLine<'_>>, Vec<_>) =
        lines.iter().partition(|line| line.is_storage);
    let labels = |texts: [String; 3]| texts.map(Line::from).to_vec();
    let seconds = |value: f64| format!("{} s", quantity::three_digits(value));
    let times = [0.0, end / 2.0, end].map(seconds);
    let rates = [0.0, top / 2.0, top].map(quantity::rate);
    let chart = Chart::new(storage.into_iter().chain(application).map(|line| dataset(view, line)).collect())
        .block(frame_of(view, " IOPS "))
        .x_axis(Axis::default().bounds([0.0, end]).labels(labels(times)))
        .y_axis(Axis::default().bounds([0.0, top]).labels(labels(rates)))
        // The legend has its own place, which remains in a small window.
        .legend_position(None);
    frame.render_widget(chart, area);
}

fn dataset<'a>(view: &LiveView, line: &ShownLine<'a>) -> Dataset<'a> {
    let marker = match (view.style.unicode, line.is_storage) {
        (true, false) => Marker::Braille,
        (true, true) => Marker::Dot,
        (false, _) => Marker::Custom(sign(line)),
    };
    let graph = if line.is_storage { GraphType::Scatter } else { GraphType::Line };
    Dataset::default().marker(marker).graph_type(graph).style(paint(view, line)).data(line.points)
}

/// Returns the legend of the chart in one line of text.
pub(super) fn key(view: &LiveView) -> Line<'static> {
    let mut spans = Vec::new();
    for line in shown(view) {
        let sample = match (view.style.unicode, line.is_storage) {
            (true, false) => "━ ".to_owned(),
            (true, true) => "• ".to_owned(),
            (false, _) => format!("{} ", sign(&line)),
        };
        spans.push(Span::styled(sample, paint(view, &line)));
        let target = view.last.as_ref().and_then(|sample| sample.targets.get(line.target));
        let name = target.map_or_else(String::new, |target| printable(&target.name));
        spans.push(Span::raw(if line.is_storage { "storage   ".to_owned() } else { format!("{name}   ") }));
    }
    Line::from(spans)
}

fn paint(view: &LiveView, line: &ShownLine<'_>) -> Paint {
    let paint = colour_of(line.target);
    ink(view, if line.is_storage { paint.add_modifier(Modifier::DIM) } else { paint })
}

/// In ASCII, each line is drawn with its own character.
fn sign(line: &ShownLine<'_>) -> char {
    let signs =
        if line.is_storage { ['.', ':', ',', ';', '\'', '"'] } else { ['*', '+', 'o', 'x', '#', '@'] };
    signs[line.target % 6]
}

/// Returns a round number slightly above `value`.
fn ceiling(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.4, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_in_a_round_number() {
        for (value, top) in
            [(0.0, 1.0), (f64::NAN, 1.0), (1.0, 1.0), (39.0, 40.0), (158_000.0, 160_000.0), (9.0, 10.0)]
        {
            assert!((ceiling(value) - top).abs() < 1e-6 * top, "{value}: {}", ceiling(value));
        }
    }
}

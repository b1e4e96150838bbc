//! The charts of a load: distributions by target and direction; rate, throughput and latency over time.

use plumb_measure::SeriesPoint;

use super::chart_data::{self, Line, Phase};
use super::chart_view::{SeriesView, whole};
use super::sync_table;
use crate::document::{Part, RunDocument, RunRecording};
use crate::printable::printable;
use crate::quantity;

/// More lines than this nobody can tell apart.
const LINES_MAX: usize = 12;
/// The time series of more targets than this would make the page large.
const TARGETS_MAX: usize = 8;

/// What is drawn of each target.
const PARTS: [Part; 5] = [Part::Read, Part::Write, Part::Trim, Part::Sync, Part::Durable];

/// The distributions, by target and direction.
pub(super) fn cdf_lines(recording: &RunRecording) -> Vec<Line> {
    parts(recording)
        .take(LINES_MAX)
        .enumerate()
        .map(|(line, (index, part))| {
            let histogram = recording.histogram(index, part);
            let (x, y) = histogram.map(chart_data::nines).unwrap_or_default();
            Line { name: name(&recording.document, index, part), colour: sync_table::colour(line), x, y }
        })
        .collect()
}

/// The distributions in words.
pub(super) fn cdf_words(recording: &RunRecording) -> String {
    let each: Vec<String> = parts(recording)
        .take(LINES_MAX)
        .filter_map(|(index, part)| {
            let latency = recording.histogram(index, part)?.summary()?;
            Some(format!(
                "{}: half within {}, 99% within {}, all within {}",
                name(&recording.document, index, part),
                quantity::duration(latency.p50),
                quantity::duration(latency.p99),
                quantity::duration(latency.max)
            ))
        })
        .collect();
    format!("Distribution of the time of an operation. {}.", each.join("; "))
}

fn parts(recording: &RunRecording) -> impl Iterator<Item = (usize, Part)> + '_ {
    (0..recording.document.targets.len())
        .flat_map(|index| PARTS.map(|part| (index, part)))
        .filter(|(index, part)| recording.histogram(*index, *part).is_some())
}

fn name(document: &RunDocument, index: usize, part: Part) -> String {
    format!("{} {}", printable(&document.label_of(index)), part.name())
}

/// What stands above the time series.
pub(super) fn series_words(document: &RunDocument) -> String {
    let words = "What each target did in each tenth of a second, or in wider steps if the run was long. Every chart has its \
                 own scale, from zero. Of latency, the line is the mean and the dashes are the longest.";
    match document.targets.len().checked_sub(TARGETS_MAX) {
        Some(more) if more > 0 => {
            format!("{words} The first {TARGETS_MAX} targets are shown; all are in the recording.")
        }
        _ => words.to_owned(),
    }
}

/// Three charts for each target: rate, throughput, latency.
pub(super) fn series(recording: &RunRecording) -> (Vec<SeriesView>, Vec<Phase>) {
    let document = &recording.document;
    let mut charts = Vec::new();
    let labels = document.labels();
    for (index, target) in document.targets.iter().enumerate().take(TARGETS_MAX) {
        let points = whole(recording.series_of(index), Some(target.sides.application.seconds));
        if !points.is_empty() {
            let label = printable(&labels[index]);
            charts.extend([
                rate(index, &label, points),
                throughput(index, &label, points),
                latency(index, &label, points),
            ]);
        }
    }
    charts.into_iter().unzip()
}

fn rate(index: usize, label: &str, points: &[SeriesPoint]) -> (SeriesView, Phase) {
    let (x, y) = chart_data::rates(points);
    let range = range(&y, quantity::rate);
    let phase = Phase { anchor: format!("iops-{index}"), unit: "count", y: known(y), x, high: Vec::new() };
    (view(&phase, label, format!("{range} IOPS")), phase)
}

fn throughput(index: usize, label: &str, points: &[SeriesPoint]) -> (SeriesView, Phase) {
    let (x, y) = chart_data::throughputs(points);
    let range = range(&y, quantity::rate);
    let phase = Phase { anchor: format!("mib-{index}"), unit: "count", y: known(y), x, high: Vec::new() };
    (view(&phase, label, format!("{range} MiB/s")), phase)
}

fn latency(index: usize, label: &str, points: &[SeriesPoint]) -> (SeriesView, Phase) {
    let (x, mean, longest) = chart_data::latencies(points);
    let known: Vec<f64> = longest.iter().copied().flatten().collect();
    let range = range(&known, quantity::duration);
    let phase = Phase { anchor: format!("latency-{index}"), unit: "seconds", x, y: mean, high: longest };
    (view(&phase, label, format!("longest {range}")), phase)
}

fn known(values: Vec<f64>) -> Vec<Option<f64>> {
    values.into_iter().map(Some).collect()
}

fn range(values: &[f64], show: fn(f64) -> String) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    format!("{} to {}", show(low), show(high))
}

fn view(phase: &Phase, label: &str, range: String) -> SeriesView {
    let aria = format!("{label} over time: {range}.");
    SeriesView { anchor: phase.anchor.clone(), name: label.to_owned(), range, aria }
}

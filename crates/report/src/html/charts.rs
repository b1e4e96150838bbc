//! The charts of the page: their data, and the same in words for those who do not see them. Distributions by target and
//! direction; rate, throughput and latency over time.

use plumb_measure::SeriesPoint;

use super::chart_data::{self, Line, Phase};
use super::sync_table;
use crate::document::{Part, RunDocument, RunRecording};
use crate::printable::printable;
use crate::{quantity, sentences, wording};

/// More lines than this nobody can tell apart.
const LINES_MAX: usize = 12;
/// The time series of more targets than this would make the page large.
const TARGETS_MAX: usize = 8;

/// What is drawn of each target.
const PARTS: [Part; 5] = [Part::Read, Part::Write, Part::Trim, Part::Sync, Part::Durable];

pub(super) struct CdfView {
    pub(super) present: bool,
    pub(super) aria: String,
}

pub(super) struct SeriesView {
    pub(super) anchor: String,
    pub(super) name: String,
    pub(super) range: String,
    pub(super) aria: String,
}

/// The distributions of the methods of a durable write, where there are such; else of all targets, by direction.
pub(super) fn cdf_lines(recording: &RunRecording) -> Vec<Line> {
    parts(recording)
        .take(LINES_MAX)
        .enumerate()
        .filter_map(|(line, (index, part))| {
            let (x, y) = chart_data::nines(recording.histogram(index, part)?);
            Some(Line {
                name: name(&recording.document, index, part),
                colour: sync_table::colour(line),
                x,
                y,
            })
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

/// What is drawn. Without its distribution a method keeps its place, for its colour is that of the table.
fn parts(recording: &RunRecording) -> impl Iterator<Item = (usize, Part)> + '_ {
    let document = &recording.document;
    let methods = sync_table::measured(document).next().is_some();
    let drawn = move |index: usize, part: Part| match methods {
        true => {
            let target = &document.targets[index];
            part == Part::Durable
                && sentences::is_method(document, target)
                && target.sides.durable_latency.is_some()
        }
        false => recording.histogram(index, part).is_some(),
    };
    (0..document.targets.len())
        .flat_map(|index| PARTS.map(|part| (index, part)))
        .filter(move |(index, part)| drawn(*index, *part))
}

fn name(document: &RunDocument, index: usize, part: Part) -> String {
    let job = document.targets.get(index).and_then(|target| document.job_of(target));
    match job.and_then(|job| job.method) {
        Some(method) => wording::method_short(method).to_owned(),
        None => format!("{} {}", printable(&document.label_of(index)), part.name()),
    }
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

/// Charts for each target: rate and latency, and throughput where operations are of several sizes.
pub(super) fn series(recording: &RunRecording) -> (Vec<SeriesView>, Vec<Phase>) {
    let document = &recording.document;
    let mut charts = Vec::new();
    let labels = document.labels();
    for (index, target) in document.targets.iter().enumerate().take(TARGETS_MAX) {
        let points = whole(recording.series_of(index), Some(target.sides.application.seconds));
        if !points.is_empty() {
            let label = printable(&labels[index]);
            charts.push(rate(index, &label, points));
            if document.job_of(target).is_none_or(|job| job.block_bytes.is_none()) {
                charts.push(throughput(index, &label, points));
            }
            charts.push(latency(index, &label, points));
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

/// The points without a last one that the end of the window cut: its rate would look like a fall.
fn whole(points: &[SeriesPoint], seconds: Option<f64>) -> &[SeriesPoint] {
    let (Some(seconds), [first, .., last]) = (seconds, points) else { return points };
    let width = (last.at.as_secs_f64() - first.at.as_secs_f64()) / (points.len() - 1) as f64;
    let is_cut = last.at.as_secs_f64() - first.at.as_secs_f64() + width > seconds + width / 100.0;
    if is_cut { &points[..points.len() - 1] } else { points }
}

#[cfg(test)]
mod tests {
    use plumb_block::Nanos;

    use super::*;

    #[test]
    fn a_bucket_that_the_end_cut_is_not_drawn() {
        let point = |n: u64| SeriesPoint {
            at: Nanos::millis(100) * n,
            operations: 1,
            bytes: 1,
            latency_sum: Nanos(1),
            latency_max: Nanos(1),
        };
        let points: Vec<_> = (0..11).map(point).collect();
        assert_eq!(whole(&points, Some(1.02)).len(), 10);
        assert_eq!(whole(&points, Some(1.1)).len(), 11);
        assert_eq!(whole(&points, None).len(), 11);
        assert_eq!(whole(&points[..1], Some(0.01)).len(), 1);
    }
}

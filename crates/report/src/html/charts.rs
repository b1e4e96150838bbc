//! Charts of the page: their data, and descriptions for readers who cannot see them. Distributions by target
//! and direction; rates, throughput and latency over time, of the application and of the storage.

use plumb_measure::run::TimeseriesRow;
use plumb_text::printable;

use super::chart_data::{self, Chart, Line, PointFunction, TIME_OF_RUN};
use super::style::STYLES;
use crate::document::{Part, RunDocument, RunRecording};
use crate::levels::loses_synced;
use crate::{quantity, sentences, wording};

/// Maximum number of targets with time series, to limit the size of the page.
const TARGETS_MAX: usize = 8;

/// Returns the distributions of the methods of durable writes, if there are any, otherwise those of all
/// targets by direction. `None` if none was recorded.
pub(super) fn distributions(recording: &RunRecording) -> Option<Chart> {
    let document = &recording.document;
    let methods = document.targets.iter().any(|target| sentences::is_method(document, target));
    let places = (0..document.targets.len()).flat_map(|index| Part::OPERATIONS.map(|part| (index, part)));
    let kept = places.filter_map(|(index, part)| {
        let is_method = part == Part::Durable && sentences::is_method(document, &document.targets[index]);
        let histogram = recording.latencies(index, part).filter(|_| is_method || !methods)?;
        Some((part_name(document, index, part), histogram))
    });
    let kept: Vec<_> = kept.collect();
    let drawn = || kept.iter().take(STYLES);
    let lines = drawn().enumerate().map(|(style, (name, histogram))| {
        let (x, y) = chart_data::nines(histogram);
        Line { name: name.clone(), style, x, y: y.into_iter().map(Some).collect() }
    });
    let lines = lines.collect();
    let each = drawn().filter_map(|(name, histogram)| {
        let latency = histogram.summary()?;
        let [p50, p99, max] = [latency.p50, latency.p99, Some(latency.max)].map(quantity::duration);
        Some(format!("{name}: half within {p50}, 99% within {p99}, all within {max}"))
    });
    let aria = format!("Distribution of the time of an operation. {}.", each.collect::<Vec<_>>().join("; "));
    let words = match kept.len().saturating_sub(STYLES) {
        0 => String::new(),
        more => format!("{more} more are in the recording."),
    };
    (!kept.is_empty()).then(|| Chart::of_shares("cdf".to_owned(), lines, words, aria))
}

fn part_name(document: &RunDocument, index: usize, part: Part) -> String {
    let target = &document.targets[index];
    match document.job_of(target).and_then(|job| job.method) {
        Some(method) => wording::method_short(method).to_owned(),
        None => {
            let part = match part {
                Part::Durable if loses_synced(document, target) => "write and sync",
                part => part.name(),
            };
            format!("{} {part}", printable(&document.label_of(index)))
        }
    }
}

/// Returns the text above the time series.
pub(super) fn series_words(document: &RunDocument) -> String {
    let words = "What happened in each tenth of a second, or in wider steps if the run was long; of a wider step p50 is a mean \
                 and p99 the highest. Every chart has its own scale, from zero. Storage is what all \
                 programs sent to the block devices below.";
    match document.targets.len().checked_sub(TARGETS_MAX) {
        Some(more) if more > 0 => {
            format!("{words} The first {TARGETS_MAX} targets are shown; all are in the recording.")
        }
        _ => words.to_owned(),
    }
}

/// Requested line: its name, its rows, and the function for its values.
type LineRequest<'a> = (&'static str, &'a [TimeseriesRow], PointFunction);

/// Returns the charts for each target: rates, throughput, latency, and that of its syncs. Empty lines and
/// charts are left out.
pub(super) fn series(recording: &RunRecording) -> Vec<Chart> {
    let document = &recording.document;
    let labels = document.labels();
    let mut charts = Vec::new();
    for (index, target) in document.targets.iter().enumerate().take(TARGETS_MAX) {
        let all = whole(recording.series_of(index).to_vec(), target.sides.application.seconds);
        let track = |part| recording.track(index, part);
        let directions = [("read", Part::Read), ("write", Part::Write), ("trim", Part::Trim)];
        let mut moving: Vec<(&'static str, Vec<TimeseriesRow>)> = directions
            .map(|(name, part)| (name, whole(track(part).to_vec(), target.sides.application.seconds)))
            .into_iter()
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        if moving.is_empty() {
            let name = match target.sides.moving().as_slice() {
                [(name, _)] => name,
                _ => "application",
            };
            moving.push((name, all.clone()));
        }
        moving.push(("transactions", track(Part::Transaction).to_vec()));
        moving.push(("storage", track(Part::Storage).to_vec()));
        let lines = |of: PointFunction| {
            moving.iter().map(|(name, rows)| (*name, rows.as_slice(), of)).collect::<Vec<LineRequest<'_>>>()
        };
        let latency: [LineRequest<'_>; 2] =
            [("mean", &all, chart_data::mean), ("longest", &all, chart_data::longest)];
        let sync: [LineRequest<'_>; 2] =
            [("p50", track(Part::Sync), chart_data::p50), ("p99", track(Part::Sync), chart_data::p99)];
        let label = printable(&labels[index]);
        charts.extend(time_chart(
            &label,
            format!("iops-{index}"),
            "operations per second",
            &lines(chart_data::rate),
        ));
        charts.extend(time_chart(
            &label,
            format!("mib-{index}"),
            "MiB per second",
            &lines(chart_data::throughput),
        ));
        let is_scheduled = target.sides.schedule.is_some();
        let title = if is_scheduled { "latency without the wait for its start" } else { "latency" };
        charts.extend(time_chart(&label, format!("latency-{index}"), title, &latency));
        charts.extend(time_chart(&label, format!("sync-{index}"), "latency of a sync", &sync));
    }
    charts
}

fn time_chart(label: &str, anchor: String, title: &'static str, wanted: &[LineRequest<'_>]) -> Option<Chart> {
    let made = wanted.iter().enumerate().map(|(style, (name, rows, of))| {
        let (x, y) = chart_data::steps(rows, *of);
        Line { name: (*name).to_owned(), style, x, y }
    });
    let mut lines: Vec<Line> = made.collect();
    // A storage side that moved nothing is a finding; a missing one is not.
    lines.retain(|line| {
        line.y.iter().flatten().any(|y| *y > 0.0) || (line.name == "storage" && !line.y.is_empty())
    });
    if !lines.iter().any(|line| line.y.iter().flatten().any(|y| *y > 0.0)) {
        return None;
    }
    let is_latency = title.starts_with("latency");
    let show = if is_latency { quantity::duration } else { quantity::rate };
    let ranges = ranges(&lines, show);
    Some(Chart {
        anchor,
        is_share: false,
        unit: if is_latency { "seconds" } else { "count" },
        title: title.to_owned(),
        across: TIME_OF_RUN,
        lines,
        name: label.to_owned(),
        words: format!("{title}: {ranges}"),
        aria: format!("{label}, {title} over time: {ranges}."),
    })
}

/// Returns a description of the range of each line.
pub(super) fn ranges(lines: &[Line], show: impl Fn(f64) -> String) -> String {
    let range = |line: &Line| {
        let known = || line.y.iter().flatten().copied();
        let (low, high) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
        Some(format!("{} {} to {}", line.name, show(low), show(high)))
    };
    lines.iter().filter_map(range).collect::<Vec<_>>().join(", ")
}

/// Returns the rows without a last one that the end of the window truncated, since its rate would look like a
/// drop.
fn whole(mut rows: Vec<TimeseriesRow>, seconds: f64) -> Vec<TimeseriesRow> {
    if let [first, .., last] = rows.as_slice() {
        let length = last.at.as_secs_f64() - first.at.as_secs_f64();
        let width = length / (rows.len() - 1) as f64;
        if length + width > seconds + width / 100.0 {
            rows.pop();
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use plumb_block::Nanos;

    use super::*;

    #[test]
    fn a_bucket_that_the_end_cut_is_not_drawn() {
        let row =
            |n: u64| TimeseriesRow { at: Nanos::millis(100) * n, operations: 1, ..TimeseriesRow::default() };
        let rows: Vec<_> = (0..11).map(row).collect();
        assert_eq!(whole(rows.clone(), 1.02).len(), 10);
        assert_eq!(whole(rows.clone(), 1.1).len(), 11);
        assert_eq!(whole(rows[..1].to_vec(), 0.01).len(), 1);
    }

    #[test]
    fn a_chart_without_a_value_is_left_out_and_idle_storage_is_shown() {
        let row = |at, operations| TimeseriesRow { at, operations, ..TimeseriesRow::default() };
        let rows = |operations| [0, 100, 200].map(|ms| row(Nanos::millis(ms), operations)).to_vec();
        let (idle, busy) = (rows(0), rows(7));
        let of = |wanted: &[LineRequest<'_>]| {
            let chart = time_chart("x", "x".to_owned(), "operations per second", wanted)?;
            Some(chart.lines.iter().map(|line| (line.name.clone(), line.style)).collect::<Vec<_>>())
        };
        fn line<'a>(name: &'static str, rows: &'a [TimeseriesRow]) -> LineRequest<'a> {
            (name, rows, chart_data::rate)
        }
        assert_eq!(of(&[line("read", &idle), line("storage", &idle)]), None);
        assert_eq!(of(&[]), None);
        let named = of(&[line("read", &idle), line("write", &busy), line("storage", &idle)]).unwrap();
        assert_eq!(named, [("write".to_owned(), 1), ("storage".to_owned(), 2)]);
    }
}

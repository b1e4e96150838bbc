//! The charts of the page: their data, and the same in words for those who do not see them.

use plumb_measure::SeriesPoint;

use super::chart_data::{self, Line, Phase};
use super::sync_table;
use crate::printable::printable;
use crate::recording::CheckRecording;
use crate::{quantity, wording};

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

/// The distributions of the methods, in the order of the table and with its colours.
pub(super) fn cdf_lines(recording: &CheckRecording) -> Vec<Line> {
    let measured = recording.document.sync.iter().filter(|result| result.latency.is_some()).enumerate();
    measured
        .filter_map(|(index, result)| {
            let histogram = recording.histograms.get(wording::method(result.method))?;
            let (x, y) = chart_data::nines(histogram);
            let name = wording::method_short(result.method).to_owned();
            (!x.is_empty()).then(|| Line { name, colour: sync_table::colour(index), x, y })
        })
        .collect()
}

/// The distribution chart in words.
pub(super) fn cdf_words(recording: &CheckRecording) -> String {
    let each: Vec<String> = recording
        .document
        .sync
        .iter()
        .filter_map(|result| {
            let latency = result.latency.as_ref()?;
            Some(format!(
                "{}: half within {}, 99% within {}, all within {}",
                wording::method(result.method),
                quantity::duration(latency.p50),
                quantity::duration(latency.p99),
                quantity::duration(latency.max)
            ))
        })
        .collect();
    format!("Distribution of the time of a durable write. {}.", each.join("; "))
}

pub(super) fn series(recording: &CheckRecording) -> (Vec<SeriesView>, Vec<Phase>) {
    recording
        .series
        .iter()
        .enumerate()
        .filter(|(_, (_, points))| !points.is_empty())
        .map(|(index, (name, points))| {
            let anchor = format!("series-{index}");
            let (x, y) = chart_data::rates(whole(points, window_seconds(recording, name)));
            let low = y.iter().copied().fold(f64::INFINITY, f64::min);
            let high = y.iter().copied().fold(0.0, f64::max);
            let range = format!("{} to {} IOPS", quantity::rate(low), quantity::rate(high));
            let name = printable(name);
            let aria = format!("Operations per second of {name} over time: {range}.");
            (SeriesView { anchor: anchor.clone(), name, range, aria }, {
                let y = y.into_iter().map(Some).collect();
                Phase { anchor, unit: "count", x, y, high: Vec::new() }
            })
        })
        .unzip()
}

/// The length of the window of `phase`, where the document has it.
fn window_seconds(recording: &CheckRecording, phase: &str) -> Option<f64> {
    let document = &recording.document;
    let sync = document.sync.iter().find(|result| wording::method(result.method) == phase);
    let io = document.io.iter().find(|io| io.name == phase);
    sync.map(|result| result.seconds).or_else(|| Some(io?.application.as_ref()?.seconds))
}

/// The points without a last one that the end of the window cut: its rate would look like a fall.
pub(super) fn whole(points: &[SeriesPoint], seconds: Option<f64>) -> &[SeriesPoint] {
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

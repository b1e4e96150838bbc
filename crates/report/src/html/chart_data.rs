//! Data of the page's charts, reduced to few points for a small file without visible changes.

use plumb_measure::Histogram;
use plumb_measure::run::TimeseriesRow;
use serde::Serialize;

use super::style;

/// Maximum number of points of a distribution.
pub(super) const POINTS_MAX: usize = 240;
/// Maximum number of steps of a time series.
pub(super) const STEPS_MAX: usize = 120;

/// Title of the horizontal axis of a time series.
pub(super) const TIME_OF_RUN: &str = "time of the run";

/// One chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Chart {
    /// Element that contains the chart.
    pub(super) anchor: String,
    /// True for shares of operations within a time (as nines), false for values over time.
    pub(super) is_share: bool,
    /// Unit of the values: `count`, or `seconds` of latency.
    pub(super) unit: &'static str,
    /// Title of the vertical axis.
    pub(super) title: String,
    /// Title of the horizontal axis: `block` counts blocks, any other has seconds.
    pub(super) across: &'static str,
    /// Lines of the chart.
    pub(super) lines: Vec<Line>,
    /// Subject of the chart.
    #[serde(skip)]
    pub(super) name: String,
    /// Description of the content, and of its range.
    #[serde(skip)]
    pub(super) words: String,
    /// Description for readers who cannot see the chart.
    #[serde(skip)]
    pub(super) aria: String,
}

impl Chart {
    /// Creates a chart of the shares of operations that completed within a time.
    pub(super) fn of_shares(anchor: String, lines: Vec<Line>, words: String, aria: String) -> Self {
        Self {
            anchor,
            is_share: true,
            unit: "seconds",
            title: "share of operations".to_owned(),
            across: "time of an operation",
            lines,
            name: "Share that ended within a time".to_owned(),
            words,
            aria,
        }
    }

    /// Creates a chart of rates over time. `ranges` describes the ranges of its lines.
    pub(super) fn of_rates(
        anchor: String,
        name: String,
        title: &str,
        lines: Vec<Line>,
        ranges: &str,
    ) -> Self {
        Self {
            anchor,
            is_share: false,
            unit: "count",
            title: title.to_owned(),
            across: TIME_OF_RUN,
            lines,
            words: format!("{title}: {ranges}"),
            aria: format!("{name}, {title}: {ranges}."),
            name,
        }
    }
}

/// One line of a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Line {
    /// Name of the line.
    pub(super) name: String,
    /// Index of the line's style.
    pub(super) style: usize,
    /// Seconds, ascending: the latency in a distribution, the time in a time series.
    pub(super) x: Vec<f64>,
    /// Nines (1 is 90%, 2 is 99%), rates, or latencies; null without a value.
    pub(super) y: Vec<Option<f64>>,
}

impl Line {
    /// Returns a sample of the line's style for a legend, as an element.
    pub(super) fn sample(&self) -> String {
        style::sample(self.style)
    }
}

/// Returns the distribution as nines over seconds. The slowest of `n` operations is at the share expected in
/// the long run, `n / (n + 1)`, since 100% has no place on this scale.
pub(super) fn nines(histogram: &Histogram) -> (Vec<f64>, Vec<f64>) {
    let count = histogram.count() as f64;
    let mut seen = 0_u64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    if let Some(min) = histogram.min() {
        points.push((min.as_secs_f64(), 0.0));
    }
    for (value, in_bin) in histogram.bins() {
        seen = seen.saturating_add(in_bin);
        let nines = -(1.0 - seen as f64 / (count + 1.0)).log10();
        let x = significant(value.as_secs_f64().max(1e-9), 4);
        match points.last_mut() {
            Some(last) if last.0 >= x => last.1 = nines,
            _ => points.push((x, nines)),
        }
    }
    thin(&points).into_iter().map(|(x, y)| (x, significant(y, 4))).unzip()
}

/// Keeps the first and last points, and those in between that differ from the previous one by a visible step.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    if points.len() <= POINTS_MAX {
        return points.to_vec();
    }
    let step = |from: f64, to: f64| (to - from).max(f64::MIN_POSITIVE) / (POINTS_MAX / 2) as f64;
    let (step_x, step_y) = (step(first.0.log10(), last.0.log10()), step(first.1, last.1));
    let mut kept = vec![*first];
    let mut at = *first;
    for point in &points[1..points.len() - 1] {
        if point.0.log10() - at.0.log10() >= step_x || point.1 - at.1 >= step_y {
            kept.push(*point);
            at = *point;
        }
    }
    kept.push(*last);
    kept
}

/// Function that computes the value of a step of a time series from adjacent rows and the seconds that they
/// cover.
pub(super) type PointFunction = fn(&[TimeseriesRow], f64) -> Option<f64>;

/// Returns the operations per second.
pub(super) fn rate(rows: &[TimeseriesRow], seconds: f64) -> Option<f64> {
    Some(rows.iter().map(|row| row.operations as f64).sum::<f64>() / seconds)
}

/// Returns the MiB per second.
pub(super) fn throughput(rows: &[TimeseriesRow], seconds: f64) -> Option<f64> {
    Some(rows.iter().map(|row| row.bytes as f64).sum::<f64>() / f64::from(1 << 20) / seconds)
}

/// Returns the mean latency.
pub(super) fn mean(rows: &[TimeseriesRow], _: f64) -> Option<f64> {
    weighted(rows, |row| row.latency_mean)
}

/// Returns the longest latency.
pub(super) fn longest(rows: &[TimeseriesRow], _: f64) -> Option<f64> {
    rows.iter().filter_map(|row| row.latency_max).reduce(f64::max)
}

/// Returns the median latency; for several rows the mean of their medians.
pub(super) fn p50(rows: &[TimeseriesRow], _: f64) -> Option<f64> {
    weighted(rows, |row| row.latency_p50)
}

/// Returns the 99th percentile of latency; for several rows the highest of theirs.
pub(super) fn p99(rows: &[TimeseriesRow], _: f64) -> Option<f64> {
    rows.iter().filter_map(|row| row.latency_p99).reduce(f64::max)
}

fn weighted(rows: &[TimeseriesRow], of: impl Fn(&TimeseriesRow) -> Option<f64>) -> Option<f64> {
    let known = || rows.iter().filter_map(|row| Some((of(row)?, row.operations as f64)));
    let operations: f64 = known().map(|(_, operations)| operations).sum();
    (operations > 0.0)
        .then(|| known().map(|(value, operations)| value * operations).sum::<f64>() / operations)
}

/// Returns the values of `of` over seconds, at the middle of each step. Adjacent rows are combined until they
/// are few enough.
pub(super) fn steps(rows: &[TimeseriesRow], of: PointFunction) -> (Vec<f64>, Vec<Option<f64>>) {
    let begins = |index: usize| rows.get(index).map(|row| row.at.as_secs_f64());
    let last_width = match rows {
        [.., before, last] => last.at.as_secs_f64() - before.at.as_secs_f64(),
        _ => plumb_measure::SERIES_BUCKET.as_secs_f64(),
    };
    let together = rows.len().div_ceil(STEPS_MAX).max(1);
    let chunks = rows.chunks(together).enumerate().filter_map(|(number, chunk)| {
        let begin = chunk.first()?.at.as_secs_f64();
        let end =
            begins((number + 1) * together).or_else(|| Some(chunk.last()?.at.as_secs_f64() + last_width))?;
        let y = of(chunk, end - begin).filter(|y| y.is_finite());
        Some((significant((begin + end) / 2.0, 5), y.map(|y| significant(y, 4))))
    });
    chunks.unzip()
}

/// Returns `value` with that many significant digits, to keep the file small.
fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    format!("{value:.*e}", (digits - 1).max(0) as usize).parse().unwrap_or(value)
}

/// Returns JSON that is safe within a `<script>` element: without `</`, `<!--`, and the line separators of
/// JavaScript.
pub(super) fn embeddable(json: &str) -> String {
    json.replace('<', r"\u003c").replace('\u{2028}', r"\u2028").replace('\u{2029}', r"\u2029")
}

#[cfg(test)]
mod tests {
    use plumb_block::Nanos;

    use super::*;

    #[test]
    fn many_bins_become_few_points_that_rise() {
        let mut histogram = Histogram::new();
        for value in 1..200_000_u64 {
            histogram.record(Nanos(value * 37));
        }
        let (x, y) = nines(&histogram);
        assert!(x.len() <= POINTS_MAX + 2 && x.len() > 100, "{}", x.len());
        assert!(x.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(y.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!((y.last().unwrap() - 5.3).abs() < 0.1, "{y:?}");
    }

    #[test]
    fn one_operation_and_none_are_drawn_too() {
        let mut histogram = Histogram::new();
        assert_eq!(nines(&histogram), (vec![], vec![]));
        histogram.record(Nanos(1000));
        assert_eq!(nines(&histogram).0, [1e-6]);
    }

    fn row(at: Nanos, operations: u64) -> TimeseriesRow {
        TimeseriesRow { at, operations, ..TimeseriesRow::default() }
    }

    #[test]
    fn a_long_series_is_averaged_not_sampled() {
        let rows: Vec<_> = (0..960).map(|n| row(Nanos::millis(100) * n, (n % 2) * 100)).collect();
        let (x, y) = steps(&rows, rate);
        assert_eq!(x.len(), STEPS_MAX);
        assert!(y.iter().all(|rate| *rate == Some(500.0)), "{y:?}");
    }

    #[test]
    fn looks_that_came_late_are_rates_all_the_same() {
        let rows: Vec<_> = [0, 100, 350, 450].map(|at| row(Nanos::millis(at), at / 10)).to_vec();
        let rows: Vec<_> =
            rows.windows(2).map(|pair| row(pair[0].at, pair[1].operations - pair[0].operations)).collect();
        let (x, y) = steps(&rows[..2], rate);
        assert_eq!((x[0], y[0]), (0.05, Some(100.0)));
        let (x, y) = steps(&rows, rate);
        assert_eq!((x[1], y[1]), (0.225, Some(100.0)));
    }

    #[test]
    fn steps_of_several_rows_weigh_medians_and_keep_the_highest_p99() {
        let of = |operations, ms: f64| TimeseriesRow {
            operations,
            latency_p50: (operations > 0).then_some(ms / 1e3),
            latency_p99: (operations > 0).then_some(ms / 1e2),
            ..TimeseriesRow::default()
        };
        let rows = [of(3, 1.0), of(0, 0.0), of(1, 5.0)];
        assert_eq!((p50(&rows, 1.0), p99(&rows, 1.0)), (Some(0.002), Some(0.05)));
        assert_eq!((p50(&rows[1..2], 1.0), longest(&rows, 1.0)), (None, None));
    }

    #[test]
    fn nothing_leaves_the_script_element() {
        assert_eq!(embeddable("</script><!--\u{2028}"), r"\u003c/script>\u003c!--\u2028");
    }
}

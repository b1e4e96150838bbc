//! What the page's charts are drawn from: few enough points for a small file, none that would change a picture.

use plumb_measure::{Histogram, SeriesPoint};
use serde::Serialize;

use crate::figures::bucket_seconds;

/// At most this many points of a distribution, and of a time series.
pub(super) const POINTS_MAX: usize = 240;

/// All charts of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ChartData {
    /// One line of the distribution chart for each method.
    pub(super) cdf: Vec<Line>,
    /// One small chart for each phase.
    pub(super) series: Vec<Phase>,
}

/// One line of the distribution chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Line {
    /// What it is of.
    pub(super) name: String,
    /// The name of its colour in the style sheet.
    pub(super) colour: String,
    /// Seconds, ascending.
    pub(super) x: Vec<f64>,
    /// Nines: 1 is 90%, 2 is 99%, 3 is 99.9%.
    pub(super) y: Vec<f64>,
}

/// One small chart of a time series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Phase {
    /// The element that holds it.
    pub(super) anchor: String,
    /// Seconds since the start of the phase, at the middle of each point's span.
    pub(super) x: Vec<f64>,
    /// What its values are: `count`, or `seconds` of latency.
    pub(super) unit: &'static str,
    /// The values: rates, or means of latency; null where there is none.
    pub(super) y: Vec<Option<f64>>,
    /// A second line above, of the longest latencies; empty if there is none.
    pub(super) high: Vec<Option<f64>>,
}

/// The distribution as nines over seconds. The slowest operation of `n` stands at the share of one that is not
/// slower than it in the long run, `n / (n + 1)`: "100%" has no place on this scale.
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

/// Keeps the first, the last, and of the others those that climb or move on by a visible step.
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

/// Operations per second over seconds; neighbouring buckets are averaged until they are few enough.
pub(super) fn rates(points: &[SeriesPoint]) -> (Vec<f64>, Vec<f64>) {
    sums(points, |point| point.operations)
        .map(|(at, sum, span)| (at, significant(sum as f64 / span, 4)))
        .unzip()
}

/// MiB per second over seconds, likewise.
pub(super) fn throughputs(points: &[SeriesPoint]) -> (Vec<f64>, Vec<f64>) {
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    sums(points, |point| point.bytes)
        .map(|(at, sum, span)| (at, significant(mebibytes(sum) / span, 4)))
        .unzip()
}

/// Seconds, mean latency and longest latency; null where nothing completed.
pub(super) fn latencies(points: &[SeriesPoint]) -> (Vec<f64>, Vec<Option<f64>>, Vec<Option<f64>>) {
    let at = sums(points, |_| 0).map(|(at, ..)| at).collect();
    let of_each = |of: &dyn Fn(&[SeriesPoint]) -> f64| -> Vec<Option<f64>> {
        let chunks = points.chunks(together(points));
        chunks
            .map(|chunk| chunk.iter().any(|point| point.operations > 0).then(|| significant(of(chunk), 4)))
            .collect()
    };
    let mean = of_each(&|chunk| {
        let operations: f64 = chunk.iter().map(|point| point.operations as f64).sum();
        chunk.iter().map(|point| point.latency_sum.as_secs_f64()).sum::<f64>() / operations
    });
    let longest =
        of_each(&|chunk| chunk.iter().map(|point| point.latency_max.as_secs_f64()).fold(0.0, f64::max));
    (at, mean, longest)
}

/// The middle, the sum and the length of each stretch of buckets.
fn sums(points: &[SeriesPoint], of: impl Fn(&SeriesPoint) -> u64) -> impl Iterator<Item = (f64, u64, f64)> {
    let bucket = bucket_seconds(points);
    points.chunks(together(points)).map(move |chunk| {
        let span = bucket * chunk.len() as f64;
        let sum = chunk.iter().fold(0_u64, |sum, point| of(point).saturating_add(sum));
        (significant(chunk[0].at.as_secs_f64() + span / 2.0, 5), sum, span)
    })
}

/// How many neighbouring buckets are taken together.
fn together(points: &[SeriesPoint]) -> usize {
    points.len().div_ceil(POINTS_MAX).max(1)
}

/// `value` with that many significant digits, to keep the file small.
fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    format!("{value:.*e}", (digits - 1).max(0) as usize).parse().unwrap_or(value)
}

/// JSON that can stand within a `<script>` element: no `</`, no `<!--`, no line separators of JavaScript.
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

    #[test]
    fn a_long_series_is_averaged_not_sampled() {
        let point = |n: u64| SeriesPoint {
            at: Nanos::millis(100) * n,
            operations: if n.is_multiple_of(2) { 100 } else { 0 },
            bytes: 0,
            latency_sum: Nanos(0),
            latency_max: Nanos(0),
        };
        let points: Vec<_> = (0..960).map(point).collect();
        let (x, y) = rates(&points);
        assert_eq!(x.len(), POINTS_MAX);
        assert!(y.iter().all(|rate| *rate == 500.0), "{y:?}");
    }

    #[test]
    fn nothing_leaves_the_script_element() {
        assert_eq!(embeddable("</script><!--\u{2028}"), r"\u003c/script>\u003c!--\u2028");
    }
}

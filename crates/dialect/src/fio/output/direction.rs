//! One direction of a job: what moved, and how evenly.

use plumb_block::Nanos;
use plumb_load::Direction;
use serde_json::{Value, json};

use super::latency;
use crate::fio::ReportedJob;

/// Figures of samples: fio takes one for each averaging window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Samples {
    /// The least.
    pub(super) min: f64,
    /// The most.
    pub(super) max: f64,
    /// The mean.
    pub(super) mean: f64,
    /// The standard deviation.
    pub(super) deviation: f64,
    /// How many.
    pub(super) count: usize,
}

impl Samples {
    fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(0.0, f64::max);
        Self { min, max, mean, deviation, count }
    }
}

/// Bytes and operations per second in each whole window of `width` within `length`.
pub(super) fn rates(direction: &Direction, length: Nanos, width: Nanos) -> Vec<(f64, f64)> {
    let bucket = direction.series.width();
    let together = usize::try_from(width.0 / bucket.0).unwrap_or(usize::MAX).max(1);
    let points = direction.series.whole_points(length);
    let chunks = points.chunks(together).filter(|chunk| chunk.len() == together);
    let rates = chunks.map(|chunk| {
        let seconds = (bucket * chunk.len() as u64).as_secs_f64();
        let bytes: u64 = chunk.iter().map(|point| point.bytes).sum();
        let operations: u64 = chunk.iter().map(|point| point.operations).sum();
        (bytes as f64 / seconds, operations as f64 / seconds)
    });
    rates.collect()
}

/// Samples of the bandwidth in KiB/s and of the operations per second.
pub(super) fn samples(direction: &Direction, length: Nanos, reported: &ReportedJob) -> (Samples, Samples) {
    if direction.operations() == 0 {
        return Default::default();
    }
    let bandwidths: Vec<f64> =
        rates(direction, length, reported.bandwidth_window).iter().map(|(bytes, _)| bytes / 1024.0).collect();
    let operations: Vec<f64> =
        rates(direction, length, reported.iops_window).iter().map(|(_, operations)| *operations).collect();
    (Samples::of(&bandwidths), Samples::of(&operations))
}

/// Bytes and operations per second over all of `length`.
pub(super) fn mean_rates(direction: &Direction, length: Nanos) -> (f64, f64) {
    let seconds = length.as_secs_f64();
    let rate = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    (rate(direction.bytes.0), rate(direction.operations()))
}

/// The object of a direction in JSON. `group_bandwidth` is what its group moved in bytes per second.
pub(super) fn object(
    direction: &Direction,
    length: Nanos,
    reported: &ReportedJob,
    group_bandwidth: f64,
    plus: bool,
) -> Value {
    let moved = direction.operations() > 0;
    let (bandwidth, iops) = mean_rates(direction, length);
    let (bw, io) = samples(direction, length, reported);
    let share =
        if group_bandwidth > 0.0 { (bw.mean * 1024.0 * 100.0 / group_bandwidth).min(100.0) } else { 0.0 };
    let total = direction.latency_from_intended_start.as_ref().unwrap_or(&direction.latency);
    let list = Some(reported.percentiles.as_slice());
    json!({
        "io_bytes": direction.bytes.0,
        "io_kbytes": direction.bytes.0 >> 10,
        "bw_bytes": bandwidth.round() as u64,
        "bw": (bandwidth / 1024.0).floor() as u64,
        "iops": iops,
        "runtime": if moved { length.0 / 1_000_000 } else { 0 },
        "total_ios": direction.operations(),
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency::object(None, None, plus),
        "clat_ns": latency::object(Some(&direction.latency), list.filter(|_| reported.clat_percentiles), plus),
        "lat_ns": latency::object(Some(total), list.filter(|_| reported.lat_percentiles), plus),
        "bw_min": bw.min.floor() as u64,
        "bw_max": bw.max.floor() as u64,
        "bw_agg": share,
        "bw_mean": bw.mean,
        "bw_dev": bw.deviation,
        "bw_samples": bw.count,
        "iops_min": io.min.floor() as u64,
        "iops_max": io.max.floor() as u64,
        "iops_mean": io.mean,
        "iops_stddev": io.deviation,
        "iops_samples": io.count,
    })
}

//! Figures of one direction of a job.

use plumb_block::Nanos;
use plumb_load::Direction;
use plumb_report::export::fio::{FioDirection, Samples, latency};

use crate::fio::ReportedJob;

/// Returns bytes and operations per second in each whole window of `width` within `length`.
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

/// Returns the samples of the bandwidth in KiB/s and of the operations per second.
pub(super) fn samples(direction: &Direction, length: Nanos, reported: &ReportedJob) -> (Samples, Samples) {
    if direction.operations() == 0 {
        return Default::default();
    }
    let bandwidths: Vec<f64> =
        rates(direction, length, reported.bandwidth_window).iter().map(|(bytes, _)| bytes / 1024.0).collect();
    let operations: Vec<f64> =
        rates(direction, length, reported.iops_window).iter().map(|(_, operations)| *operations).collect();
    (Samples::from_values(&bandwidths), Samples::from_values(&operations))
}

/// Returns bytes and operations per second over `length`.
pub(super) fn mean_rates(direction: &Direction, length: Nanos) -> (f64, f64) {
    let seconds = length.as_secs_f64();
    let rate = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    (rate(direction.bytes.0), rate(direction.operations()))
}

/// Returns the figures of a direction. `group_bandwidth` is that of its group in bytes per second.
pub(super) fn figures(
    direction: &Direction,
    length: Nanos,
    reported: &ReportedJob,
    group_bandwidth: f64,
    plus: bool,
) -> FioDirection {
    let (bytes_per_second, iops) = mean_rates(direction, length);
    let (bandwidth, rate) = samples(direction, length, reported);
    let share = if group_bandwidth > 0.0 {
        (bandwidth.mean * 1024.0 * 100.0 / group_bandwidth).min(100.0)
    } else {
        0.0
    };
    let list = Some(reported.percentiles.as_slice());
    FioDirection {
        operations: direction.operations(),
        bytes: direction.bytes.0,
        runtime_ms: if direction.operations() > 0 { length.0 / 1_000_000 } else { 0 },
        iops,
        bytes_per_second,
        clat: latency::object(Some(&direction.latency), list.filter(|_| reported.clat_percentiles), plus),
        lat: latency::object(Some(&direction.latency), list.filter(|_| reported.lat_percentiles), plus),
        bandwidth,
        share,
        rate,
    }
}

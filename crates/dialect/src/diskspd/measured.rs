//! Figures for both output formats: rates, percentiles, I/Os per interval, processor use.

use plumb_block::{Bytes, Nanos};
use plumb_load::{Direction, LoadOutcome, Part, ProcessorUse, SpanResult};
use plumb_measure::{Histogram, Series, SeriesPoint};
use plumb_workload::EffectiveZone;

use super::profile::{Target, TimeSpan};

/// Operations covered by a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Reads and writes.
    Total,
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl Side {
    /// Returns the figures of this side of `outcome`.
    pub(super) fn direction(self, outcome: &LoadOutcome) -> Direction {
        match self {
            Self::Read => outcome.read.clone(),
            Self::Write => outcome.write.clone(),
            Self::Total => {
                let mut both = outcome.read.clone();
                both.merge(&outcome.write);
                both
            }
        }
    }
}

/// Returns the parts of all threads, each with the index of its thread.
pub(super) fn parts(result: &SpanResult) -> impl Iterator<Item = (usize, &Part)> {
    result
        .threads
        .iter()
        .enumerate()
        .flat_map(|(number, thread)| thread.parts.iter().map(move |part| (number, part)))
}

/// Returns `results` with the latency of each write including its flush, where each write has one. DiskSpd
/// times a store to a mapping with its flush.
pub(super) fn timed_with_flushes(results: &[SpanResult]) -> Vec<SpanResult> {
    let mut results = results.to_vec();
    let parts =
        results.iter_mut().flat_map(|result| &mut result.threads).flat_map(|thread| &mut thread.parts);
    for LoadOutcome { write, durable, .. } in parts.map(|part| &mut part.outcome) {
        if durable.count() > 0 {
            write.bytes = Bytes(write.bytes.0 / write.operations().max(1) * durable.count());
            write.latency = durable.clone();
        }
    }
    results
}

/// Returns true if the window is too short for rates, by DiskSpd's limit.
pub(super) fn is_interrupted(result: &SpanResult) -> bool {
    result.window < Nanos(100)
}

/// Returns `amount` per second of `window`.
pub(super) fn per_second(amount: u64, window: Nanos) -> f64 {
    let seconds = window.as_secs_f64();
    if seconds > 0.0 { amount as f64 / seconds } else { 0.0 }
}

/// Returns the rate in MiB/s over `window`.
pub(super) fn mib_per_second(bytes: u64, window: Nanos) -> f64 {
    per_second(bytes, window) / f64::from(1 << 20)
}

/// Converts seconds to milliseconds.
pub(super) fn ms(seconds: f64) -> f64 {
    seconds * 1e3
}

/// Formats milliseconds as DiskSpd does in XML.
pub(super) fn three_decimals(ms: f64) -> String {
    format!("{ms:.3}")
}

/// Latencies of a histogram by rank.
pub(super) struct Ranks<'a> {
    histogram: &'a Histogram,
    bins: Vec<(Nanos, u64)>,
}

impl<'a> Ranks<'a> {
    /// Creates the ranks of `histogram`.
    pub(super) fn from_histogram(histogram: &'a Histogram) -> Self {
        let mut seen = 0;
        let bins = histogram.bins().map(|(value, count)| {
            seen += count;
            (value, seen)
        });
        Self { histogram, bins: bins.collect() }
    }

    /// Returns the latency in milliseconds not exceeded by `parts` of 1,000,000,000 operations: 0 for the
    /// shortest, 1,000,000,000 for the longest. `None` without operations.
    pub(super) fn at(&self, parts: u64) -> Option<f64> {
        let count = self.histogram.count();
        let rank = (u128::from(count) * u128::from(parts)).div_ceil(1_000_000_000) as u64;
        let value = match rank {
            0 | 1 => self.histogram.min(),
            _ if rank == count => self.histogram.max(),
            _ => {
                let place = self.bins.partition_point(|(_, seen)| *seen < rank);
                self.bins.get(place).map(|(value, _)| *value)
            }
        };
        value.map(|value| ms(value.as_secs_f64()))
    }
}

/// I/Os in the whole intervals of a window.
#[derive(Debug)]
pub(super) struct Intervals {
    /// Length of an interval.
    pub(super) length: Nanos,
    /// Consecutive intervals.
    pub(super) buckets: Vec<SeriesPoint>,
}

impl Intervals {
    /// Creates the intervals of `series` over `window`, with length `asked_ms` rounded up to a multiple of
    /// `series_width` and the width of `series`.
    pub(super) fn from_series(series: &Series, window: Nanos, asked_ms: u32, series_width: Nanos) -> Self {
        let length = Self::length_of(asked_ms, series_width.max(series.width()));
        let mut buckets = vec![SeriesPoint::default(); (window.0 / length.0.max(1)) as usize];
        let joined = length.0 / series.width().0.max(1);
        for (place, point) in series.points().iter().enumerate() {
            let place = place as u64 / joined.max(1);
            let Some(bucket) = buckets.get_mut(place as usize) else { break };
            bucket.add(point);
        }
        Self { length, buckets }
    }

    fn length_of(asked_ms: u32, width: Nanos) -> Nanos {
        let asked = Nanos::millis(u64::from(asked_ms));
        Nanos(width.0.max(1) * asked.0.div_ceil(width.0.max(1)).max(1))
    }

    /// Returns the standard deviation of the I/Os per second over the intervals.
    pub(super) fn deviation(&self) -> f64 {
        if self.buckets.is_empty() {
            return 0.0;
        }
        let count = self.buckets.len() as f64;
        let mean = self.buckets.iter().map(|bucket| bucket.operations as f64).sum::<f64>() / count;
        let squares =
            self.buckets.iter().map(|bucket| (bucket.operations as f64 - mean).powi(2)).sum::<f64>();
        (squares / count).sqrt() / self.length.as_secs_f64()
    }
}

/// Processor use in percent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) used: f64,
    pub(super) user: f64,
    pub(super) kernel: f64,
    pub(super) idle: f64,
}

impl Usage {
    /// Returns the usage of one processor.
    pub(super) fn from_processor(processor: &ProcessorUse) -> Self {
        let all = (processor.user + processor.kernel + processor.idle).as_secs_f64();
        let percent = |time: Nanos| if all > 0.0 { 100.0 * time.as_secs_f64() / all } else { 0.0 };
        let (user, kernel) = (percent(processor.user), percent(processor.kernel));
        Self { used: user + kernel, user, kernel, idle: percent(processor.idle) }
    }

    /// Returns the mean use of all processors.
    pub(super) fn mean(processors: &[ProcessorUse]) -> Self {
        let count = processors.len().max(1) as f64;
        processors.iter().map(Self::from_processor).fold(Self::default(), |sum, each| Self {
            used: sum.used + each.used / count,
            user: sum.user + each.user / count,
            kernel: sum.kernel + each.kernel / count,
            idle: sum.idle + each.idle / count,
        })
    }
}

/// Returns the target of the profile for the target at `place` of `result`. Threads that choose among targets
/// form several jobs in a span, so a target may occur at several places.
pub(super) fn asked<'a>(span: &'a TimeSpan, result: &SpanResult, place: usize) -> Option<&'a Target> {
    let name = &result.targets.get(place)?.name;
    let there = span.targets.get(place).filter(|target| target.path == *name);
    there.or_else(|| span.targets.iter().find(|target| target.path == *name))
}

/// Returns the effective distribution on a target of `size`, with offsets from the start of the range and
/// without holes; `None` without a distribution. A target shorter than the distribution truncates it, and the
/// shares then do not add up to 100.
pub(super) fn effective(span: &TimeSpan, target: &Target, size: u64) -> Option<Vec<EffectiveZone>> {
    target.distribution.as_ref()?;
    let end = Some(target.max_size).filter(|end| *end > 0 && *end <= size);
    let workload = super::drive::workload(span, target, 1, end).within(Bytes(size)).ok()?;
    let mut zones = workload.effective_zones().ok()?;
    zones.iter_mut().for_each(|zone| zone.range.offset = Bytes(zone.range.offset.0 - target.base));
    Some(zones).filter(|zones| !zones.is_empty())
}

/// Converts the start of a run from RFC 3339 to DiskSpd's format: `2024/01/31 12:00:00 UTC`.
pub(super) fn start_time(rfc3339: &str) -> String {
    let (date, time) = rfc3339.split_once('T').unwrap_or((rfc3339, ""));
    let seconds = time.split(['.', 'Z', '+']).next().unwrap_or_default();
    format!("{} {seconds} UTC", date.replace('-', "/"))
}

//! Time series of a target from outside its workers: the counters of the storage below it, and the latencies
//! of its syncs.
//!
//! A sample is a reading of running totals, so the activity between two samples is their difference, and
//! leaving samples out only makes the steps wider. This bounds the memory: at [`CAPACITY`] every second
//! sample is dropped, and the sampling rate is halved.

use plumb_block::{Nanos, StorageSnapshot};
use plumb_load::{LiveLatency, Totals};
use plumb_measure::run::TimeseriesRow;
use plumb_report::document::{Part, tag};

/// Maximum number of samples.
const CAPACITY: usize = 512;

/// Samples of one target, since its window began.
#[derive(Debug, Clone, Default)]
pub(crate) struct TargetSeries {
    samples: Vec<Sample>,
    /// Minimum time between two samples; zero until [`CAPACITY`] is first reached.
    interval: Nanos,
}

/// Totals at one moment.
#[derive(Debug, Clone)]
struct Sample {
    at: Nanos,
    /// Number of reads and writes, and the bytes of both.
    storage: Option<(u64, u64)>,
    operations: u64,
    flushes: u64,
    flush_latency: LiveLatency,
}

impl TargetSeries {
    /// Returns true if a sample at `at` since the start of the window would be kept.
    pub(crate) fn is_due(&self, at: Nanos) -> bool {
        self.samples.last().is_none_or(|last| at > last.at && at.since(last.at) >= self.interval)
    }

    /// Adds a sample, which must be later than the last. `storage` is `None` if the devices are not sampled.
    pub(crate) fn add(&mut self, at: Nanos, totals: &Totals, storage: Option<&StorageSnapshot>) {
        let moved = |snapshot: &StorageSnapshot| {
            snapshot.devices.iter().fold((0, 0), |(ios, bytes), device| {
                let more = (device.reads + device.writes, (device.read_bytes + device.write_bytes).0);
                (ios + more.0, bytes + more.1)
            })
        };
        self.samples.push(Sample {
            at,
            storage: storage.map(moved),
            operations: totals.operations(),
            flushes: totals.flushes,
            flush_latency: totals.flush_latency.clone(),
        });
        if self.samples.len() >= CAPACITY {
            let length = at.since(self.samples[0].at);
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval = Nanos(length.0 / self.samples.len() as u64);
        }
    }

    /// Returns the activity between the samples, of the target with this index in the document, in a window
    /// that began at `began`. For an application that reports no operations, it is that of its transactions.
    pub(crate) fn rows(&self, target: usize, began: Nanos, shows_operations: bool) -> Vec<TimeseriesRow> {
        let between = |part: Part, of: &dyn Fn(&Sample, &Sample) -> Option<TimeseriesRow>| {
            let phase = tag(target, part);
            let rows = self.samples.windows(2).filter_map(|pair| {
                let row = of(&pair[0], &pair[1])?;
                Some(TimeseriesRow { phase: phase.clone(), at: began + pair[0].at, ..row })
            });
            let rows: Vec<TimeseriesRow> = rows.collect();
            if rows.iter().any(|row| row.operations > 0) || part == Part::Storage { rows } else { Vec::new() }
        };
        let mut rows = between(Part::Storage, &|before, now| {
            let ((ios, bytes), (ios_now, bytes_now)) = before.storage.zip(now.storage)?;
            let (operations, bytes) = (ios_now.saturating_sub(ios), bytes_now.saturating_sub(bytes));
            Some(TimeseriesRow { operations, bytes, ..TimeseriesRow::default() })
        });
        rows.extend(between(Part::Sync, &|before, now| {
            let at = |percent| {
                let latency = now.flush_latency.percentile_since(&before.flush_latency, percent)?;
                Some(latency.as_secs_f64())
            };
            let operations = now.flushes.saturating_sub(before.flushes);
            let (latency_p50, latency_p99) = (at(50.0), at(99.0));
            Some(TimeseriesRow { operations, latency_p50, latency_p99, ..TimeseriesRow::default() })
        }));
        if !shows_operations {
            rows.extend(between(Part::Transaction, &|before, now| {
                let operations = now.operations.saturating_sub(before.operations);
                Some(TimeseriesRow { operations, ..TimeseriesRow::default() })
            }));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_block::{Bytes, DeviceCounters};

    fn samples(count: u64) -> TargetSeries {
        let mut samples = TargetSeries::default();
        for tenth in 0..count {
            let at = Nanos::millis(100) * tenth;
            let device = DeviceCounters {
                writes: tenth * 10,
                write_bytes: Bytes(tenth * 40_960),
                ..DeviceCounters::default()
            };
            let storage = StorageSnapshot { at, devices: vec![device] };
            let totals = Totals { writes: tenth * 3, ..Totals::default() };
            if samples.is_due(at) {
                samples.add(at, &totals, Some(&storage));
            }
        }
        samples
    }

    #[test]
    fn what_happened_is_between_two_samples() {
        let rows = samples(4).rows(2, Nanos::secs(1), false);
        let told: Vec<_> =
            rows.iter().map(|row| (row.phase.as_str(), row.at, row.operations, row.bytes)).collect();
        let at = |tenth: u64| Nanos::secs(1) + Nanos::millis(100) * tenth;
        assert_eq!(told[..3], [0, 1, 2].map(|tenth| ("target-2/storage", at(tenth), 10, 40_960)));
        assert_eq!(told[3..], [0, 1, 2].map(|tenth| ("target-2/transaction", at(tenth), 3, 0)));
        assert!(samples(4).rows(0, Nanos::ZERO, true).iter().all(|row| row.phase.ends_with("storage")));
    }

    #[test]
    fn a_long_run_keeps_few_samples_and_all_that_happened() {
        let hour = samples(36_000);
        assert!((CAPACITY / 4..CAPACITY).contains(&hour.samples.len()), "{}", hour.samples.len());
        let rows = hour.rows(0, Nanos::ZERO, true);
        let told: u64 = rows.iter().map(|row| row.operations).sum();
        assert!(told > 359_990 - 10 * 36_000 / 128 && told <= 359_990, "{told}");
        let widths: Vec<u64> = rows.windows(2).map(|pair| pair[1].at.since(pair[0].at).0).collect();
        assert!(widths.iter().max() <= widths.iter().min().map(|width| width * 4).as_ref(), "{widths:?}");
    }
}

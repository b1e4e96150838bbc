//! Observation without events: the difference of counters, read every second.

use plumb_block::{DeviceCounters, Error, ErrorKind, Nanos, Result, StorageSnapshot};
use plumb_measure::storage::delta;
use plumb_report::document::observation::{ObservedDevice, ObservedDirection, OverTime, QueueDepth};

use crate::observer::Watched;

/// How often they are read.
const READ_EVERY: Nanos = Nanos::secs(1);

/// Readings of the counters of some devices.
#[derive(Debug)]
pub(crate) struct Counted {
    first: StorageSnapshot,
    last: StorageSnapshot,
    /// Counts of each device between two readings.
    parts: Vec<(Nanos, Nanos, Vec<DeviceCounters>)>,
}

impl Counted {
    /// The first reading.
    pub(crate) fn new(first: StorageSnapshot) -> Self {
        Self { last: first.clone(), first, parts: Vec::new() }
    }

    /// When it was.
    pub(crate) fn start(&self) -> Nanos {
        self.first.at
    }

    /// From the first reading to the last.
    pub(crate) fn length(&self) -> Nanos {
        self.last.at.since(self.first.at)
    }

    /// Returns true if it is time for another one.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now.since(self.last.at) >= READ_EVERY
    }

    /// Another reading.
    ///
    /// # Errors
    /// If a device was replaced.
    pub(crate) fn take(&mut self, reading: StorageSnapshot) -> Result<()> {
        let part = delta(&self.last, &reading).map_err(|gone| {
            Error::new(ErrorKind::Invalid, "read the counters of", "the devices").because(gone.to_string())
        })?;
        self.parts.push((self.last.at.since(self.first.at), reading.at.since(self.last.at), part));
        self.last = reading;
        Ok(())
    }

    /// All that was counted of these devices.
    pub(crate) fn finish(&self, watched: &[Watched]) -> Vec<ObservedDevice> {
        let all = delta(&self.first, &self.last).unwrap_or_default();
        let seconds = self.length().as_secs_f64();
        let over_time = |name: &str| {
            let part = |(at, length, devices): &(Nanos, Nanos, Vec<DeviceCounters>)| {
                let of = devices.iter().find(|device| device.name == name)?;
                Some(OverTime {
                    at: at.as_secs_f64(),
                    seconds: length.as_secs_f64(),
                    ios: of.reads + of.writes + of.discards,
                    bytes: of.read_bytes.0 + of.write_bytes.0 + of.discard_bytes.0,
                    latency_mean: None,
                })
            };
            self.parts.iter().filter_map(part).collect()
        };
        let device = |of: &Watched| {
            let counters = all.iter().find(|counters| counters.name == of.name)?;
            let (over_time, has_requests) = (over_time(&of.name), of.has_requests);
            Some(ObservedDevice { over_time, has_requests, ..device(counters, seconds) })
        };
        watched.iter().filter_map(device).collect()
    }
}

fn device(counters: &DeviceCounters, seconds: f64) -> ObservedDevice {
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let direction = |ios: u64, bytes: u64| ObservedDirection {
        ios,
        bytes,
        iops: per_second(ios),
        bytes_per_second: per_second(bytes),
        io_bytes_mean: (ios > 0).then(|| bytes as f64 / ios as f64),
        ..ObservedDirection::default()
    };
    let spent = (counters.read_time + counters.write_time + counters.flush_time).as_secs_f64();
    let busy = counters.busy_time.as_secs_f64();
    let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
    ObservedDevice {
        name: counters.name.clone(),
        read: direction(counters.reads, counters.read_bytes.0),
        write: direction(counters.writes, counters.write_bytes.0),
        trim: direction(counters.discards, counters.discard_bytes.0),
        flushes: counters.flushes,
        flushes_per_second: counters.flushes.map(per_second),
        merges: counters.read_merges + counters.write_merges,
        // By Little's law; the most at once is not counted.
        queue_depth: Some(QueueDepth {
            mean: share(spent, seconds),
            busy_mean: share(spent, busy),
            max: 0,
            busy: share(busy, seconds).min(1.0),
        }),
        counters: Some(counters.clone()),
        ..ObservedDevice::default()
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::Bytes;

    use super::*;

    #[test]
    fn a_difference_of_counters_is_rates_without_sizes() {
        let reading = |at, writes: u64| StorageSnapshot {
            at: Nanos::secs(at),
            devices: vec![DeviceCounters {
                name: "sda".to_owned(),
                writes,
                write_bytes: Bytes(writes * 8192),
                write_time: Nanos::millis(writes * 10),
                busy_time: Nanos::millis(writes * 5),
                flushes: Some(writes / 2),
                ..DeviceCounters::default()
            }],
        };
        let mut counted = Counted::new(reading(5, 100));
        assert!(!counted.is_due(Nanos::millis(5900)) && counted.is_due(Nanos::secs(6)));
        counted.take(reading(6, 120)).unwrap();
        counted.take(reading(7, 200)).unwrap();
        let watched = Watched { name: "sda".to_owned(), number: 1, has_requests: true };
        let device = counted.finish(&[watched]).remove(0);
        assert_eq!(
            (device.write.ios, device.write.iops, device.write.io_bytes_mean),
            (100, 50.0, Some(8192.0))
        );
        assert_eq!((device.flushes, device.flushes_per_second), (Some(50), Some(25.0)));
        assert_eq!(device.over_time.iter().map(|part| part.ios).collect::<Vec<_>>(), [20, 80]);
        let depth = device.queue_depth.unwrap();
        assert_eq!((depth.mean, depth.busy_mean, depth.busy), (0.5, 2.0, 0.25));
        assert!(device.write.sizes.is_empty() && device.write.latency.is_none());
        let mut other = Counted::new(reading(5, 100));
        assert!(other.take(reading(6, 50)).is_err(), "another device took the name");
    }
}

//! Observation without events: the difference of counters, read every second.

use plumb_block::{DeviceCounters, Error, ErrorKind, Nanos, Result, StorageSnapshot};
use plumb_measure::storage::delta;
use plumb_report::document::observation::{ObservedDevice, ObservedDirection, OverTime, QueueDepth};

use crate::device::WatchedDevice;

/// Interval between readings.
const READ_EVERY: Nanos = Nanos::secs(1);

/// Counter readings of some devices.
#[derive(Debug)]
pub(crate) struct CounterReadings {
    first: StorageSnapshot,
    last: StorageSnapshot,
    /// Counts of each device between two readings.
    parts: Vec<(Nanos, Nanos, Vec<DeviceCounters>)>,
}

impl CounterReadings {
    /// Creates the readings with the first one.
    pub(crate) fn new(first: StorageSnapshot) -> Self {
        Self { last: first.clone(), first, parts: Vec::new() }
    }

    /// Returns the time of the first reading.
    pub(crate) fn start(&self) -> Nanos {
        self.first.at
    }

    /// Returns the time from the first reading to the last.
    pub(crate) fn length(&self) -> Nanos {
        self.last.at.since(self.first.at)
    }

    /// Returns true if the next reading is due.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now.since(self.last.at) >= READ_EVERY
    }

    /// Adds another reading.
    ///
    /// # Errors
    /// Fails if a device was replaced.
    pub(crate) fn take(&mut self, reading: StorageSnapshot) -> Result<()> {
        let part = delta(&self.last, &reading).map_err(|gone| {
            Error::new(ErrorKind::Invalid, "read the counters of", "the devices").because(gone.to_string())
        })?;
        self.parts.push((self.last.at.since(self.first.at), reading.at.since(self.last.at), part));
        self.last = reading;
        Ok(())
    }

    /// Returns the totals of these devices.
    pub(crate) fn finish(&self, watched: &[WatchedDevice]) -> Vec<ObservedDevice> {
        let all = delta(&self.first, &self.last).unwrap_or_default();
        let seconds = self.length().as_secs_f64();
        let over_time = |name: &str| {
            let part = |(at, length, devices): &(Nanos, Nanos, Vec<DeviceCounters>)| {
                let of = devices.iter().find(|device| device.name == name)?;
                Some(OverTime {
                    at: at.as_secs_f64(),
                    seconds: length.as_secs_f64(),
                    ios: of.reads + of.writes,
                    bytes: of.read_bytes.0 + of.write_bytes.0,
                    latency_mean: None,
                })
            };
            self.parts.iter().filter_map(part).collect()
        };
        let device = |of: &WatchedDevice| {
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
        // Mean by Little's law; the maximum is not counted.
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

/// Replaces the figures that lost events make wrong with the `counters` of the device: counts, rates and
/// depths. The figures of single requests stay, as a sample; their intervals and the time series do not.
///
/// The kernel counts an empty flush among the writes. There were `empty` completions without data among the
/// events; the lost events are assumed to have the same share of them.
pub(crate) fn corrected(
    seen: ObservedDevice,
    empty: u64,
    counters: &DeviceCounters,
    seconds: f64,
) -> ObservedDevice {
    let all = (seen.write.ios + empty).max(1);
    let writes = u128::from(counters.writes) * u128::from(all - empty.min(all)) / u128::from(all);
    let counted = device(&DeviceCounters { writes: writes as u64, ..counters.clone() }, seconds);
    let direction = |seen: ObservedDirection, counted: ObservedDirection| ObservedDirection {
        sizes: seen.sizes,
        from_byte: seen.from_byte,
        until_byte: seen.until_byte,
        depth_max: seen.depth_max,
        queue_latency: seen.queue_latency,
        latency: seen.latency,
        latency_buckets: seen.latency_buckets,
        ..counted
    };
    // The flushes of a device without requests are not counted.
    let (flushes, flushes_per_second) = match seen.has_requests && counted.flushes.is_some() {
        true => (counted.flushes, counted.flushes_per_second),
        false => (seen.flushes, seen.flushes_per_second),
    };
    ObservedDevice {
        has_requests: seen.has_requests,
        read: direction(seen.read, counted.read),
        write: direction(seen.write, counted.write),
        trim: direction(seen.trim, counted.trim),
        flushes,
        flushes_per_second,
        flush_latency: seen.flush_latency,
        flush_latency_buckets: seen.flush_latency_buckets,
        counters: Some(counters.clone()),
        ..counted
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::Bytes;
    use plumb_report::document::observation::{Arrivals, SizeCount};

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
        let mut counted = CounterReadings::new(reading(5, 100));
        assert!(!counted.is_due(Nanos::millis(5900)) && counted.is_due(Nanos::secs(6)));
        counted.take(reading(6, 120)).unwrap();
        counted.take(reading(7, 200)).unwrap();
        let watched = WatchedDevice { name: "sda".to_owned(), number: 1, has_requests: true };
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
        let trimmed =
            DeviceCounters { discards: 7, discard_bytes: Bytes(7 << 20), ..DeviceCounters::default() };
        let part = StorageSnapshot {
            at: Nanos::secs(6),
            devices: vec![DeviceCounters { name: "sda".to_owned(), ..trimmed }],
        };
        let none = DeviceCounters { name: "sda".to_owned(), ..DeviceCounters::default() };
        let mut trims = CounterReadings::new(StorageSnapshot { at: Nanos::secs(5), devices: vec![none] });
        trims.take(part).unwrap();
        let watched = WatchedDevice { name: "sda".to_owned(), number: 1, has_requests: true };
        let device = trims.finish(&[watched]).remove(0);
        assert_eq!((device.trim.ios, device.over_time[0].ios, device.over_time[0].bytes), (7, 0, 0));
        let mut other = CounterReadings::new(reading(5, 100));
        assert!(other.take(reading(6, 50)).is_err(), "another device took the name");
    }
    #[test]
    fn with_lost_events_counts_are_the_kernels_and_a_sample_stays_one() {
        // A hundred writes and as many empty flushes were handed to the device in ten seconds; events of a
        // fifth of them were seen.
        let write = ObservedDirection {
            ios: 20,
            iops: 2.0,
            sizes: vec![SizeCount { bytes: 4096, ios: 20 }],
            depth_max: 3,
            arrivals: Some(Arrivals::default()),
            ..ObservedDirection::default()
        };
        let seen = ObservedDevice {
            has_requests: true,
            write,
            flushes: Some(20),
            arrivals: Some(Arrivals::default()),
            over_time: vec![OverTime::default()],
            ..ObservedDevice::default()
        };
        let counters = DeviceCounters {
            name: "sda".to_owned(),
            writes: 200,
            write_bytes: Bytes(100 * 4096),
            flushes: Some(100),
            ..DeviceCounters::default()
        };
        let device = corrected(seen, 20, &counters, 10.0);
        assert_eq!(
            (device.write.ios, device.write.iops, device.write.io_bytes_mean),
            (100, 10.0, Some(4096.0))
        );
        assert_eq!((device.flushes, device.flushes_per_second), (Some(100), Some(10.0)));
        assert_eq!((device.write.sizes.len(), device.write.depth_max), (1, 3));
        assert!(device.arrivals.is_none() && device.write.arrivals.is_none() && device.over_time.is_empty());
    }
}

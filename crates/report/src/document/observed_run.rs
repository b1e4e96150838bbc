//! Conversion of an observation to a run, so that observations can be compared like recorded runs.

use plumb_block::{DeviceCounters, Nanos, StorageSnapshot};
use plumb_measure::storage::storage_side;
use plumb_measure::{ApplicationSide, FlushWrites};

use super::observation::{ObservationDocument, ObservedDevice, ObservedDirection};
use super::run::RunDocument;
use super::sides::{DirectionResult, Sides};

/// Uses the figures of the first device: its requests become operations, and the calls of programs become
/// syncs.
impl From<&ObservationDocument> for RunDocument {
    fn from(document: &ObservationDocument) -> Self {
        let total = document.devices.first().map(|device| sides(device, document)).unwrap_or_default();
        Self {
            duration: document.seconds,
            complete: document.complete,
            target: document.target.clone(),
            environment: document.environment.clone(),
            total,
            ..Self::default()
        }
    }
}

fn sides(device: &ObservedDevice, document: &ObservationDocument) -> Sides {
    let (operations, bytes) = (device.ios(), device.directions().iter().map(|(_, of)| of.bytes).sum::<u64>());
    let rate = |amount: u64| amount as f64 / f64::max(document.seconds, 1e-9);
    let depth = device.queue_depth.unwrap_or_default();
    let syncs = document.syncs.iter().flatten();
    let (count, errors) =
        syncs.fold((0, 0), |(count, errors), sync| (count + sync.count, errors + sync.errors));
    Sides {
        application: ApplicationSide {
            operations,
            bytes,
            seconds: document.seconds,
            iops: rate(operations),
            bytes_per_second: rate(bytes),
            io_bytes_mean: (operations > 0).then(|| bytes as f64 / operations as f64),
            latency: device.busiest_latency(),
            in_flight_mean: Some(depth.mean),
            ..ApplicationSide::default()
        },
        read: direction(&device.read),
        write: direction(&device.write),
        trim: direction(&device.trim),
        sync: DirectionResult {
            ios: count,
            iops: rate(count),
            latency: document.sync_latency,
            errors,
            ..DirectionResult::default()
        },
        in_flight_max: depth.max,
        storage: device.counters.as_ref().and_then(|counters| {
            let at = |at, device| StorageSnapshot { at, devices: vec![device] };
            let none = DeviceCounters {
                name: counters.name.clone(),
                flushes: counters.flushes.map(|_| 0),
                ..DeviceCounters::default()
            };
            let (before, after) =
                (at(Nanos::ZERO, none), at(Nanos::from_secs_f64(document.seconds), counters.clone()));
            storage_side(&before, &after, FlushWrites::TakenOut).ok()
        }),
        ..Sides::default()
    }
}

fn direction(of: &ObservedDirection) -> DirectionResult {
    DirectionResult {
        ios: of.ios,
        bytes: of.bytes,
        iops: of.iops,
        bytes_per_second: of.bytes_per_second,
        latency: of.latency,
        ..DirectionResult::default()
    }
}

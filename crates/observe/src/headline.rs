//! An observation in one sentence.

use plumb_report::document::ObservationDocument;
use plumb_report::document::observation::ObservedDevice;
use plumb_report::quantity::{count, duration, rate};

/// The device that was asked for most, and the syncs.
pub(crate) fn of(document: &ObservationDocument) -> String {
    let busiest = document.devices.iter().max_by_key(|device| device.ios() + device.flushes.unwrap_or(0));
    let Some(device) = busiest else { return "no device was observed".to_owned() };
    let mut parts = vec![moved(device)];
    parts.extend(device.flushes.filter(|flushes| *flushes > 0).map(|flushes| {
        let time = device.flush_latency.map(|latency| format!(" of {} at the median", duration(latency.p50)));
        format!("{} flushes{}", count(flushes), time.unwrap_or_default())
    }));
    let syncs = document.syncs.iter().flatten();
    let (all, slowest) = syncs.fold((0, 0.0_f64), |(all, slowest), sync| {
        (all + sync.count, slowest.max(sync.latency.map_or(0.0, |latency| latency.p99)))
    });
    if all > 0 {
        parts.push(format!(
            "{} syncs, 99 of 100 of the slowest caller within {}",
            count(all),
            duration(slowest)
        ));
    }
    parts.join("; ")
}

fn moved(device: &ObservedDevice) -> String {
    let (reads, writes) = (device.read.iops, device.write.iops);
    match device.ios() + device.flushes.unwrap_or(0) {
        0 => format!("nothing was asked of {} in this time", device.name),
        _ => format!(
            "{} was asked for {} reads and {} writes a second",
            device.name,
            rate(reads),
            rate(writes)
        ),
    }
}

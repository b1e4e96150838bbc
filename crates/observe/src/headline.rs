//! An observation in one sentence.

use plumb_report::document::ObservationDocument;
use plumb_report::document::observation::ObservedDevice;
use plumb_report::quantity::{count, duration, rate};

use crate::event::SyncCall;

/// The device that was asked for most, and the syncs of what is observed. Those that may be of it or not are
/// told beside them.
pub(crate) fn of(document: &ObservationDocument) -> String {
    let busiest = document.devices.iter().max_by_key(|device| device.ios() + device.flushes.unwrap_or(0));
    let Some(device) = busiest else { return "no device was observed".to_owned() };
    let mut parts = vec![moved(device)];
    parts.extend(device.flushes.filter(|flushes| *flushes > 0).map(|flushes| {
        let time = device.flush_latency.map(|latency| format!(" of {} at the median", duration(latency.p50)));
        format!("{} flushes{}", count(flushes), time.unwrap_or_default())
    }));
    let syncs = || document.syncs.iter().flatten();
    let (all, slowest) = syncs().filter(|sync| sync.counted).fold((0, 0.0_f64), |(all, slowest), sync| {
        (all + sync.count, slowest.max(sync.latency.and_then(|latency| latency.p99).unwrap_or(0.0)))
    });
    if all > 0 {
        parts.push(format!(
            "{} syncs, 99 of 100 of the slowest caller within {}",
            count(all),
            duration(slowest)
        ));
    }
    let may_be = syncs().filter(|sync| !sync.counted && sync.call != SyncCall::Sync.name());
    let more: u64 = may_be.map(|sync| sync.count).sum();
    if more > 0 {
        parts.push(format!("{} more syncs, of which it is not known on which device", count(more)));
    }
    parts.join("; ")
}

fn moved(device: &ObservedDevice) -> String {
    let (reads, writes) = (device.read.iops, device.write.iops);
    match device.ios() + device.flushes.unwrap_or(0) {
        0 => format!("nothing was asked of {} in this time", device.name),
        _ => format!(
            "each second {} was asked for {} reads and {} writes",
            device.name,
            rate(reads),
            rate(writes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use plumb_report::document::observation::ObservedSync;

    use super::*;

    #[test]
    fn syncs_that_may_be_of_the_device_are_told_beside_those_that_are() {
        let sync = |call: SyncCall, count, counted| ObservedSync {
            call: call.name().to_owned(),
            count,
            counted,
            ..ObservedSync::default()
        };
        let syncs = vec![
            sync(SyncCall::Fsync, 5, true),
            sync(SyncCall::Fdatasync, 3, false),
            // It is of all devices.
            sync(SyncCall::Sync, 1, false),
        ];
        let devices = vec![ObservedDevice { name: "loop0".to_owned(), ..ObservedDevice::default() }];
        let document = ObservationDocument { devices, syncs: Some(syncs), ..ObservationDocument::default() };
        let said = of(&document);
        assert!(said.contains("5 syncs, ") && said.contains("3 more syncs, of which"), "{said}");
        assert!(!of(&ObservationDocument { syncs: None, ..document }).contains("syncs"));
    }
}

//! An observation in one sentence: rates of the busiest device, and of the observed syncs.

use plumb_report::document::ObservationDocument;
use plumb_report::document::observation::{ObservedDevice, ObservedSync};
use plumb_report::quantity::{count, duration, rate};

use crate::event::SyncCall;

/// Returns the rates of the device with the most requests, and those of the syncs. Syncs that may be of
/// another device are listed separately.
pub(crate) fn from_document(document: &ObservationDocument) -> String {
    // The first of several equally busy devices, since the target is directly on it.
    let busiest = document.devices.iter().rev().max_by_key(|device| device.requests());
    let Some(device) = busiest else { return "no device was observed".to_owned() };
    let lost = document.cost.events_lost;
    let (bound, seen) = if lost > 0 { ("at least ", false) } else { ("", true) };
    let mut parts: Vec<String> = writeback_errors(document).into_iter().chain([rates(device)]).collect();
    let syncs = || document.syncs.iter().flatten();
    let counted: Vec<&ObservedSync> = syncs().filter(|sync| sync.counted).collect();
    if !counted.is_empty() {
        let slowest = counted.iter().filter_map(|sync| sync.latency.and_then(|of| of.p99)).reduce(f64::max);
        let time = slowest.filter(|_| seen);
        let time = time.map(|p99| format!(" (99 % of the slowest caller's within {})", duration(p99)));
        parts.push(format!("{bound}{} syncs/s{}", rate(sum(&counted)), time.unwrap_or_default()));
    }
    let may_be: Vec<&ObservedSync> =
        syncs().filter(|sync| !sync.counted && sync.call != SyncCall::Sync.name()).collect();
    if !may_be.is_empty() {
        parts.push(format!("{bound}{} syncs/s on a device that plumb could not find", rate(sum(&may_be))));
    }
    if lost > 0 {
        let rates = match device.counters {
            Some(_) => "rates of the device are the kernel's counters",
            None => "rates are lower bounds",
        };
        let all = document.cost.events + lost;
        parts.push(format!("{} of {} events were lost, so {rates}", count(lost), count(all)));
    }
    parts.join("; ")
}

/// Returns a description of failed writes that the page cache had accepted, and whether they were reported.
fn writeback_errors(document: &ObservationDocument) -> Option<String> {
    let errors = document.writeback_errors.as_ref()?;
    let first = errors.first()?;
    let inode = || format!("inode {} on {}", first.inode, first.device);
    let file = first.path.clone().unwrap_or_else(inode);
    let others = match errors.len() - 1 {
        0 => String::new(),
        1 => " and to one more file".to_owned(),
        more => format!(" and to {more} more files"),
    };
    let since = match first.reported {
        true => "a sync of it failed",
        false if document.cost.events_lost > 0 => "whether a sync of it has failed since was not seen",
        false => "no sync of it has failed since",
    };
    Some(format!("writes to {file}{others} did not reach the device ({}), and {since}", first.error))
}

fn sum(syncs: &[&ObservedSync]) -> f64 {
    syncs.iter().map(|sync| sync.per_second).sum()
}

/// Returns the rates per second of the device.
fn rates(device: &ObservedDevice) -> String {
    if device.requests() == 0 {
        return format!("{}: no requests in this time", device.name);
    }
    let mut parts =
        vec![format!("{} reads/s", rate(device.read.iops)), format!("{} writes/s", rate(device.write.iops))];
    parts.extend((device.trim.ios > 0).then(|| format!("{} trims/s", rate(device.trim.iops))));
    let flushes = device.flushes_per_second.filter(|flushes| *flushes > 0.0);
    parts.extend(flushes.map(|flushes| {
        let time = device.flush_latency.map(|latency| format!(" (median {})", duration(latency.p50)));
        format!("{} flushes/s{}", rate(flushes), time.unwrap_or_default())
    }));
    format!("{}: {}", device.name, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use plumb_block::DeviceCounters;
    use plumb_report::document::observation::{ObservationCost, ObservedDirection, WritebackError};

    use super::*;

    fn sync(call: SyncCall, per_second: f64, counted: bool) -> ObservedSync {
        ObservedSync { call: call.name().to_owned(), per_second, counted, ..ObservedSync::default() }
    }

    fn document() -> ObservationDocument {
        let direction = |ios, iops| ObservedDirection { ios, iops, ..ObservedDirection::default() };
        let busy = ObservedDevice {
            name: "vda".to_owned(),
            read: direction(7490, 749.0),
            write: direction(120, 12.0),
            flushes: Some(1890),
            flushes_per_second: Some(189.0),
            ..ObservedDevice::default()
        };
        let idle = ObservedDevice { name: "loop0".to_owned(), ..ObservedDevice::default() };
        let syncs = vec![
            sync(SyncCall::Fsync, 5.0, true),
            sync(SyncCall::Fdatasync, 3.0, false),
            // A call of sync(2) covers all devices.
            sync(SyncCall::Sync, 1.0, false),
        ];
        ObservationDocument {
            devices: vec![idle, busy],
            syncs: Some(syncs),
            ..ObservationDocument::default()
        }
    }

    #[test]
    fn every_figure_is_a_rate_of_the_busiest_device() {
        assert_eq!(
            from_document(&document()),
            "vda: 749 reads/s, 12 writes/s, 189 flushes/s; 5 syncs/s; 3 syncs/s on a device that plumb could not find"
        );
        assert!(!from_document(&ObservationDocument { syncs: None, ..document() }).contains("syncs"));
        let idle = document().devices.remove(0);
        let document = ObservationDocument { devices: vec![idle], ..ObservationDocument::default() };
        assert_eq!(from_document(&document), "loop0: no requests in this time");
    }

    #[test]
    fn trims_are_no_transfers_and_have_a_rate_of_their_own() {
        let mut document = document();
        document.devices[1].trim = ObservedDirection { ios: 20, iops: 2.0, ..ObservedDirection::default() };
        assert!(
            from_document(&document).starts_with("vda: 749 reads/s, 12 writes/s, 2 trims/s, 189"),
            "{document:?}"
        );
    }

    #[test]
    fn writes_that_were_lost_stand_first() {
        let error = |path: Option<&str>, reported| WritebackError {
            device: "sda1".to_owned(),
            inode: 12,
            path: path.map(str::to_owned),
            error: "Input/output error".to_owned(),
            reported,
            ..WritebackError::default()
        };
        let with = |errors: Vec<WritebackError>| {
            from_document(&ObservationDocument { writeback_errors: Some(errors), ..document() })
        };
        assert!(with(Vec::new()).starts_with("vda: "));
        let lost = with(vec![error(Some("/data/f"), false)]);
        let expected = "writes to /data/f did not reach the device (Input/output error), and no sync of it has failed since; vda: ";
        assert!(lost.starts_with(expected), "{lost}");
        let two = with(vec![error(None, true), error(None, true)]);
        let expected = "writes to inode 12 on sda1 and to one more file did not reach the device (Input/output error), and a sync of it failed";
        assert!(two.starts_with(expected), "{two}");
    }

    #[test]
    fn lost_events_are_in_the_sentence_and_their_syncs_are_lower_bounds() {
        let mut document = document();
        document.cost = ObservationCost { events: 900, events_lost: 100, ..ObservationCost::default() };
        let said = from_document(&document);
        assert!(said.contains("at least 5 syncs/s") && !said.contains("within"), "{said}");
        assert!(said.ends_with("100 of 1,000 events were lost, so rates are lower bounds"), "{said}");
        document.devices[1].counters = Some(DeviceCounters::default());
        assert!(from_document(&document).ends_with("so rates of the device are the kernel's counters"));
    }
}

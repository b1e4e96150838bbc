//! Hosts that are names of one machine. What is counted for the whole machine would count once for each name.

use std::collections::BTreeMap;

use plumb_measure::FlushesOf;
use plumb_report::document::fleet::FleetHost;

/// Returns the machine of a host. A host with an unknown boot ID counts as a machine of its own.
fn machine(host: &FleetHost) -> &str {
    host.boot_id.as_deref().unwrap_or(&host.name)
}

/// Returns the reason why the counts of the hosts' devices cannot be added; `None` if they can: two hosts are
/// one machine, and both counted a device that is not used by one run alone.
pub(crate) fn shared_device(hosts: &[&FleetHost]) -> Option<String> {
    let mut counted = BTreeMap::new();
    for host in hosts {
        let storage = host.total.as_ref().and_then(|total| total.storage.as_ref());
        let shared = storage.filter(|of| {
            of.attribution.as_ref().is_some_and(|attribution| attribution.flushes != FlushesOf::OwnDevice)
        });
        for device in shared.into_iter().flat_map(|storage| &storage.devices) {
            if let Some(other) = counted.insert((machine(host), &device.name), &host.name) {
                return Some(format!(
                    "{other} and {} are one machine, and each of them counted all requests to {}",
                    host.name, device.name
                ));
            }
        }
    }
    None
}

/// Returns the bytes that the page caches of the machines had not written back at the end, each machine's
/// once; `None` if they are unknown for one.
pub(crate) fn dirty_bytes_after(hosts: &[&FleetHost]) -> Option<u64> {
    let mut dirty: BTreeMap<&str, u64> = BTreeMap::new();
    for host in hosts {
        let of_host = host.total.as_ref().and_then(|total| total.dirty_bytes_after)?;
        let of_machine = dirty.entry(machine(host)).or_default();
        *of_machine = of_host.max(*of_machine);
    }
    Some(dirty.into_values().sum())
}

#[cfg(test)]
mod tests {
    use plumb_block::DeviceCounters;
    use plumb_measure::{Attribution, StorageSide};
    use plumb_report::document::Sides;

    use super::*;

    fn host(name: &str, boot_id: &str, flushes: FlushesOf) -> FleetHost {
        let attribution = Some(Attribution { flushes, ..Attribution::default() });
        let devices = vec![DeviceCounters { name: "vda".to_owned(), ..DeviceCounters::default() }];
        let storage = Some(StorageSide { attribution, devices, ..StorageSide::default() });
        let total = Some(Sides { storage, dirty_bytes_after: Some(1 << 20), ..Sides::default() });
        let (name, boot_id) = (name.to_owned(), Some(boot_id.to_owned()));
        FleetHost { name, boot_id, total, ..FleetHost::default() }
    }

    #[test]
    fn what_is_counted_for_a_machine_counts_once() {
        let of = |flushes| ["x", "y", "x"].map(|boot_id| host(boot_id, boot_id, flushes));
        let shared = of(FlushesOf::AllPrograms);
        let all: Vec<&FleetHost> = shared.iter().collect();
        assert_eq!((shared_device(&all[..2]), dirty_bytes_after(&all[..2])), (None, Some(2 << 20)));
        let why = shared_device(&all).unwrap();
        assert!(why.contains("one machine") && why.contains("vda"), "{why}");
        assert_eq!(dirty_bytes_after(&all), Some(2 << 20));
        let own = of(FlushesOf::OwnDevice);
        assert_eq!(shared_device(&own.iter().collect::<Vec<_>>()), None);
    }
}

//! Durable writes against the flushes that the devices were handed: dropped, none seen, missing.

use plumb_block::DeviceCounters;
use plumb_measure::{StorageSide, SyncMethod, SyncResult};
use plumb_path::{Cache, Finding, Flush, Fua, Layer, LayerKind, Severity, WritePath};

use super::{Verdict, device_layers, list, lowest_devices, measured};
use crate::document::CheckDocument;
use crate::quantity::count;
use crate::wording;

/// Fewer durable writes than this prove nothing about flushes.
pub(super) const SYNCS_MIN: u64 = 10;
/// Fewer flushes than this for each durable write means that some are missing; the rest is the slack of two readings.
pub(super) const COMPLETE_FROM: f64 = 0.95;

/// `flush-dropped`: durable writes, a volatile cache beneath, and no flush. Also if only some of the devices were
/// handed none.
pub(super) fn dropped(document: &CheckDocument) -> Option<Finding> {
    let path = &document.path;
    let silent = silent(document);
    if let Some(cause) = drop_cause(path, &silent) {
        let syncs = operations(&silent);
        let mut evidence = counts(&silent);
        evidence.push(cause);
        return Some(
            Verdict {
                id: "flush-dropped",
                severity: Severity::Danger,
                sentence: format!(
                    "{} durable writes caused no flush at the devices: a power cut can lose what was synced.",
                    count(syncs)
                ),
                evidence,
                remedy: REMEDY,
            }
            .into(),
        );
    }
    let skipped = skipped_devices(document);
    if skipped.is_empty() {
        return None;
    }
    let names: Vec<&str> = skipped.iter().map(|(name, _)| name.as_str()).collect();
    Some(
        Verdict {
            id: "flush-dropped",
            severity: Severity::Danger,
            sentence: format!(
                "{} held written data in a volatile cache and was handed no flush, while other devices were.",
                list(&names)
            ),
            evidence: skipped.into_iter().map(|(_, line)| line).collect(),
            remedy: REMEDY,
        }
        .into(),
    )
}

pub(super) const REMEDY: &str = "Find the layer that ends the flush with plumb survey (a write cache shown as write through, a mount \
                      without barriers, a driver that swallows it) and correct it, or turn the volatile cache off. A \
                      power cut with a witness would prove it.";

/// `no-flush-seen`: no flush, and either an explanation or nothing to tell.
pub(super) fn none_seen(document: &CheckDocument) -> Option<Finding> {
    let path = &document.path;
    let without: Vec<&SyncResult> = without_flush(document).collect();
    if without.is_empty() || drop_cause(path, &silent(document)).is_some() {
        return None;
    }
    let syncs = operations(&without);
    let blind = counters_are_blind(document);
    let uncounted = without.iter().all(|result| !counts_flushes(result));
    let absorbing = device_layers(path).find(|layer| layer.flush == Flush::Absorbed);
    let silent_layer = path.layers.iter().find(|layer| layer.flush == Flush::Unknown && !is_bottom(layer));
    let (severity, why) = match (uncounted, absorbing, silent_layer) {
        _ if blind => (
            Severity::Info,
            "their counters did not see the direct loads either, so they count nothing".to_owned(),
        ),
        (true, ..) => (Severity::Info, "the devices do not count flushes of their own".to_owned()),
        (_, Some(layer), _) => (
            Severity::Info,
            format!("{} says that it has no volatile cache, so the kernel sends none", layer.name),
        ),
        (_, None, Some(layer)) => {
            (Severity::Warning, format!("{} does not say what it does with a flush", layer.name))
        }
        (_, None, None) => (Severity::Info, "no volatile cache is known beneath".to_owned()),
    };
    let mut evidence = counts(&without);
    evidence.extend(
        absorbing
            .into_iter()
            .flat_map(|layer| &layer.evidence)
            .map(|evidence| format!("{}: {} ({})", evidence.source, evidence.value, evidence.means)),
    );
    Some(
        Verdict {
            id: "no-flush-seen",
            severity,
            sentence: format!("{} durable writes caused no flush at the devices: {why}.", count(syncs)),
            evidence,
            remedy: "This is consistent with a write-through or protected device, and with one that says so wrongly. Only \
                     the drive's own settings, whoever runs the host, or a power cut with a witness can tell.",
        }
        .into(),
    )
}

/// `flushes-missing`: some flushes, but fewer than durable writes. Each method has one writer, who waits for each sync
/// before the next write, so that no two of its syncs can share a flush; what came may be another program's.
pub(super) fn missing(document: &CheckDocument) -> Option<Finding> {
    if counters_are_blind(document) {
        return None;
    }
    let short: Vec<&SyncResult> = measured(document)
        .filter(|result| result.operations >= SYNCS_MIN && expects_flush(&document.path, result.method))
        .filter(|result| result.device_flushes.is_some_and(|flushes| flushes > 0) && counts_flushes(result))
        .filter(|result| result.flushes_per_sync.is_some_and(|per| per < COMPLETE_FROM))
        .collect();
    let first = short.first()?;
    Some(
        Verdict {
            id: "flushes-missing",
            severity: Severity::Warning,
            sentence: format!(
                "One writer made {} writes durable one after the other, but the devices were handed only {} flushes: some \
                 syncs sent none.",
                count(first.operations),
                count(first.device_flushes.unwrap_or(0))
            ),
            evidence: counts(&short),
            remedy: "Repeat it while nothing else syncs to these devices: if no flush comes then, a layer drops them. If \
                     some still come, a power cut with a witness would tell what is lost.",
        }
        .into(),
    )
}

/// Methods that ought to have flushed and did not, where the devices do count flushes.
fn silent(document: &CheckDocument) -> Vec<&SyncResult> {
    if counters_are_blind(document) {
        return Vec::new();
    }
    without_flush(document).filter(|result| counts_flushes(result)).collect()
}

/// Whether a direct load moved bytes that the counters of the devices did not see: what stays at zero then proves
/// nothing. The heads of NVMe multipath count nothing on older kernels.
fn counters_are_blind(document: &CheckDocument) -> bool {
    document.io.iter().filter(|io| !wording::is_cached(io)).any(|io| {
        let moved = io.application.as_ref().is_some_and(|side| side.bytes > 0);
        let unseen = |storage: &StorageSide| match wording::is_write(io) {
            true => storage.write_bytes == 0,
            false => storage.read_bytes == 0,
        };
        moved && io.storage.as_ref().is_some_and(unseen)
    })
}

fn without_flush(document: &CheckDocument) -> impl Iterator<Item = &SyncResult> {
    measured(document)
        .filter(|result| result.operations >= SYNCS_MIN && result.device_flushes == Some(0))
        .filter(|result| expects_flush(&document.path, result.method))
}

/// Whether the method makes the kernel send a flush, rather than a write with FUA.
fn expects_flush(path: &WritePath, method: SyncMethod) -> bool {
    match method {
        SyncMethod::OverwriteFdatasync | SyncMethod::AppendFdatasync => true,
        SyncMethod::DirectDsync => !lowest_devices(path).any(|layer| layer.fua == Fua::Native),
    }
}

/// Why the flushes that `silent` misses must have been dropped; `None` if it misses none, or the path leaves another
/// explanation. Only a device whose counters were read, and that was written to, can accuse: a loop device over a
/// drive without a cache has a cache of its own and flushes nothing.
fn drop_cause(path: &WritePath, silent: &[&SyncResult]) -> Option<String> {
    if silent.is_empty() {
        return None;
    }
    if let Some(layer) = path.layers.iter().find(|layer| layer.flush == Flush::Dropped) {
        return Some(format!("{} drops flushes", layer.name));
    }
    let mut written = lowest_devices(path).filter(|layer| is_written(layer, silent));
    if let Some(layer) = written.find(|layer| layer.cache == Cache::Volatile) {
        return Some(format!("{} holds acknowledged data in a volatile cache", layer.name));
    }
    let all_forward = path.layers.iter().all(|layer| layer.flush == Flush::Forwarded || is_bottom(layer));
    let unknown = lowest_devices(path)
        .filter(|layer| is_written(layer, silent))
        .find(|layer| layer.cache == Cache::Unknown && layer.flush == Flush::Forwarded);
    match unknown {
        Some(layer) if all_forward => Some(format!(
            "every layer ought to forward flushes, and whether {} has a volatile cache is unknown",
            layer.name
        )),
        _ => None,
    }
}

/// Whether the device was written to meanwhile; also where its own counters are not there to tell.
fn is_written(layer: &Layer, results: &[&SyncResult]) -> bool {
    results.iter().filter_map(|result| result.storage.as_ref()).any(|storage| {
        let own = storage.devices.iter().find(|device| device.name == layer.name);
        own.is_none_or(|device| device.writes > 0)
    })
}

/// Durable writes of all `results`.
fn operations(results: &[&SyncResult]) -> u64 {
    results.iter().fold(0, |sum, result| sum.saturating_add(result.operations))
}

/// The end of the path, where nothing is forwarded any further.
fn is_bottom(layer: &Layer) -> bool {
    layer.below.is_empty() && wording::is_beyond_sight(layer.kind)
}

/// Whether the counters of these devices can show flushes. Devices without a request queue (dm, md, zram and the
/// like) count none of their own, and the heads of NVMe multipath count a flush as an empty read (`bdev_start_io_acct`
/// in `block/blk-core.c`).
fn counts_flushes(result: &SyncResult) -> bool {
    can_count_flushes(result.storage.as_ref(), result.operations)
}

/// The same for so many durable writes over these devices.
pub(super) fn can_count_flushes(storage: Option<&StorageSide>, durable_writes: u64) -> bool {
    let devices = storage.map_or(&[][..], |storage| &storage.devices);
    let bio_based = |device: &DeviceCounters| {
        ["dm-", "md", "zram", "ram", "pmem", "nullb", "bcache"]
            .iter()
            .any(|prefix| device.name.starts_with(prefix))
    };
    let as_reads = |device: &DeviceCounters| {
        device.reads as f64 >= COMPLETE_FROM * durable_writes as f64
            && device.read_bytes.0 < device.reads.saturating_mul(512)
    };
    devices.is_empty() || devices.iter().any(|device| !bio_based(device) && !as_reads(device))
}

/// Devices with a volatile cache that were written to and handed no flush while others were handed many.
fn skipped_devices(document: &CheckDocument) -> Vec<(String, String)> {
    let mut skipped: Vec<(String, String)> = Vec::new();
    let with_storage = measured(document).filter_map(|result| Some((result, result.storage.as_ref()?)));
    for (result, storage) in with_storage.filter(|(result, _)| expects_flush(&document.path, result.method)) {
        let flushed = |device: &&DeviceCounters| device.flushes.is_some_and(|flushes| flushes >= SYNCS_MIN);
        let Some(other) = storage.devices.iter().find(flushed) else { continue };
        let quiet =
            storage.devices.iter().filter(|device| device.flushes == Some(0) && device.writes >= SYNCS_MIN);
        for device in quiet {
            let volatile = lowest_devices(&document.path)
                .any(|layer| layer.name == device.name && layer.cache == Cache::Volatile);
            if volatile
                && !is_one_of_several_paths(&document.path, &device.name)
                && !skipped.iter().any(|(name, _)| *name == device.name)
            {
                let line = format!(
                    "{}: {} took {} writes and 0 flushes, {} took {} flushes",
                    wording::method(result.method),
                    device.name,
                    count(device.writes),
                    other.name,
                    count(other.flushes.unwrap_or(0))
                );
                skipped.push((device.name.clone(), line));
            }
        }
    }
    skipped
}

/// Whether the device is a path to a drive that has others: a flush by any of them empties the cache of the drive.
fn is_one_of_several_paths(path: &WritePath, name: &str) -> bool {
    path.layers
        .iter()
        .any(|layer| layer.kind == LayerKind::DmMultipath && layer.below.iter().any(|below| below == name))
}

/// One line for each method.
fn counts(results: &[&SyncResult]) -> Vec<String> {
    let line = |result: &&SyncResult| {
        format!(
            "{}: {} durable writes, {} device flushes",
            wording::method(result.method),
            count(result.operations),
            count(result.device_flushes.unwrap_or(0))
        )
    };
    results.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// A document whose devices were handed no flush.
    fn without_flushes(name: &str) -> CheckDocument {
        let mut document = fixture::document(name);
        for result in &mut document.sync {
            result.device_flushes = Some(0);
            result.flushes_per_sync = Some(0.0);
            for device in result.storage.iter_mut().flat_map(|storage| &mut storage.devices) {
                device.flushes = Some(0);
            }
        }
        document
    }

    #[test]
    fn no_flush_on_a_path_that_forwards_is_a_drop() {
        let finding = dropped(&without_flushes("virtual-machine")).unwrap();
        assert_eq!(finding.severity, Severity::Danger);
        assert!(finding.sentence.contains("125,310 durable writes"), "{}", finding.sentence);
        assert!(none_seen(&without_flushes("virtual-machine")).is_none(), "the same is said twice");
    }

    #[test]
    fn flushes_that_arrive_are_no_finding() {
        let document = fixture::virtual_machine();
        assert!(
            dropped(&document).is_none() && none_seen(&document).is_none() && missing(&document).is_none()
        );
    }

    #[test]
    fn one_skipped_member_of_an_array_is_found() {
        let mut document = fixture::document("raid-eight-disks");
        assert!(dropped(&document).unwrap().sentence.starts_with("sde held"));
        for layer in document.path.layers.iter_mut().filter(|layer| layer.name == "sde") {
            layer.cache = Cache::None;
        }
        assert!(dropped(&document).is_none());
    }

    #[test]
    fn write_through_explains_that_no_flush_is_seen() {
        let document = fixture::document("hard-drive");
        assert!(dropped(&document).is_none());
        let finding = none_seen(&document).unwrap();
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.sentence.contains("sda says"), "{}", finding.sentence);
    }

    #[test]
    fn a_layer_that_does_not_say_is_a_warning() {
        let mut document = without_flushes("virtual-machine");
        document.path.layers[2].flush = Flush::Unknown;
        assert!(dropped(&document).is_none());
        assert_eq!(none_seen(&document).unwrap().severity, Severity::Warning);
    }

    #[test]
    fn a_device_that_counts_flushes_as_empty_reads_is_not_accused() {
        let mut document = without_flushes("virtual-machine");
        for result in &mut document.sync {
            let operations = result.operations;
            result.storage.as_mut().unwrap().devices[0].reads = operations;
        }
        assert!(dropped(&document).is_none());
        assert_eq!(none_seen(&document).unwrap().severity, Severity::Info);
    }

    #[test]
    fn native_fua_needs_no_flush() {
        let mut document = without_flushes("virtual-machine");
        document.sync.retain(|result| result.method == SyncMethod::DirectDsync);
        assert!(dropped(&document).is_some());
        let disk = document.path.layers.iter_mut().find(|layer| layer.name == "vda").unwrap();
        disk.fua = Fua::Native;
        assert!(dropped(&document).is_none() && none_seen(&document).is_none());
    }

    #[test]
    fn counters_that_miss_the_direct_loads_accuse_nobody() {
        let mut document = without_flushes("virtual-machine");
        let direct = document.io.iter_mut().find(|io| io.name == "write-direct").unwrap();
        direct.storage.as_mut().unwrap().write_bytes = 0;
        assert!(dropped(&document).is_none());
        let finding = none_seen(&document).unwrap();
        assert_eq!(finding.severity, Severity::Info);
        assert!(finding.sentence.contains("did not see the direct loads"), "{}", finding.sentence);
    }

    #[test]
    fn a_volatile_device_that_was_not_written_to_accuses_nobody() {
        let mut document = without_flushes("virtual-machine");
        let devices = document.sync.iter_mut().filter_map(|result| result.storage.as_mut());
        devices.for_each(|storage| storage.devices[0].writes = 0);
        assert!(dropped(&document).is_none());
    }

    #[test]
    fn a_loop_device_over_a_drive_without_a_cache_accuses_nobody() {
        let mut document = without_flushes("virtual-machine");
        let disk = document.path.layers.iter().position(|layer| layer.name == "vda").unwrap();
        (document.path.layers[disk].cache, document.path.layers[disk].flush) = (Cache::None, Flush::Absorbed);
        let above = &mut document.path.layers[disk - 1];
        (above.kind, above.cache) = (LayerKind::Loop, Cache::Volatile);
        assert!(dropped(&document).is_none());
        assert_eq!(none_seen(&document).unwrap().severity, Severity::Info);
    }

    #[test]
    fn one_path_of_several_need_not_be_flushed() {
        let mut document = fixture::document("raid-eight-disks");
        for layer in document.path.layers.iter_mut().filter(|layer| layer.name == "md0") {
            layer.kind = LayerKind::DmMultipath;
        }
        assert!(dropped(&document).is_none());
    }

    #[test]
    fn few_syncs_prove_nothing() {
        let mut document = without_flushes("virtual-machine");
        document.sync.iter_mut().for_each(|result| result.operations = 9);
        assert!(dropped(&document).is_none() && none_seen(&document).is_none());
    }

    #[test]
    fn one_writers_syncs_share_no_flush() {
        let mut document = fixture::virtual_machine();
        document.sync[0].device_flushes = Some(20_000);
        document.sync[0].flushes_per_sync = Some(0.38);
        let finding = missing(&document).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.sentence.contains("52,410 writes durable") && finding.sentence.contains("only 20,000"),
            "{}",
            finding.sentence
        );
    }
}

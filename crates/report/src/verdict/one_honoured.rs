//! FUA compared with flushes: the times of durable writes to one drive by both methods can show that the
//! drive honours only one.
//!
//! A drive that honours both does the same work for both: it writes one block to its medium. A flush may take
//! longer, since it also writes the drive's map. FUA must not take several times as long as a write and its
//! flush together. Virtual disks, networks, protected caches and targets that were not surveyed are excluded,
//! since other causes may explain a difference there.

use plumb_block::SyncMethod;
use plumb_measure::{Latency, StorageSide};
use plumb_path::{Cache, LayerKind, Severity, WritePath};

use super::evidence::Evidence;
use super::outcome::{Verdict, device_layers};
use super::platter::{OPERATIONS_MIN, TURN_PART, slowest_turn};
use crate::document::RunTarget;
use crate::quantity::duration;

/// Ratio of the time of a FUA write to that of a write and its flush, from which the flush did no work. Both
/// write the same block to the medium, so an honest drive has about 1; 4 allows for the scatter between two
/// windows.
const FUA_OVER_FLUSH: f64 = 4.0;
/// Time in seconds within which nothing can be programmed into flash: a page of single-level cells takes 200
/// µs and more in data sheets (EP 1 850 348 quotes 300 µs), and this is less than a third of that.
const FLASH_FLOOR: f64 = 60e-6;
/// Ratio of the time of a flush to the [floor](FLASH_FLOOR), from which the flush had data to program: the
/// cache is in use, and is not emptied at once like one with capacitors (12 to 58 µs).
const FLUSH_OVER_FLOOR: f64 = 8.0;
/// Flushes for each durable write up to which FUA counts as native, and from which a sync counts as flushed.
const FLUSHES_FEW: f64 = 0.05;
const FLUSHES_ALL: f64 = 0.95;

/// Durable writes by both methods.
struct Both<'a> {
    /// Latency of a write and its flush.
    flushed: &'a Latency,
    /// Mean time of a flush at the device, in seconds.
    flush_mean: f64,
    /// Latency of a write with FUA.
    fua: &'a Latency,
    /// Time of one revolution in seconds, of a drive that reports its rotation rate.
    turn: Option<f64>,
}

/// Judges `one-of-flush-and-fua`: the kernel sent FUA writes and flushes to the drive, and their times show
/// that one of the two did not reach the medium.
pub(super) fn one_of_flush_and_fua(evidence: &Evidence<'_>) -> Option<Verdict> {
    let both = both(evidence)?;
    let (flushed, fua) = (both.flushed.p50?, both.fua.p50?);
    let lines = vec![
        format!("overwrite-fdatasync: p50 {}, {} a flush", duration(flushed), duration(both.flush_mean)),
        format!("direct-dsync: p50 {}, by FUA without a flush", duration(fua)),
    ];
    let sentence = if fua > FUA_OVER_FLUSH * flushed {
        format!(
            "A FUA write takes {}, a write and its flush together {}: the flush cannot have put the same block on the \
             medium, so only FUA is honoured, or the cache survives a power cut without saying so.",
            duration(fua),
            duration(flushed)
        )
    } else if both.is_fua_ignored(fua) {
        format!(
            "A FUA write takes {}, too little to reach the medium, and a flush {}: only flushes are honoured, or the \
             cache survives a power cut without saying so.",
            duration(fua),
            duration(both.flush_mean)
        )
    } else {
        return None;
    };
    Some(Verdict::new(Severity::Warning, sentence, lines))
}

impl Both<'_> {
    /// Returns true if half of the FUA writes were too fast to reach the medium, and flushes were not.
    fn is_fua_ignored(&self, fua: f64) -> bool {
        match self.turn {
            Some(turn) => fua < TURN_PART * turn && self.flush_mean > 2.0 * TURN_PART * turn,
            None => fua < FLASH_FLOOR && self.flush_mean > FLUSH_OVER_FLOOR * FLASH_FLOOR,
        }
    }
}

/// Returns the durable writes of a check by both methods, if the drive is visible, each sync sent a flush,
/// and FUA was sent without one.
fn both<'a>(evidence: &Evidence<'a>) -> Option<Both<'a>> {
    let by = |method| evidence.targets().find(|(_, _, job)| job.method == Some(method));
    let ((_, by_flush, _), (_, by_fua, _)) =
        (by(SyncMethod::OverwriteFdatasync)?, by(SyncMethod::DirectDsync)?);
    // Without a survey the other causes cannot be excluded.
    if evidence.document.path_of(by_flush).is_none_or(has_other_causes) {
        return None;
    }
    let (flushed, storage, each) = durable(by_flush)?;
    let (fua, _, with_fua) = durable(by_fua)?;
    (each >= FLUSHES_ALL && with_fua <= FLUSHES_FEW).then_some(Both {
        flushed,
        flush_mean: storage.flush_mean?,
        fua,
        turn: slowest_turn(evidence, by_flush).or(by_flush.device.revolution_seconds),
    })
}

/// Returns the latency of the durable writes if there were enough, their storage side, and the flushes for
/// each of them.
fn durable(target: &RunTarget) -> Option<(&Latency, &StorageSide, f64)> {
    let latency = target.sides.durable_latency.as_ref().filter(|latency| latency.count >= OPERATIONS_MIN)?;
    let storage = target.sides.storage.as_ref()?;
    Some((latency, storage, storage.flushes? as f64 / latency.count as f64))
}

/// Returns true if a layer below the file system explains a difference by itself.
fn has_other_causes(path: &WritePath) -> bool {
    device_layers(path).any(|layer| {
        layer.cache == Cache::Protected
            || matches!(
                layer.kind,
                LayerKind::Hypervisor | LayerKind::Remote | LayerKind::WriteBackCache | LayerKind::Loop
            )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::RunDocument;
    use crate::fixture;

    /// Figures of a simulated drive, in seconds, from `plumb check sim:MODEL?behaviour.LIE --duration 10s`.
    struct Drive {
        name: &'static str,
        flushed: f64,
        flush: f64,
        fua: f64,
        turn: Option<f64>,
        lies: Option<&'static str>,
    }

    const TURN: Option<f64> = Some(60.0 / 7200.0);
    const HONEST: Option<&str> = None;
    const FUA: Option<&str> = Some("only flushes are honoured");
    const FLUSH: Option<&str> = Some("only FUA is honoured");

    fn drive(
        name: &'static str,
        [flushed, flush, fua]: [f64; 3],
        turn: Option<f64>,
        lies: Option<&'static str>,
    ) -> Drive {
        Drive { name, flushed: flushed * 1e-6, flush: flush * 1e-6, fua: fua * 1e-6, turn, lies }
    }

    fn drives() -> [Drive; 14] {
        [
            drive("consumer-nvme-ssd", [948.9, 936.1, 237.3], None, HONEST),
            drive("consumer-nvme-ssd", [948.9, 936.1, 12.8], None, FUA),
            drive("consumer-nvme-ssd", [32.8, 20.0, 237.3], None, FLUSH),
            drive("plp-nvme-ssd", [44.9, 26.8, 18.1], None, HONEST),
            drive("all-flash-cluster", [395.0, 205.2, 190.5], None, HONEST),
            drive("usb-stick", [10_542.0, 1200.0, 9342.0], None, HONEST),
            drive("memory", [2.0, 1.0, 1.0], None, HONEST),
            drive("nearline-4tb", [6828.0, 6575.9, 6828.0], TURN, HONEST),
            drive("nearline-4tb", [6828.0, 6575.9, 206.8], TURN, FUA),
            drive("nearline-4tb", [226.9, 20.0, 6828.0], TURN, FLUSH),
            drive("he8-media-cache", [6291.5, 6157.5, 6230.0], TURN, HONEST),
            drive("he8-media-cache", [6291.5, 6157.5, 93.4], TURN, FUA),
            drive("he8-media-cache", [113.5, 20.0, 6275.1], TURN, FLUSH),
            drive("sas-15k, its cache off", [3260.4, 100.0, 3168.3], Some(60.0 / 15_000.0), HONEST),
        ]
    }

    /// Returns a check of the drive: syncs with a flush each, FUA writes without one.
    fn checked(drive: &Drive) -> RunDocument {
        let mut document = fixture::virtual_machine();
        // A disk of this machine, with nothing below it.
        let path = document.path.as_mut().unwrap();
        path.layers.retain(|layer| layer.kind != LayerKind::Hypervisor);
        for layer in path.layers.iter_mut().filter(|layer| layer.kind == LayerKind::VirtioDisk) {
            layer.kind = LayerKind::NvmeNamespace;
            layer.below.clear();
        }
        for target in &mut document.targets {
            target.device.revolution_seconds = drive.turn;
        }
        for (phase, p50, flushes) in
            [("overwrite-fdatasync", drive.flushed, 1), ("direct-dsync", drive.fua, 0)]
        {
            let sides = fixture::phase(&mut document, phase);
            let latency = sides.durable_latency.as_mut().unwrap();
            latency.p50 = Some(p50);
            let storage = sides.storage.as_mut().unwrap();
            storage.flushes = Some(flushes * latency.count);
            storage.flush_mean = Some(drive.flush);
        }
        document
    }

    fn judged(document: &RunDocument) -> Option<Verdict> {
        one_of_flush_and_fua(&Evidence::new(document))
    }

    #[test]
    fn drives_that_ignore_one_of_both_are_told_from_honest_ones() {
        for drive in drives() {
            let verdict = judged(&checked(&drive));
            match (drive.lies, verdict) {
                (None, verdict) => {
                    assert!(verdict.is_none(), "{}: {}", drive.name, verdict.unwrap().sentence)
                }
                (Some(lie), verdict) => {
                    let sentence = verdict.map(|verdict| verdict.sentence).unwrap_or_default();
                    assert!(sentence.contains(lie), "{}, {lie}: {sentence}", drive.name);
                }
            }
        }
    }

    #[test]
    fn what_is_not_seen_or_has_another_cause_is_not_accused() {
        let liar = drive("consumer-nvme-ssd", [948.9, 936.1, 12.8], None, FUA);
        let mut document = checked(&liar);
        // FUA that the kernel replaced by a write and a flush tells nothing about FUA of the drive.
        let sides = fixture::phase(&mut document, "direct-dsync");
        sides.storage.as_mut().unwrap().flushes = sides.durable_latency.map(|latency| latency.count);
        assert!(judged(&document).is_none());
        let mut document = checked(&liar);
        fixture::phase(&mut document, "direct-dsync").durable_latency.as_mut().unwrap().count = 29;
        assert!(judged(&document).is_none());
        // Without a survey the layers below the target are unknown.
        let mut document = checked(&liar);
        document.path = None;
        document.paths.clear();
        assert!(judged(&document).is_none());
        // Virtual disk: the host's treatment of both is unknown.
        let mut document = checked(&liar);
        document.path = fixture::virtual_machine().path;
        assert!(judged(&document).is_none());
    }
}

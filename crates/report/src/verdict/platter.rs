//! Durable rewrites faster than a platter can turn.

use plumb_path::{Cache, Finding, Layer, LayerKind, Severity};

use super::{Verdict, device_layers, lowest_devices, measured};
use crate::document::CheckDocument;
use crate::quantity::duration;
use crate::wording;

/// With the head over the right track, half of all rewrites wait for more than this part of a turn.
pub(super) const TURN_PART: f64 = 0.25;
/// Fewer durable writes than this have no median worth the name.
pub(super) const OPERATIONS_MIN: u64 = 30;

/// What to do about it.
pub(super) const REMEDY: &str = "This is consistent with a non-volatile cache in the drive, and with a drive that does not do what it is told. Its \
     data sheet may tell; a power cut with a witness proves it.";

/// `faster-than-the-platter`: all drives rotate by their own word, none is known to have a protected cache, and half
/// of the durable writes took less than a quarter turn.
pub(super) fn faster_than_the_platter(document: &CheckDocument) -> Option<Finding> {
    // A virtual drive says how fast it turns, but does not turn.
    let outweighs = |layer: &Layer| {
        layer.cache == Cache::Protected || matches!(layer.kind, LayerKind::Hypervisor | LayerKind::Remote)
    };
    if device_layers(&document.path).any(outweighs) {
        return None;
    }
    let drives: Vec<&Layer> = lowest_devices(&document.path).collect();
    let turns: Vec<(&Layer, f64)> =
        drives.iter().filter_map(|layer| Some((*layer, turn_seconds(layer)?))).collect();
    if turns.is_empty() || turns.len() < drives.len() {
        return None;
    }
    let slowest = turns.iter().map(|(_, turn)| *turn).fold(0.0, f64::max);
    let fast: Vec<_> = measured(document)
        .filter_map(|result| Some((result, result.latency.as_ref()?)))
        .filter(|(_, latency)| latency.count >= OPERATIONS_MIN && latency.p50 < TURN_PART * slowest)
        .collect();
    let (_, latency) = fast.first()?;
    let mut evidence: Vec<String> = fast
        .iter()
        .map(|(result, latency)| format!("{}: p50 {}", wording::method(result.method), duration(latency.p50)))
        .collect();
    evidence.extend(
        turns.iter().map(|(layer, turn)| format!("{}: one turn takes {}", layer.name, duration(*turn))),
    );
    Some(
        Verdict {
            id: "faster-than-the-platter",
            severity: Severity::Warning,
            sentence: format!(
                "Half of the durable writes took {} or less, but one turn of the drive takes {}: what was synced is not \
                 on the platter yet.",
                duration(latency.p50),
                duration(slowest)
            ),
            evidence,
            remedy: REMEDY,
        }
        .into(),
    )
}

/// The time of one turn, if the drive itself states its rotation. The kernel's `rotational` says nothing of the kind.
fn turn_seconds(layer: &Layer) -> Option<f64> {
    let stated = layer.evidence.iter().find(|line| line.means.starts_with("revolutions per minute"))?;
    let rpm: f64 = stated.value.replace(',', "").trim().parse().ok()?;
    (rpm >= 100.0).then(|| 60.0 / rpm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_media_cache_is_faster_than_its_platter() {
        let finding = faster_than_the_platter(&fixture::document("hard-drive")).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.sentence.contains("203 µs") && finding.sentence.contains("8.33 ms"),
            "{}",
            finding.sentence
        );
    }

    #[test]
    fn the_adapter_below_a_drive_does_not_hide_it_and_a_hypervisor_does() {
        let mut document = fixture::document("hard-drive");
        let mut below = document.path.layers.last().unwrap().clone();
        (below.kind, below.name, below.below) = (LayerKind::Controller, "ahci".into(), vec![]);
        below.evidence.clear();
        document.path.layers.last_mut().unwrap().below = vec!["ahci".into()];
        document.path.layers.push(below);
        assert!(faster_than_the_platter(&document).is_some());
        document.path.layers.last_mut().unwrap().kind = LayerKind::Hypervisor;
        assert!(faster_than_the_platter(&document).is_none());
    }

    #[test]
    fn slow_drives_protected_caches_and_virtual_disks_are_not() {
        let mut document = fixture::document("hard-drive");
        for latency in document.sync.iter_mut().filter_map(|result| result.latency.as_mut()) {
            latency.p50 = 8e-3;
        }
        assert!(faster_than_the_platter(&document).is_none());
        let mut document = fixture::document("hard-drive");
        document.path.layers.last_mut().unwrap().cache = Cache::Protected;
        assert!(faster_than_the_platter(&document).is_none());
        assert!(faster_than_the_platter(&fixture::virtual_machine()).is_none());
    }
}

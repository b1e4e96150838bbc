//! Durable writes faster than the rotation of a disk.

use plumb_path::{Cache, Layer, LayerKind, Severity, WritePath};

use super::evidence::Evidence;
use super::outcome::{Verdict, device_layers, lowest_devices};
use crate::document::RunTarget;
use crate::quantity::duration;

/// Part of a revolution that at least half of all rewrites have to wait, with the head on the right track.
pub(super) const TURN_PART: f64 = 0.25;
/// Minimum number of durable writes for a meaningful median.
pub(super) const OPERATIONS_MIN: u64 = 30;

/// Judges `faster-than-the-platter`: all drives report that they rotate, none is known to have a protected
/// cache, and half of the durable writes took less than a quarter of a revolution.
pub(super) fn faster_than_the_platter(evidence: &Evidence<'_>) -> Option<Verdict> {
    let mut fast = Vec::new();
    let mut drives: Vec<String> = Vec::new();
    for (label, target, _) in evidence.targets() {
        let (Some(turn), Some(latency)) = (slowest_turn(evidence, target), &target.sides.durable_latency)
        else {
            continue;
        };
        let fast_median = latency.p50.filter(|median| *median < TURN_PART * turn);
        if let Some(median) = fast_median.filter(|_| latency.count >= OPERATIONS_MIN) {
            fast.push((label, median, turn));
            let of_drive =
                |(layer, turn): (&Layer, f64)| format!("{}: one turn takes {}", layer.name, duration(turn));
            drives.extend(evidence.document.path_of(target).into_iter().flat_map(turns).map(of_drive));
        }
    }
    let (_, median, turn) = fast.first()?;
    let mut lines: Vec<String> = fast
        .iter()
        .map(|(label, median, turn)| {
            format!("{label}: p50 {}, one turn {}", duration(*median), duration(*turn))
        })
        .collect();
    lines.extend(drives);
    lines.dedup();
    Some(Verdict::new(
        Severity::Warning,
        format!(
            "Half of the durable writes took {} or less, but one turn of the drive takes {}: what was synced is not on \
             the platter yet.",
            duration(*median),
            duration(*turn)
        ),
        lines,
    ))
}

/// Returns the time in seconds of one revolution of the slowest drive below `target`, if all of them report
/// that they rotate and nothing else can explain fast writes.
pub(super) fn slowest_turn(evidence: &Evidence<'_>, target: &RunTarget) -> Option<f64> {
    match evidence.document.path_of(target) {
        Some(path) => turns(path).into_iter().map(|(_, turn)| turn).reduce(f64::max),
        None => target.device.revolution_seconds.filter(|turn| *turn > 0.0),
    }
}

/// Returns the drives of `path` with the times of one revolution; empty if one of them does not rotate, or
/// something else can explain fast writes.
fn turns(path: &WritePath) -> Vec<(&Layer, f64)> {
    // A virtual drive reports a rotation rate but does not rotate.
    let outweighs = |layer: &Layer| {
        layer.cache == Cache::Protected || matches!(layer.kind, LayerKind::Hypervisor | LayerKind::Remote)
    };
    if device_layers(path).any(outweighs) {
        return Vec::new();
    }
    let turns: Option<Vec<_>> =
        lowest_devices(path).map(|layer| Some((layer, turn_seconds(layer)?))).collect();
    turns.unwrap_or_default()
}

/// Returns the time of one revolution, if the drive itself reports it. The kernel's `rotational` does not
/// suffice.
fn turn_seconds(layer: &Layer) -> Option<f64> {
    let stated = layer.evidence.iter().find(|line| line.means.starts_with("revolutions per minute"))?;
    let rpm: f64 = stated.value.replace(',', "").trim().parse().ok()?;
    (rpm >= 100.0).then(|| 60.0 / rpm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::RunDocument;
    use crate::fixture;

    fn judged(document: &RunDocument) -> Option<Verdict> {
        faster_than_the_platter(&Evidence::new(document))
    }

    #[test]
    fn a_media_cache_is_faster_than_its_platter() {
        let finding = judged(&fixture::document("hard-drive")).unwrap();
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
        let layers = &mut document.path.as_mut().unwrap().layers;
        let mut below = layers.last().unwrap().clone();
        (below.kind, below.name, below.below) = (LayerKind::Controller, "ahci".into(), vec![]);
        below.evidence.clear();
        layers.last_mut().unwrap().below = vec!["ahci".into()];
        layers.push(below);
        assert!(judged(&document).is_some());
        document.path.as_mut().unwrap().layers.last_mut().unwrap().kind = LayerKind::Hypervisor;
        assert!(judged(&document).is_none());
    }

    #[test]
    fn slow_drives_protected_caches_and_virtual_disks_are_not() {
        let mut document = fixture::document("hard-drive");
        for latency in document.targets.iter_mut().filter_map(|target| target.sides.durable_latency.as_mut())
        {
            latency.p50 = Some(8e-3);
        }
        assert!(judged(&document).is_none());
        let mut document = fixture::document("hard-drive");
        document.path.as_mut().unwrap().layers.last_mut().unwrap().cache = Cache::Protected;
        assert!(judged(&document).is_none());
        assert!(judged(&fixture::virtual_machine()).is_none());
    }
}

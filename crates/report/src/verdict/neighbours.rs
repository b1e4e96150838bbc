//! What others did meanwhile: programs on the same devices, machines on the same host.

use plumb_path::Severity;

use super::Verdict;
use super::evidence::Evidence;
use crate::quantity::{bytes, percent};

/// Others moved more than this share of all bytes.
const FOREIGN_ABOVE: f64 = 0.05;
/// And more than this: some journal is always written.
const FOREIGN_MIN: u64 = 1 << 20;
/// The hypervisor took more than this share of the processor time.
const STEAL_ABOVE: f64 = 0.02;

/// `device-shared-with-others`: other programs used the devices during a phase.
pub(super) fn device_shared(evidence: &Evidence<'_>) -> Option<Verdict> {
    let shared: Vec<(&str, u64, f64)> = evidence
        .phases
        .iter()
        .filter_map(|phase| {
            let (storage, foreign) = (phase.storage?, phase.quality.foreign_bytes?);
            let all = storage.read_bytes.saturating_add(storage.write_bytes).max(foreign);
            let share = foreign as f64 / all.max(1) as f64;
            (foreign >= FOREIGN_MIN && share > FOREIGN_ABOVE).then_some((phase.name.as_str(), foreign, share))
        })
        .collect();
    let (name, foreign, share) = shared.iter().copied().max_by(|a, b| a.2.total_cmp(&b.2))?;
    Some(Verdict {
        id: "device-shared-with-others",
        severity: Severity::Info,
        sentence: format!(
            "During {name} others moved {} on the same devices, {} of all.",
            bytes(foreign as f64),
            percent(share)
        ),
        evidence: shared
            .iter()
            .map(|(name, foreign, share)| format!("{name}: {} ({})", bytes(*foreign as f64), percent(*share)))
            .collect(),
        remedy: "The figures are those of a shared device. Measure again when it is idle to see it alone.",
    })
}

/// `steal`: the hypervisor gave processor time to others.
pub(super) fn steal(evidence: &Evidence<'_>) -> Option<Verdict> {
    let stolen: Vec<(&str, f64)> = evidence
        .phases
        .iter()
        .filter_map(|phase| Some((phase.name.as_str(), phase.quality.steal?)))
        .filter(|(_, steal)| *steal > STEAL_ABOVE)
        .collect();
    let (name, worst) = stolen.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Verdict {
        id: "steal",
        severity: Severity::Info,
        sentence: format!("During {name} the hypervisor took {} of the processor time away.", percent(worst)),
        evidence: stolen.iter().map(|(name, steal)| format!("{name}: steal {}", percent(*steal))).collect(),
        remedy: "Tails of latency may be the host's, not the storage's. Measure again, or on a host with free processors.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_shared_device_is_noticed_and_a_journal_is_not() {
        let finding = device_shared(&Evidence::of(&fixture::document("raid-eight-disks"))).unwrap();
        assert!(finding.sentence.contains("read-direct"), "{}", finding.sentence);
        let mut document = fixture::virtual_machine();
        document.targets[4].sides.quality.foreign_bytes = Some(500_000);
        assert!(device_shared(&Evidence::of(&document)).is_none());
    }

    #[test]
    fn steal_is_noticed_above_two_hundredths() {
        let mut document = fixture::virtual_machine();
        assert!(steal(&Evidence::of(&document)).is_none());
        document.targets[0].sides.quality.steal = Some(0.12);
        assert!(steal(&Evidence::of(&document)).unwrap().sentence.contains("12%"));
    }
}

//! Activity of others during the measurement: programs on the same devices, machines on the same host.

use plumb_measure::{Quality, StorageSide};
use plumb_path::Severity;

use super::evidence::Evidence;
use super::outcome::Verdict;
use crate::quantity::{bytes, counted, percent};

/// Share of all bytes, or of all flushes, above which the activity of others is reported.
const FOREIGN_ABOVE: f64 = 0.05;
/// Minimum number of bytes that others moved: some journal is always written.
const FOREIGN_MIN: u64 = 1 << 20;
/// Minimum number of flushes that others requested for it to count.
const FLUSHES_MIN: u64 = 10;
/// Factor by which a file system may write more than its data, for metadata, without counting as others.
const WITH_JOURNAL: u64 = 2;
/// Share of the processor time above which steal by the hypervisor is reported.
const STEAL_ABOVE: f64 = 0.02;

/// Activity of other programs on the devices of a window; lower bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Foreign {
    pub(crate) bytes: u64,
    pub(crate) flushes: u64,
    /// Share of all bytes, or of all flushes if that is larger, 0 to 1.
    pub(super) share: f64,
}

impl Foreign {
    /// Returns the activity of others; `None` if it is negligible or unknown. Its bytes are those that this
    /// process did not request, or did not write according to its control group.
    pub(crate) fn new(storage: &StorageSide, quality: &Quality) -> Option<Self> {
        let whose = storage.attribution.as_ref();
        let own = whose.and_then(|whose| whose.own_write_bytes);
        let beyond = own.map(|own| storage.write_bytes.saturating_sub(own.saturating_mul(WITH_JOURNAL)));
        let moved = quality.foreign_bytes.or(beyond).unwrap_or(0);
        let flushes = whose.and_then(|whose| whose.foreign_flushes).unwrap_or(0);
        let share = |part: u64, all: u64| part as f64 / all.max(part).max(1) as f64;
        let by_bytes = share(moved, storage.read_bytes.saturating_add(storage.write_bytes));
        let by_flushes = share(flushes, storage.flushes.unwrap_or(0));
        let is_much = |amount: u64, least: u64, share: f64| amount >= least && share > FOREIGN_ABOVE;
        let much = (is_much(moved, FOREIGN_MIN, by_bytes), is_much(flushes, FLUSHES_MIN, by_flushes));
        let share = match much {
            (false, false) => return None,
            (true, false) => by_bytes,
            (false, true) => by_flushes,
            (true, true) => by_bytes.max(by_flushes),
        };
        Some(Self { bytes: if much.0 { moved } else { 0 }, flushes: if much.1 { flushes } else { 0 }, share })
    }

    /// Returns `moved 12 MiB and asked for 300 flushes`.
    pub(super) fn words(self) -> String {
        let moved = (self.bytes > 0).then(|| format!("moved {}", bytes(self.bytes as f64)));
        let flushed = (self.flushes > 0).then(|| format!("asked for {}", counted(self.flushes, "flush")));
        moved.into_iter().chain(flushed).collect::<Vec<_>>().join(" and ")
    }
}

/// Judges `device-shared-with-others`: other programs used the devices during a phase.
pub(super) fn device_shared(evidence: &Evidence<'_>) -> Option<Verdict> {
    let foreign = evidence
        .phases
        .iter()
        .filter_map(|phase| Some((phase.name.as_str(), Foreign::new(phase.storage?, phase.quality)?)));
    let shared: Vec<(&str, Foreign)> = foreign.collect();
    let (name, worst) = shared.iter().max_by(|one, other| one.1.share.total_cmp(&other.1.share))?;
    let sentence = format!(
        "During {name} others {} on the same devices, {} of all.",
        worst.words(),
        percent(worst.share)
    );
    let line = |(name, foreign): &(&str, Foreign)| {
        format!("{name}: others {} ({})", foreign.words(), percent(foreign.share))
    };
    Some(Verdict::new(Severity::Info, sentence, shared.iter().map(line).collect()))
}

/// Judges `steal`: the hypervisor gave processor time to other machines.
pub(super) fn steal(evidence: &Evidence<'_>) -> Option<Verdict> {
    let stolen: Vec<(&str, f64)> = evidence
        .phases
        .iter()
        .filter_map(|phase| Some((phase.name.as_str(), phase.quality.steal?)))
        .filter(|(_, steal)| *steal > STEAL_ABOVE)
        .collect();
    let (name, worst) = stolen.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Verdict::new(
        Severity::Info,
        format!("During {name} the hypervisor took {} of the processor time away.", percent(worst)),
        stolen.iter().map(|(name, steal)| format!("{name}: steal {}", percent(*steal))).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_shared_device_is_noticed_and_a_journal_is_not() {
        let finding = device_shared(&Evidence::new(&fixture::document("raid-eight-disks"))).unwrap();
        assert!(finding.sentence.contains("read-direct"), "{}", finding.sentence);
        let mut document = fixture::virtual_machine();
        document.targets[4].sides.quality.foreign_bytes = Some(500_000);
        assert!(device_shared(&Evidence::new(&document)).is_none());
    }

    #[test]
    fn steal_is_noticed_above_two_hundredths() {
        let mut document = fixture::virtual_machine();
        assert!(steal(&Evidence::new(&document)).is_none());
        document.targets[0].sides.quality.steal = Some(0.12);
        assert!(steal(&Evidence::new(&document)).unwrap().sentence.contains("12%"));
    }
}

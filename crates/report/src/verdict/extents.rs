//! Reads of blocks that were never written.

use plumb_path::Severity;

use super::evidence::Evidence;
use super::outcome::Verdict;
use crate::quantity::percent;

/// Written share from which a range counts as written: a file system may store a last partial block
/// separately.
const WRITTEN_FROM: f64 = 0.999;

/// Judges `unwritten-extents`: part of the blocks read had never been written; such reads do not reach the
/// medium.
pub(super) fn unwritten(evidence: &Evidence<'_>) -> Option<Verdict> {
    let unwritten: Vec<(&str, f64)> = evidence
        .phases
        .iter()
        .filter(|phase| phase.reads)
        .filter_map(|phase| Some((phase.name.as_str(), phase.quality.written_share?)))
        .filter(|(_, share)| *share < WRITTEN_FROM)
        .collect();
    let (name, share) = *unwritten.first()?;
    Some(Verdict::new(
        Severity::Warning,
        format!(
            "{name}: only {} of its range had been written; reads of the rest need no disk access.",
            percent(share)
        ),
        unwritten.iter().map(|(name, share)| format!("{name}: {} written", percent(*share))).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn unwritten_ranges_are_found_and_unknown_ones_are_not() {
        let mut document = fixture::virtual_machine();
        assert!(unwritten(&Evidence::new(&document)).is_none());
        document.targets[4].sides.quality.written_share = Some(0.4);
        assert!(unwritten(&Evidence::new(&document)).unwrap().sentence.contains(": only 40% of its range"));
        document.targets[4].sides.quality.written_share = None;
        assert!(unwritten(&Evidence::new(&document)).is_none());
    }
}

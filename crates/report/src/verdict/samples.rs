//! Rule about the number of operations behind the reported figures.

use plumb_measure::Latency;
use plumb_path::Severity;

use super::evidence::Evidence;
use super::outcome::Verdict;
use crate::figures::P99_FROM;
use crate::quantity::counted;

/// Number of operations below which no figure is meaningful.
const ANY_FROM: u64 = 30;
/// Number of operations below which the 99.9th percentile is the maximum.
const P999_FROM: u64 = 1000;

/// Judges `too-short`: some percentiles rest on few operations.
pub(super) fn too_short(evidence: &Evidence<'_>) -> Option<Verdict> {
    let timed = evidence.phases.iter().flat_map(|phase| &phase.timed);
    let few: Vec<(&str, &Latency)> = timed
        .filter(|(_, latency)| latency.count < P999_FROM)
        .map(|(name, latency)| (name.as_str(), *latency))
        .collect();
    let (name, least) = few.iter().min_by_key(|(_, latency)| latency.count)?;
    Some(Verdict::new(
        Severity::Info,
        format!(
            "{name} completed {} in its time: {}.",
            counted(least.count, "operation"),
            rests_on_few(least.count)
        ),
        few.iter()
            .map(|(name, latency)| {
                format!("{name}: {}, {}", counted(latency.count, "operation"), rests_on_few(latency.count))
            })
            .collect(),
    ))
}

const fn rests_on_few(operations: u64) -> &'static str {
    match operations {
        0..ANY_FROM => "too few for any percentile",
        ANY_FROM..P99_FROM => "too few for p99 and p99.9",
        _ => "too few for p99.9",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn few_operations_are_named_with_what_they_cannot_show() {
        let mut document = fixture::virtual_machine();
        assert!(too_short(&Evidence::new(&document)).is_none());
        for (operations, words) in [(999, "for p99.9"), (99, "for p99 and"), (29, "for any")] {
            document.targets[0].sides.durable_latency.as_mut().unwrap().count = operations;
            let finding = too_short(&Evidence::new(&document)).unwrap();
            assert!(finding.sentence.contains(words), "{}", finding.sentence);
        }
    }
}

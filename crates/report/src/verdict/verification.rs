//! Blocks that do not hold the written data.

use plumb_measure::{VerifyResult, WrongBlock, WrongKind};
use plumb_path::Severity;

use super::evidence::Evidence;
use super::outcome::Verdict;
use crate::quantity::{count, listed};

/// Maximum number of examples shown. The document has all.
const EXAMPLES: usize = 6;

/// Judges `data-not-as-written`: the data read differs from the acknowledged data.
pub(super) fn not_as_written(evidence: &Evidence<'_>) -> Option<Verdict> {
    let found = evidence.document.total.verified.as_ref().filter(|verified| verified.wrong() > 0)?;
    let mut lines = vec![format!("{} blocks compared, {} wrong", count(found.blocks), count(found.wrong()))];
    for (label, target, _) in evidence.targets() {
        let examples = target.sides.verified.iter().flat_map(|verified| &verified.examples);
        lines.extend(examples.map(|example| format!("{label}: {}", words(example))));
    }
    if lines.len() == 1 {
        lines.extend(found.examples.iter().map(words));
    }
    lines.truncate(EXAMPLES + 1);
    Some(Verdict::new(
        Severity::Danger,
        format!("Blocks that were acknowledged do not hold what was written: {}.", kinds(found)),
        lines,
    ))
}

/// Returns `3 lost, 1 torn and 2 stale`.
fn kinds(found: &VerifyResult) -> String {
    let counts: Vec<String> = [
        (found.lost, WrongKind::Lost),
        (found.torn, WrongKind::Torn),
        (found.misdirected, WrongKind::Misdirected),
        (found.stale, WrongKind::Stale),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, kind)| format!("{} {}", count(number), kind.word()))
    .collect();
    listed(&counts, "and")
}

fn words(example: &WrongBlock) -> String {
    let expected = example.expected.map_or_else(
        || "not written by this run".to_owned(),
        |version| format!("version {version} was acknowledged"),
    );
    let found = match (example.kind, example.found) {
        (_, None) => "it carries no stamp or cannot be read".to_owned(),
        (WrongKind::Misdirected, Some(stamp)) => {
            format!("it holds version {} of block {}", stamp.generation, stamp.lba.0)
        }
        (_, Some(stamp)) => format!("it says that it is version {}", stamp.generation),
    };
    format!("block {} is {}: {expected}, {found}", example.lba.0, example.kind.word())
}

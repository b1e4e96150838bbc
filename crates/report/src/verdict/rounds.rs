//! Whether the load had settled when it was measured, where that was asked for.

use plumb_path::Severity;

use super::Verdict;
use super::evidence::Evidence;
use crate::document::SteadyState;
use crate::quantity::{duration, rate};

/// `no-steady-state`: the rounds that were asked for did not become steady.
pub(super) fn no_steady_state(evidence: &Evidence<'_>) -> Option<Verdict> {
    let unsteady = |steady: &&SteadyState| steady.steady != Some(true);
    let found = evidence.document.spans.iter().filter_map(|span| span.steady.as_ref()).find(unsteady)?;
    let sentence = match found.steady {
        None => format!("{} rounds ran; the steady state needs five.", found.rounds.len()),
        _ => format!("After {} rounds the rate was not steady.", found.rounds.len()),
    };
    let last = &found.rounds[found.rounds.len().saturating_sub(5)..];
    let rates: Vec<String> = last.iter().map(|round| rate(round.iops)).collect();
    let seconds = last.last().map_or(0.0, |round| round.seconds);
    let mut evidence = vec![format!("the last rounds of {}: {} IOPS", duration(seconds), rates.join(", "))];
    evidence.push(
        "SNIA PTS 2.0.2: the last five rounds span at most 20% of their mean, their fitted line at most 10%"
            .to_owned(),
    );
    Some(Verdict {
        id: "no-steady-state",
        severity: Severity::Warning,
        sentence,
        evidence,
        remedy: "Precondition the drive (write twice its size sequentially) and allow more rounds; until then the figures \
                     depend on when one looks.",
    })
}

/// `not-settled`: measuring began although the rate still changed.
pub(super) fn not_settled(evidence: &Evidence<'_>) -> Option<Verdict> {
    let (index, span) =
        evidence.document.spans.iter().enumerate().find(|(_, span)| span.settled == Some(false))?;
    Some(Verdict {
        id: "not-settled",
        severity: Severity::Info,
        sentence: format!("The rate had not settled after {} of warm-up.", duration(span.warmup)),
        evidence: vec![format!("span {}: warm-up {}, not settled", index + 1, duration(span.warmup))],
        remedy: "Warm up for longer with a length of your own, or measure for longer.",
    })
}

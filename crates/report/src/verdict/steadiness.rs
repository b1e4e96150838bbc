//! Rules about the steadiness of the rate: over the requested rounds, after the warm-up, and within each
//! window.

use plumb_path::Severity;

use super::evidence::{Evidence, Phase};
use super::outcome::Verdict;
use crate::document::SteadyState;
use crate::quantity::{duration, percent, rate};

/// Share of the mean within which the fitted line must stay (SNIA PTS 2.0.2).
const SLOPE_FROM: f64 = 0.1;
/// Coefficient of variation over 100 ms above which a mean is misleading.
const VARIATION_ABOVE: f64 = 0.3;
/// Share of the window above which a ramp is reported.
const RAMP_SHARE: f64 = 1.0 / 3.0;
/// Minimum length of a window, in seconds; shorter ones have too few buckets for a slope.
const SECONDS_MIN: f64 = 1.0;

/// Judges `no-steady-state`: the requested rounds did not become steady.
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
    let lines = vec![
        format!("the last rounds of {}: {} IOPS", duration(seconds), rates.join(", ")),
        "SNIA PTS 2.0.2: the last five rounds span at most 20% of their mean, their fitted line at most 10%"
            .to_owned(),
    ];
    Some(Verdict::new(Severity::Warning, sentence, lines))
}

/// Judges `not-settled`: the measurement began while the rate was still changing.
pub(super) fn not_settled(evidence: &Evidence<'_>) -> Option<Verdict> {
    let (index, span) =
        evidence.document.spans.iter().enumerate().find(|(_, span)| span.settled == Some(false))?;
    let sentence = format!("The rate had not settled after {} of warm-up.", duration(span.warmup));
    let line = format!("span {}: warm-up {}, not settled", index + 1, duration(span.warmup));
    Some(Verdict::new(Severity::Info, sentence, vec![line]))
}

/// Judges `not-steady`: within its window the rate of a phase drifted, varied much, or took long to settle.
pub(super) fn not_steady(evidence: &Evidence<'_>) -> Option<Verdict> {
    let long = evidence.phases.iter().filter(|phase| phase.seconds >= SECONDS_MIN);
    let unsteady: Vec<(&Phase<'_>, Vec<String>)> =
        long.map(|phase| (phase, restless(phase))).filter(|(_, words)| !words.is_empty()).collect();
    let worst = |phase: &Phase<'_>| phase.quality.rate_slope.unwrap_or(0.0).abs();
    let (phase, words) = unsteady.iter().max_by(|one, other| worst(one.0).total_cmp(&worst(other.0)))?;
    let lines = unsteady.iter().map(|(phase, words)| format!("{}: {}", phase.name, words.join("; ")));
    let sentence = format!("The rate of {} was not steady: it {}.", phase.name, words.join(", "));
    Some(Verdict::new(Severity::Info, sentence, lines.collect()))
}

/// Describes the changes of the phase's rate, as verbs; empty if it was steady. A fitted line is described by
/// its ends, none below zero.
fn restless(phase: &Phase<'_>) -> Vec<String> {
    let quality = phase.quality;
    let mut words = Vec::new();
    if let Some(slope) = quality.rate_slope.filter(|slope| slope.abs() >= SLOPE_FROM) {
        let end = |half: f64| rate((phase.iops * (1.0 + half * slope)).max(0.0));
        let verb = if slope < 0.0 { "fell" } else { "rose" };
        words.push(format!("{verb} from about {} to {} a second", end(-0.5), end(0.5)));
    }
    if let Some(variation) = quality.rate_variation.filter(|variation| *variation > VARIATION_ABOVE) {
        words.push(format!("had a standard deviation of {} of its mean over 100 ms", percent(variation)));
    }
    match (quality.ramp_seconds, quality.rate_variation) {
        (Some(ramp), _) if ramp > RAMP_SHARE * phase.seconds => {
            words.push(format!("needed {} to settle", duration(ramp)));
        }
        (None, Some(_)) => words.push("did not settle in its window".to_owned()),
        _ => {}
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn judged(document: &crate::RunDocument) -> Option<Verdict> {
        not_steady(&Evidence::new(document))
    }

    #[test]
    fn a_steady_run_has_no_remark() {
        assert!(judged(&fixture::virtual_machine()).is_none());
    }

    #[test]
    fn drift_noise_and_ramps_are_one_note() {
        let found = judged(&fixture::document("raid-eight-disks")).unwrap();
        assert!(found.sentence.contains("write-direct was not steady: it fell from"), "{}", found.sentence);
        assert!(found.evidence.iter().any(|line| line.contains("61%")), "{:?}", found.evidence);
        let mut document = fixture::virtual_machine();
        document.targets[6].sides.quality.ramp_seconds = Some(2.0);
        assert_eq!(judged(&document).unwrap().severity, Severity::Info);
        document.targets[6].sides.quality.ramp_seconds = None;
        assert!(judged(&document).is_some(), "never settled");
        document.targets[6].sides.quality.rate_variation = None;
        assert!(judged(&document).is_none(), "cannot be read");
    }

    #[test]
    fn no_rate_falls_by_more_than_all_of_it() {
        let mut document = fixture::virtual_machine();
        for (slope, words) in [(-3.39, " to 0 a second"), (3.39, "rose from about 0 to ")] {
            document.targets[6].sides.quality.rate_slope = Some(slope);
            let sentence = judged(&document).unwrap().sentence;
            assert!(sentence.contains(words) && !sentence.contains("339"), "{sentence}");
        }
    }
}

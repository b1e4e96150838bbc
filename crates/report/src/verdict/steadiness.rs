//! Whether the rate of a phase had settled: slope, variation and ramp.

use plumb_measure::Quality;
use plumb_path::Severity;

use super::Verdict;
use super::evidence::Evidence;
use crate::quantity::{duration, percent};

/// SNIA PTS 2.0.2 asks that the fitted line stays within this share of the mean.
const SLOPE_FROM: f64 = 0.1;
/// The coefficient of variation over 100 ms from which a mean hides more than it says.
const VARIATION_ABOVE: f64 = 0.3;
/// A ramp that takes more than this share of the window.
const RAMP_SHARE: f64 = 1.0 / 3.0;
/// Shorter windows have too few buckets for a slope.
const SECONDS_MIN: f64 = 1.0;

/// `not-steady`: the rate drifted over the window.
pub(super) fn not_steady(evidence: &Evidence<'_>) -> Option<Verdict> {
    let drifting = list(evidence, |_, quality| quality.rate_slope.filter(|slope| slope.abs() >= SLOPE_FROM));
    let (name, slope) = worst(&drifting)?;
    let direction = if slope < 0.0 { "fell" } else { "rose" };
    Some(Verdict {
        id: "not-steady",
        severity: Severity::Info,
        sentence: format!("The rate of {name} {direction} by {} over its window.", percent(slope.abs())),
        evidence: drifting.iter().map(|(name, slope)| format!("{name}: slope {}", percent(*slope))).collect(),
        remedy: "A mean of a drifting rate depends on when one looks. Run longer, until the rate has settled.",
    })
}

/// `noisy`: the rate varied much from one tenth of a second to the next.
pub(super) fn noisy(evidence: &Evidence<'_>) -> Option<Verdict> {
    let varying =
        list(evidence, |_, quality| quality.rate_variation.filter(|variation| *variation > VARIATION_ABOVE));
    let (name, variation) = worst(&varying)?;
    Some(Verdict {
        id: "noisy",
        severity: Severity::Info,
        sentence: format!("The rate of {name} varied by {} from one 100 ms to the next.", percent(variation)),
        evidence: varying
            .iter()
            .map(|(name, value)| format!("{name}: variation {}", percent(*value)))
            .collect(),
        remedy: "Look at the percentiles rather than the mean, and compare repeated runs before drawing conclusions.",
    })
}

/// `ramp`: the rate took long to settle, or never did.
pub(super) fn ramp(evidence: &Evidence<'_>) -> Option<Verdict> {
    let settling = list(evidence, |seconds, quality| match (quality.ramp_seconds, quality.rate_variation) {
        (Some(ramp), _) if ramp > RAMP_SHARE * seconds => Some(ramp),
        (None, Some(_)) => Some(f64::INFINITY),
        _ => None,
    });
    let (name, ramp) = worst(&settling)?;
    let words = |ramp: f64| match ramp {
        ramp if ramp.is_finite() => format!("needed {} to settle", duration(ramp)),
        _ => "did not settle in its window".to_owned(),
    };
    Some(Verdict {
        id: "ramp",
        severity: Severity::Info,
        sentence: format!("The rate of {name} {}.", words(ramp)),
        evidence: settling.iter().map(|(name, ramp)| format!("{name}: {}", words(*ramp))).collect(),
        remedy: "The start of a window is part of its mean. Run longer, or warm the path up first.",
    })
}

/// The phases of some length for which `of` gives a figure.
fn list<'a>(evidence: &'a Evidence<'_>, of: impl Fn(f64, &Quality) -> Option<f64>) -> Vec<(&'a str, f64)> {
    let long = evidence.phases.iter().filter(|phase| phase.seconds >= SECONDS_MIN);
    long.filter_map(|phase| Some((phase.name.as_str(), of(phase.seconds, phase.quality)?))).collect()
}

fn worst<'a>(figures: &[(&'a str, f64)]) -> Option<(&'a str, f64)> {
    figures.iter().copied().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_steady_run_has_no_remark() {
        let document = fixture::virtual_machine();
        assert!(
            not_steady(&Evidence::of(&document)).is_none()
                && noisy(&Evidence::of(&document)).is_none()
                && ramp(&Evidence::of(&document)).is_none()
        );
    }

    #[test]
    fn drift_noise_and_ramps_are_notes() {
        let document = fixture::document("raid-eight-disks");
        assert!(not_steady(&Evidence::of(&document)).unwrap().sentence.contains("write-direct fell by 31%"));
        assert!(noisy(&Evidence::of(&document)).unwrap().sentence.contains("61%"));
        let mut document = fixture::virtual_machine();
        document.targets[6].sides.quality.ramp_seconds = Some(2.0);
        assert_eq!(ramp(&Evidence::of(&document)).unwrap().severity, Severity::Info);
        document.targets[6].sides.quality.ramp_seconds = None;
        assert!(ramp(&Evidence::of(&document)).is_some(), "never settled");
        document.targets[6].sides.quality.rate_variation = None;
        assert!(ramp(&Evidence::of(&document)).is_none(), "cannot be read");
    }
}

//! A load's progress in one line, for where there is no terminal to draw on.

use super::sample::{LiveSample, Rates, rates};
use crate::printable::printable;
use crate::quantity::{duration, mebibytes, rate};

/// More targets than this are told as one.
const TARGETS_MAX: usize = 3;

/// Where a load stands at `now`, with its rates since `before` (or since its start): without a line's end.
pub fn line(before: Option<&LiveSample>, now: &LiveSample) -> String {
    let mut parts = vec![format!("{} {}", now.phase.words(), clock(now))];
    let known: Vec<(usize, Rates)> =
        (0..now.targets.len()).filter_map(|index| Some((index, rates(before, now, index)?))).collect();
    if known.len() > TARGETS_MAX {
        let sum = |of: fn(&Rates) -> f64| known.iter().map(|(_, rates)| of(rates)).sum::<f64>();
        parts.push(format!(
            "{} targets: {} IOPS, {} MiB/s",
            known.len(),
            rate(sum(|rates| rates.iops)),
            mebibytes(sum(|rates| rates.bytes))
        ));
    } else {
        parts.extend(known.iter().map(|(index, rates)| target(now, *index, rates)));
    }
    parts.join("; ")
}

/// `12 s of 30 s`, or `12 s` where the end is not known.
pub(super) fn clock(sample: &LiveSample) -> String {
    let elapsed = duration(sample.elapsed.max(0.0).round());
    match sample.expected {
        Some(expected) if expected.is_finite() => format!("{elapsed} of {}", duration(expected.round())),
        _ => elapsed,
    }
    .replace("0 ns", "0 s")
}

fn target(sample: &LiveSample, index: usize, rates: &Rates) -> String {
    let target = &sample.targets[index];
    let mut text =
        format!("{}: {} IOPS, {} MiB/s", printable(&target.name), rate(rates.iops), mebibytes(rates.bytes));
    if let (Some(p50), Some(p99)) = (target.application.p50, target.application.p99) {
        text.push_str(&format!(", p50 {}, p99 {}", duration(p50), duration(p99)));
    }
    if rates.flushes > 0.0 {
        text.push_str(&format!(", {} flushes/s", rate(rates.flushes)));
    }
    if let Some(storage) = &rates.storage {
        text.push_str(&format!(" (storage {} IOPS, {} MiB/s)", rate(storage.iops), mebibytes(storage.bytes)));
    }
    text
}

//! Percentiles of latencies, for each of several targets and for all together.

use plumb_load::{LoadOutcome, SpanResult};

use super::super::measured::{Ranks, Side};
use super::page::Page;

/// Rows, each with its percentile in parts of 1,000,000,000.
const ROWS: [(&str, u64); 15] = [
    ("min", 0),
    ("25th", 250_000_000),
    ("50th", 500_000_000),
    ("75th", 750_000_000),
    ("90th", 900_000_000),
    ("95th", 950_000_000),
    ("99th", 990_000_000),
    ("3-nines", 999_000_000),
    ("4-nines", 999_900_000),
    ("5-nines", 999_990_000),
    ("6-nines", 999_999_000),
    ("7-nines", 999_999_900),
    ("8-nines", 999_999_990),
    ("9-nines", 999_999_999),
    ("max", 1_000_000_000),
];

pub(super) fn charts(result: &SpanResult, page: &mut Page) {
    if result.targets.len() > 1 {
        for (place, target) in result.targets.iter().enumerate() {
            page.line(&format!("\nLatency distribution: {}", target.name));
            chart(&result.of_target(place), page);
        }
    }
    page.line("\nTotal latency distribution:");
    chart(&result.total(), page);
}

fn chart(outcome: &LoadOutcome, page: &mut Page) {
    let sides = [Side::Read, Side::Write, Side::Total].map(|side| side.direction(outcome));
    let ranks = sides.each_ref().map(|direction| Ranks::from_histogram(&direction.latency));
    page.line("  %-ile |  Read (ms) | Write (ms) | Total (ms)");
    page.line("----------------------------------------------");
    for (name, parts) in ROWS {
        let figures = ranks.each_ref().map(|ranks| match ranks.at(parts) {
            Some(ms) => format!("{ms:>10.3}"),
            None => format!("{:>10}", "N/A"),
        });
        page.line(&format!("{name:>7} | {}", figures.join(" | ")));
    }
}

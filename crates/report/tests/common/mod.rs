//! Sample documents for tests, with distributions and time series that match their figures.

use std::path::PathBuf;

use plumb_block::Nanos;
use plumb_measure::run::TimeseriesRow;
use plumb_measure::{Histogram, Latency};
use plumb_report::document::Part;
use plumb_report::document::proof::{TimelineItem, WindowResult};
use plumb_report::{ProofDocument, RunDocument, RunRecording, verdict};

/// Names of all samples.
pub(crate) const NAMES: [&str; 7] =
    ["virtual-machine", "raid-eight-disks", "tmpfs", "interrupted", "denied", "hard-drive", "no-storage"];

/// Returns a sample as in its file.
pub(crate) fn recorded(name: &str) -> serde_json::Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns a sample without verdicts.
pub(crate) fn document(name: &str) -> RunDocument {
    RunDocument::from_json(&recorded(name).to_string()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns a sample with its verdicts, distributions and time series.
pub(crate) fn recording(name: &str) -> RunRecording {
    let mut document = document(name);
    verdict::conclude(&mut document, Vec::new());
    let mut recording = RunRecording::without_distributions(document);
    for (kept, target) in recording.targets.iter_mut().zip(&recording.document.targets) {
        let sides = &target.sides;
        let parts = [
            (Part::Read, &sides.read.latency),
            (Part::Write, &sides.write.latency),
            (Part::Trim, &sides.trim.latency),
            (Part::Sync, &sides.sync.latency),
            (Part::Durable, &sides.durable_latency),
        ];
        for (part, latency) in parts {
            kept.histograms.extend(latency.as_ref().map(|latency| (part, histogram(latency))));
        }
        let side = &sides.application;
        kept.series = points(side.operations, side.seconds);
    }
    recording
}

/// Returns a distribution with approximately these percentiles, interpolated on a logarithmic scale.
fn histogram(latency: &Latency) -> Histogram {
    let knots = [
        (0.0, Some(latency.min)),
        (0.25, latency.p25),
        (0.5, latency.p50),
        (0.75, latency.p75),
        (0.99, latency.p99),
        (0.999, latency.p999),
        (1.0, Some(latency.max)),
    ];
    let knots: Vec<(f64, f64)> = knots.iter().filter_map(|(share, at)| Some((*share, (*at)?))).collect();
    let count = latency.count.min(20_000);
    let mut histogram = Histogram::new();
    for index in 0..count {
        let share = (index as f64 + 0.5) / count as f64;
        let upper = knots.iter().position(|knot| knot.0 >= share).unwrap_or(knots.len() - 1).max(1);
        let (low, high) = (knots[upper - 1], knots[upper]);
        let part = (share - low.0) / (high.0 - low.0);
        let seconds = (low.1.ln() + part * (high.1.ln() - low.1.ln())).exp();
        histogram.record(Nanos((seconds * 1e9) as u64));
    }
    histogram
}

/// Returns a series that varies by a tenth around its mean, after a slower first bucket.
fn points(operations: u64, seconds: f64) -> Vec<TimeseriesRow> {
    let buckets = (seconds * 10.0).round() as u64;
    (0..buckets)
        .map(|bucket| {
            let swing =
                1.0 + 0.1 * ((bucket * 7919) % 17) as f64 / 17.0 - if bucket == 0 { 0.4 } else { 0.05 };
            let operations = (operations as f64 / buckets as f64 * swing) as u64;
            TimeseriesRow {
                at: Nanos::millis(100) * bucket,
                operations,
                bytes: operations * 8192,
                latency_mean: (operations > 0).then_some(50e-6),
                latency_max: (operations > 0).then_some(300e-6),
                ..TimeseriesRow::default()
            }
        })
        .collect()
}

/// Names of all samples of loads.
pub(crate) const LOADS: [&str; 5] = ["cache-or-disk", "side-by-side", "all-wrong", "many-writers", "denied"];

/// Returns a sample of a load with its verdicts, distributions and time series.
pub(crate) fn load_recording(name: &str) -> RunRecording {
    recording(&format!("load/{name}"))
}

/// Names of all samples of proofs.
pub(crate) const PROOFS: [&str; 4] = ["lost", "proved", "stopped", "large"];

/// Returns a sample of a proof. `large` is `lost` with 300 items around the cut, and 10,000 windows.
pub(crate) fn proof(name: &str) -> ProofDocument {
    let file = if name == "large" { "lost" } else { name };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/samples/proof/{file}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut document: ProofDocument =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if name == "large" {
        let windows = document.windows.clone();
        document.windows = (0..10_000)
            .map(|at| WindowResult { from: at as f64, until: at as f64 + 1.0, ..windows[at % 40].clone() })
            .collect();
        document.windows[7_777].failing = 3;
        for failure in &mut document.failures {
            let mut items = std::mem::take(&mut failure.minimal.timeline);
            let moved = |item: &TimelineItem, at: usize| TimelineItem {
                from: item.from + at as f64,
                until: item.until.map(|until| until + at as f64),
                ..item.clone()
            };
            items = (0..20)
                .flat_map(|at| items.iter().map(move |item| moved(item, at)).collect::<Vec<_>>())
                .collect();
            failure.minimal.at += 19.0;
            failure.minimal.timeline = items;
        }
    }
    document
}

//! Prometheus' text format, for node_exporter's textfile collector: base units, HELP and TYPE, no timestamps.
//!
//! Bucket edges are those of etcd's disk histograms, 0.001 s times powers of two up to 8.192 s, so that both can stand
//! in one panel, continued downwards by halving to about 1 µs for drives that are faster.

use plumb_measure::Histogram;
use plumb_path::Severity;

use crate::recording::CheckRecording;
use crate::wording;

/// The exponents of the edges: 0.001 s times two to these.
const EXPONENTS: std::ops::RangeInclusive<i32> = -10..=13;

/// The metrics of a recording. The caller writes them to a temporary file and renames it.
pub fn metrics(recording: &CheckRecording) -> String {
    let document = &recording.document;
    let target = document.target.as_str();
    let mut out = Metrics::default();
    let environment = &document.environment;
    out.family("plumb_check_info", "gauge", "What was checked and by which version.");
    out.sample(
        "plumb_check_info",
        &[
            ("target", target),
            ("version", &environment.plumb),
            ("kernel", environment.kernel.as_deref().unwrap_or("")),
            ("engine", &environment.engine),
        ],
        1.0,
    );
    out.family("plumb_check_complete", "gauge", "Whether every phase of the check ran.");
    out.sample("plumb_check_complete", &[("target", target)], f64::from(u8::from(document.complete)));
    out.family("plumb_check_findings", "gauge", "Findings of the check by severity.");
    for severity in [Severity::Info, Severity::Warning, Severity::Danger] {
        let count = document.verdicts.iter().filter(|finding| finding.severity == severity).count();
        let labels = [("target", target), ("severity", wording::severity(severity))];
        out.sample("plumb_check_findings", &labels, count as f64);
    }
    if !document.verdicts.is_empty() {
        out.family("plumb_check_finding", "gauge", "One for each finding of the check.");
    }
    for finding in &document.verdicts {
        let severity = wording::severity(finding.severity);
        out.sample(
            "plumb_check_finding",
            &[("target", target), ("id", &finding.id), ("severity", severity)],
            1.0,
        );
    }
    durable_writes(&mut out, recording);
    loads(&mut out, recording);
    out.text
}

fn durable_writes(out: &mut Metrics, recording: &CheckRecording) {
    let document = &recording.document;
    let target = document.target.as_str();
    let measured: Vec<_> = document.sync.iter().filter(|result| result.operations > 0).collect();
    let labels = |method| [("target", target), ("method", wording::method(method))];
    if measured.is_empty() {
        return;
    }
    out.family("plumb_durable_write_operations", "gauge", "Durable writes in the window of the method.");
    for result in &measured {
        out.sample("plumb_durable_write_operations", &labels(result.method), result.operations as f64);
    }
    let known: Vec<_> =
        measured.iter().filter_map(|result| Some((result.method, result.device_flushes?))).collect();
    if !known.is_empty() {
        out.family(
            "plumb_durable_write_device_flushes",
            "gauge",
            "Flushes at the devices in the window of the method.",
        );
    }
    for (method, flushes) in known {
        out.sample("plumb_durable_write_device_flushes", &labels(method), flushes as f64);
    }
    let distributions: Vec<_> = measured
        .iter()
        .filter_map(|result| Some((result.method, recording.histograms.get(wording::method(result.method))?)))
        .collect();
    if !distributions.is_empty() {
        let help = "Time until a write was durable: write and sync together.";
        out.family("plumb_durable_write_duration_seconds", "histogram", help);
    }
    for (method, histogram) in distributions {
        out.histogram("plumb_durable_write_duration_seconds", &labels(method), histogram);
    }
}

fn loads(out: &mut Metrics, recording: &CheckRecording) {
    let document = &recording.document;
    let target = document.target.as_str();
    let sides: Vec<_> = document
        .io
        .iter()
        .flat_map(|io| {
            let application =
                io.application.as_ref().map(|side| ("application", side.iops, side.bytes_per_second));
            let storage = io.storage.as_ref().map(|side| ("storage", side.iops, side.bytes_per_second));
            [application, storage].into_iter().flatten().map(|side| (io.name.as_str(), side))
        })
        .collect();
    if !sides.is_empty() {
        out.family(
            "plumb_load_operations_per_second",
            "gauge",
            "Operations per second of a load, seen from each side.",
        );
    }
    for (load, (side, iops, _)) in &sides {
        out.sample(
            "plumb_load_operations_per_second",
            &[("target", target), ("load", load), ("side", side)],
            *iops,
        );
    }
    if !sides.is_empty() {
        out.family(
            "plumb_load_bytes_per_second",
            "gauge",
            "Bytes per second of a load, seen from each side.",
        );
    }
    for (load, (side, _, bytes)) in &sides {
        out.sample(
            "plumb_load_bytes_per_second",
            &[("target", target), ("load", load), ("side", side)],
            *bytes,
        );
    }
    let distributions: Vec<_> = document
        .io
        .iter()
        .filter_map(|io| Some((io.name.as_str(), recording.histograms.get(&io.name)?)))
        .collect();
    if !distributions.is_empty() {
        out.family("plumb_load_duration_seconds", "histogram", "Service time of the operations of a load.");
    }
    for (load, histogram) in distributions {
        out.histogram("plumb_load_duration_seconds", &[("target", target), ("load", load)], histogram);
    }
}

#[derive(Default)]
struct Metrics {
    text: String,
}

impl Metrics {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        self.text.push_str(&format!("{name}{{{}}} {value}\n", labels.join(",")));
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut bins = histogram.bins().peekable();
        let mut seen = 0_u64;
        for exponent in EXPONENTS {
            let edge = 1e-3 * f64::from(exponent).exp2();
            while let Some((_, count)) = bins.next_if(|(value, _)| value.as_secs_f64() <= edge) {
                seen = seen.saturating_add(count);
            }
            let edge = edge_text(exponent);
            self.bucket(name, labels, &edge, seen);
        }
        self.bucket(name, labels, "+Inf", histogram.count());
        self.sample(&format!("{name}_sum"), labels, histogram.sum_ns() as f64 / 1e9);
        self.sample(&format!("{name}_count"), labels, histogram.count() as f64);
    }

    fn bucket(&mut self, name: &str, labels: &[(&str, &str)], edge: &str, count: u64) {
        let mut labels = labels.to_vec();
        labels.push(("le", edge));
        self.sample(&format!("{name}_bucket"), &labels, count as f64);
    }
}

/// An edge as etcd prints it: `0.001`, `8.192`; the exact decimal for the smaller ones.
fn edge_text(exponent: i32) -> String {
    let edge = 1e-3 * f64::from(exponent).exp2();
    if exponent >= 0 { format!("{}", (edge * 1e3).round() / 1e3) } else { format!("{edge}") }
}

/// A label's value: backslash, quote and line feed escaped, as the format asks.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use plumb_block::Nanos;

    use super::*;

    #[test]
    fn the_edges_are_those_of_etcd_from_a_millisecond_up() {
        let edges: Vec<String> = (0..=13).map(edge_text).collect();
        let etcd = "0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192";
        assert_eq!(edges.join(" "), etcd);
        assert_eq!(edge_text(-10), "0.0000009765625");
    }

    #[test]
    fn buckets_are_cumulative_and_the_last_is_the_count() {
        let mut histogram = Histogram::new();
        for value in [500, 1_500_000, 9_000_000_000] {
            histogram.record(Nanos(value));
        }
        let mut out = Metrics::default();
        out.histogram("x_seconds", &[("target", "a\"b\\c")], &histogram);
        assert!(out.text.contains(r#"x_seconds_bucket{target="a\"b\\c",le="0.001"} 1"#), "{}", out.text);
        assert!(out.text.contains(r#"le="0.002"} 2"#) && out.text.contains(r#"le="8.192"} 2"#));
        assert!(
            out.text.contains(r#"le="+Inf"} 3"#)
                && out.text.contains("x_seconds_count{target=\"a\\\"b\\\\c\"} 3")
        );
    }
}

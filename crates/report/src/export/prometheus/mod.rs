//! Prometheus' text format, for node_exporter's textfile collector: base units, HELP and TYPE, no timestamps.
//!
//! Bucket edges are those of etcd's disk histograms, 0.001 s times powers of two up to 8.192 s, so that both can stand
//! in one panel, continued downwards by halving to about 1 µs for drives that are faster.

mod check;
mod load;

use plumb_measure::Histogram;
use plumb_path::{Finding, Severity};

pub use check::check;
pub use load::load;

use crate::wording;

/// The exponents of the edges: 0.001 s times two to these.
const EXPONENTS: std::ops::RangeInclusive<i32> = -10..=13;

#[derive(Debug, Default)]
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

    /// The findings of a run, each and by severity. `family` is `plumb_check` or `plumb_load`.
    fn findings(&mut self, family: &str, labels: &[(&str, &str)], findings: &[Finding]) {
        let counts = format!("{family}_findings");
        self.family(&counts, "gauge", "Findings by severity.");
        for severity in [Severity::Info, Severity::Warning, Severity::Danger] {
            let count = findings.iter().filter(|finding| finding.severity == severity).count();
            let labels = [labels, &[("severity", wording::severity(severity))]].concat();
            self.sample(&counts, &labels, count as f64);
        }
        let each = format!("{family}_finding");
        if !findings.is_empty() {
            self.family(&each, "gauge", "One for each finding.");
        }
        for finding in findings {
            let own = [("id", finding.id.as_str()), ("severity", wording::severity(finding.severity))];
            self.sample(&each, &[labels, &own].concat(), 1.0);
        }
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

//! Prometheus' text format, for node_exporter's textfile collector: base units, HELP and TYPE, no timestamps.
//!
//! Bucket edges are those of etcd's disk histograms, 0.001 s times powers of two up to 8.192 s, so that both can stand
//! in one panel, continued downwards by halving to about 1 µs for drives that are faster.

use plumb_measure::Histogram;
use plumb_path::{Finding, Severity};

use crate::document::{Part, RunDocument, RunRecording, RunTarget, Sides};
use crate::{sentences, wording};

/// The exponents of the edges: 0.001 s times two to these.
const EXPONENTS: std::ops::RangeInclusive<i32> = -10..=13;

/// The metrics of a recording. The caller writes them to a temporary file and renames it.
pub fn prometheus(recording: &RunRecording) -> String {
    let document = &recording.document;
    let mut out = Metrics::default();
    head(&mut out, document);
    let (methods, loads): (Vec<Measured<'_>>, Vec<Measured<'_>>) = measured(document);
    durable_writes(&mut out, recording, &methods);
    for figure in FIGURES {
        figure.put(&mut out, &loads);
    }
    errors(&mut out, &loads);
    histograms(&mut out, recording, &loads);
    out.text
}

/// A target with its place in the document and the labels of its metrics.
struct Measured<'a> {
    index: usize,
    target: &'a RunTarget,
    labels: Vec<(&'static str, String)>,
}

impl Measured<'_> {
    fn labels<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = self.labels.iter().map(|(name, value)| (*name, value.as_str()));
        own.chain(more.iter().copied()).collect()
    }
}

/// The targets that measure what a durable write costs, and the others. All phases of a check have one target, so their
/// names are labels of their own.
fn measured(document: &RunDocument) -> (Vec<Measured<'_>>, Vec<Measured<'_>>) {
    let all = document.labels().into_iter().zip(&document.targets).enumerate();
    let ran = all.filter(|(_, (_, target))| target.failed_because.is_none());
    ran.map(|(index, (label, target))| {
        let what = if sentences::is_method(document, target) { "method" } else { "load" };
        let labels = match document.is_check() {
            true => vec![("target", target.name.clone()), (what, label)],
            false => vec![("target", label)],
        };
        Measured { index, target, labels }
    })
    .partition(|measured| sentences::is_method(document, measured.target))
}

fn head(out: &mut Metrics, document: &RunDocument) {
    let environment = &document.environment;
    let names = document.names().join(", ");
    let (family, of_run, engine) = match document.is_check() {
        true => ("plumb_check", vec![("target", names.as_str())], environment.engine.as_deref()),
        false => ("plumb_load", Vec::new(), None),
    };
    let kernel = environment.kernel.as_deref().unwrap_or("");
    let mut info = of_run.clone();
    info.extend([("version", environment.plumb.as_str()), ("kernel", kernel)]);
    info.extend(engine.map(|engine| ("engine", engine)));
    out.family(&format!("{family}_info"), "gauge", "What was measured and by which version.");
    out.sample(&format!("{family}_info"), &info, 1.0);
    out.family(&format!("{family}_complete"), "gauge", "Whether the run came to its end.");
    out.sample(&format!("{family}_complete"), &of_run, f64::from(u8::from(document.complete)));
    out.family(&format!("{family}_window_seconds"), "gauge", "How long was measured.");
    out.sample(&format!("{family}_window_seconds"), &of_run, document.duration);
    out.findings(family, &of_run, &document.verdicts);
}

fn durable_writes(out: &mut Metrics, recording: &RunRecording, methods: &[Measured<'_>]) {
    let mut family = |name: &str, help: &str, of: &dyn Fn(&Sides) -> Option<u64>| {
        let known = methods.iter().filter_map(|method| Some((method, of(&method.target.sides)?)));
        out.each(name, "gauge", help, known, |out, (method, value)| {
            out.sample(name, &method.labels(&[]), value as f64);
        });
    };
    let operations = |sides: &Sides| Some(sides.application.operations);
    family("plumb_durable_write_operations", "Durable writes in the window of the method.", &operations);
    let flushes = |sides: &Sides| sides.storage.as_ref()?.flushes;
    let help = "Flushes at the devices in the window of the method.";
    family("plumb_durable_write_device_flushes", help, &flushes);
    let name = "plumb_durable_write_duration_seconds";
    let kept =
        methods.iter().filter_map(|method| Some((method, recording.histogram(method.index, Part::Durable)?)));
    let help = "Time until a write was durable: write and sync together.";
    out.each(name, "histogram", help, kept, |out, (method, histogram)| {
        out.histogram(name, &method.labels(&[]), histogram);
    });
}

/// A figure of each target, seen from one side or both.
struct Figure {
    name: &'static str,
    help: &'static str,
    /// The sides with their values; what is not known is left out.
    of: fn(&Sides) -> Vec<(&'static str, f64)>,
}

const FIGURES: [Figure; 5] = [
    Figure {
        name: "plumb_load_operations_per_second",
        help: "Operations per second of a target, seen from each side.",
        of: |sides| {
            let storage = sides.storage.iter().map(|storage| ("storage", storage.iops));
            storage.chain([("application", sides.application.iops)]).collect()
        },
    },
    Figure {
        name: "plumb_load_bytes_per_second",
        help: "Bytes per second of a target, seen from each side.",
        of: |sides| {
            let storage = sides.storage.iter().map(|storage| ("storage", storage.bytes_per_second));
            storage.chain([("application", sides.application.bytes_per_second)]).collect()
        },
    },
    Figure {
        name: "plumb_load_flushes",
        help: "Flushes in the window: asked for by the load, and handed to the devices.",
        of: |sides| {
            let storage = sides.storage.iter().filter_map(|storage| storage.flushes);
            storage
                .map(|flushes| ("storage", flushes as f64))
                .chain([("application", sides.sync.ios as f64)])
                .collect()
        },
    },
    Figure {
        name: "plumb_load_in_flight",
        help: "Mean requests in flight.",
        of: |sides| sides.application.in_flight_mean.map(|mean| ("application", mean)).into_iter().collect(),
    },
    Figure {
        name: "plumb_load_wrong_blocks",
        help: "Blocks that do not hold what was written, where that was verified.",
        of: |sides| sides.verified.iter().map(|verified| ("application", verified.wrong() as f64)).collect(),
    },
];

impl Figure {
    fn put(&self, out: &mut Metrics, loads: &[Measured<'_>]) {
        let sides = loads.iter().flat_map(|load| {
            (self.of)(&load.target.sides).into_iter().map(move |(side, value)| (load, side, value))
        });
        let known = sides.filter(|(.., value)| value.is_finite());
        out.each(self.name, "gauge", self.help, known, |out, (load, side, value)| {
            out.sample(self.name, &load.labels(&[("side", side)]), value);
        });
    }
}

fn errors(out: &mut Metrics, loads: &[Measured<'_>]) {
    let name = "plumb_load_errors";
    let used =
        loads.iter().flat_map(|load| load.target.sides.used().into_iter().map(move |used| (load, used)));
    out.each(name, "gauge", "Operations that failed.", used, |out, (load, (direction, result))| {
        out.sample(name, &load.labels(&[("direction", direction)]), result.errors as f64);
    });
}

fn histograms(out: &mut Metrics, recording: &RunRecording, loads: &[Measured<'_>]) {
    let name = "plumb_load_duration_seconds";
    let kept = loads.iter().flat_map(|load| {
        let of_part = move |part| Some((load, part, recording.histogram(load.index, part)?));
        Part::ALL.into_iter().filter_map(of_part)
    });
    let help = "Time of the operations of a target, by what was timed.";
    out.each(name, "histogram", help, kept, |out, (load, part, histogram)| {
        out.histogram(name, &load.labels(&[("operation", part.name())]), histogram);
    });
}

#[derive(Debug, Default)]
struct Metrics {
    text: String,
}

impl Metrics {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// A family with what `put` says of each; without any there is no family.
    fn each<T>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        all: impl Iterator<Item = T>,
        put: impl Fn(&mut Self, T),
    ) {
        let mut all = all.peekable();
        if all.peek().is_some() {
            self.family(name, kind, help);
        }
        all.for_each(|one| put(self, one));
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

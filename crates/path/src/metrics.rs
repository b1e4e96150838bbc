//! Prometheus' text format, as node_exporter's textfile collector reads it: HELP and TYPE, no timestamps.
//! Names end in base units.

use crate::finding::{Finding, Severity};

/// Metrics as text, family by family.
#[derive(Debug, Default)]
pub struct Metrics {
    text: String,
}

impl Metrics {
    /// Adds a family of gauges or counters: the labels of each sample, and its value.
    pub fn family<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (impl AsRef<[(&'a str, &'a str)]>, f64)>,
    ) {
        self.begin(name, kind_of(name), help);
        samples.into_iter().for_each(|(labels, value)| self.sample(name, labels.as_ref(), value));
    }

    /// Adds a family as [`Self::family`] does; without samples there is none.
    pub fn known<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (impl AsRef<[(&'a str, &'a str)]>, f64)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_some() {
            self.family(name, help, samples);
        }
    }

    /// Begins a family. `kind` is what its TYPE says: `gauge`, `counter`, `histogram` or `summary`.
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        self.text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Adds a family with what `put` says of each; without any there is no family.
    pub fn each<T>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        all: impl Iterator<Item = T>,
        put: impl Fn(&mut Self, T),
    ) {
        let mut all = all.peekable();
        if all.peek().is_some() {
            self.begin(name, kind, help);
        }
        all.for_each(|one| put(self, one));
    }

    /// A sample of the family that was begun last, or one of its parts: `NAME_sum`.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.text.push_str(&format!("{name}{labels} {value}\n"));
    }

    /// The findings, each and by severity. `family` is what the names of both families begin with:
    /// `plumb_check`.
    pub fn findings(&mut self, family: &str, labels: &[(&str, &str)], findings: &[Finding]) {
        let counts = [Severity::Info, Severity::Warning, Severity::Danger].map(|severity| {
            let count = findings.iter().filter(|finding| finding.severity == severity).count();
            ([labels, &[("severity", severity.word())]].concat(), count as f64)
        });
        self.family(&format!("{family}_findings"), "Findings by severity.", counts);
        // Two findings of one rule may differ in their sentences alone, and a sample may stand only once.
        let is_first = |(place, finding): &(usize, &Finding)| {
            let is_same = |other: &Finding| (&other.id, other.severity) == (&finding.id, finding.severity);
            !findings[..*place].iter().any(is_same)
        };
        let once = findings.iter().enumerate().filter(is_first).map(|(_, finding)| {
            let own = [("id", finding.id.as_str()), ("severity", finding.severity.word())];
            ([labels, &own].concat(), 1.0)
        });
        self.known(&format!("{family}_finding"), "One for each finding.", once);
    }

    /// Returns all of it. The caller writes it to a temporary file and renames that.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Returns the type of the metric family `name`, which follows from the name: a counter ends in `_total`.
fn kind_of(name: &str) -> &'static str {
    if name.ends_with("_total") { "counter" } else { "gauge" }
}

/// Returns a label's value: backslash, quote and line feed escaped, as the format asks.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_label_holds_stays_in_its_line() {
        let mut out = Metrics::default();
        out.family("a_total", "Some.", [(vec![("path", "x\n\"\\")], 1.0), (Vec::new(), 0.5)]);
        out.known("b", "None.", [([], 0.5); 0]);
        let expected =
            "# HELP a_total Some.\n# TYPE a_total counter\na_total{path=\"x\\n\\\"\\\\\"} 1\na_total 0.5\n";
        assert_eq!(out.into_text(), expected);
    }
}

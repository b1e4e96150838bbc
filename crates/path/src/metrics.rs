//! Prometheus' text format as node_exporter's textfile collector reads it: with HELP and TYPE, without
//! timestamps. Names end in base units.

use crate::finding::{Finding, Severity};

/// Builder for metrics, one family after the other.
#[derive(Debug, Default)]
pub struct Metrics {
    text: String,
}

impl Metrics {
    /// Adds a family of gauges or counters; each sample has labels and a value.
    pub fn family<'a>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (impl AsRef<[(&'a str, &'a str)]>, f64)>,
    ) {
        self.begin(name, kind_of(name), help);
        samples.into_iter().for_each(|(labels, value)| self.sample(name, labels.as_ref(), value));
    }

    /// Adds a family as [`Self::family`] does, but omits a family without samples.
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

    /// Starts a family. `kind` is its TYPE: `gauge`, `counter`, `histogram` or `summary`.
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        self.text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Adds a family with the samples that `put` adds for each item. Omits a family without items.
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

    /// Adds a sample of the current family, or of one of its parts: `NAME_sum`.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.text.push_str(&format!("{name}{labels} {value}\n"));
    }

    /// Adds each finding, and the number by severity. `family` is the prefix of both family names:
    /// `plumb_check`.
    pub fn findings(&mut self, family: &str, labels: &[(&str, &str)], findings: &[Finding]) {
        let counts = [Severity::Info, Severity::Warning, Severity::Danger].map(|severity| {
            let count = findings.iter().filter(|finding| finding.severity == severity).count();
            ([labels, &[("severity", severity.word())]].concat(), count as f64)
        });
        self.family(&format!("{family}_findings"), "Findings by severity.", counts);
        // Two findings of one rule may differ only in their sentences, but a sample must be unique.
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

    /// Returns the text. The caller writes it to a temporary file and renames that.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// Returns the type of the metric family `name`: a counter ends in `_total`.
fn kind_of(name: &str) -> &'static str {
    if name.ends_with("_total") { "counter" } else { "gauge" }
}

/// Escapes backslash, quote and line feed in a label's value, as the format requires.
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

//! One row for each figure: `section,name,metric,value,unit`, as RFC 4180 has it but with plain line ends.
//!
//! Sections are `sync`, `io` and `verdict`. Durations are seconds, sizes bytes, rates per second. What is not known
//! has no row.

use plumb_measure::{Latency, SyncResult};

use crate::recording::CheckRecording;
use crate::wording;

/// The rows of a recording, with a head.
pub fn rows(recording: &CheckRecording) -> String {
    let mut csv = Csv { text: "section,name,metric,value,unit\n".to_owned() };
    let document = &recording.document;
    for result in &document.sync {
        csv.sync(result);
    }
    for io in &document.io {
        let name = io.name.as_str();
        csv.number("io", name, "block", Some(io.block_bytes as f64), "bytes");
        csv.number("io", name, "depth", Some(f64::from(io.depth)), "requests");
        if let Some(side) = &io.application {
            csv.number("io", name, "application_operations", Some(side.operations as f64), "operations");
            csv.number("io", name, "application_errors", Some(side.errors as f64), "operations");
            csv.number("io", name, "application_window", Some(side.seconds), "seconds");
            csv.number("io", name, "application_iops", Some(side.iops), "operations/second");
            csv.number("io", name, "application_throughput", Some(side.bytes_per_second), "bytes/second");
            csv.number("io", name, "application_io_mean", side.io_bytes_mean, "bytes");
            csv.latency("io", name, "application_latency", side.latency.as_ref());
        }
        if let Some(side) = &io.storage {
            csv.number("io", name, "storage_iops", Some(side.iops), "operations/second");
            csv.number("io", name, "storage_throughput", Some(side.bytes_per_second), "bytes/second");
            csv.number("io", name, "storage_io_mean", side.io_bytes_mean, "bytes");
            csv.number("io", name, "storage_flushes", side.flushes.map(|flushes| flushes as f64), "flushes");
            csv.number("io", name, "storage_read", Some(side.read_bytes as f64), "bytes");
            csv.number("io", name, "storage_written", Some(side.write_bytes as f64), "bytes");
        }
        csv.number("io", name, "dirty_after", io.dirty_bytes_after.map(|dirty| dirty as f64), "bytes");
    }
    for finding in &document.verdicts {
        csv.row(["verdict", &finding.id, wording::severity(finding.severity), &finding.sentence, ""]);
    }
    csv.text
}

struct Csv {
    text: String,
}

impl Csv {
    fn sync(&mut self, result: &SyncResult) {
        let name = wording::method(result.method);
        self.number("sync", name, "operations", Some(result.operations as f64), "operations");
        self.number("sync", name, "window", Some(result.seconds), "seconds");
        self.latency("sync", name, "latency", result.latency.as_ref());
        self.latency("sync", name, "write_latency", result.write_latency.as_ref());
        self.latency("sync", name, "sync_latency", result.sync_latency.as_ref());
        self.number(
            "sync",
            name,
            "device_flushes",
            result.device_flushes.map(|flushes| flushes as f64),
            "flushes",
        );
        self.number("sync", name, "flushes_per_sync", result.flushes_per_sync, "flushes/operation");
    }

    fn latency(&mut self, section: &str, name: &str, metric: &str, latency: Option<&Latency>) {
        let Some(latency) = latency else { return };
        for (statistic, of) in crate::figures::STATISTICS {
            let statistic = statistic.replace("99.9", "999");
            self.number(section, name, &format!("{metric}_{statistic}"), Some(of(latency)), "seconds");
        }
    }

    fn number(&mut self, section: &str, name: &str, metric: &str, value: Option<f64>, unit: &str) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.row([section, name, metric, &value.to_string(), unit]);
        }
    }

    fn row(&mut self, fields: [&str; 5]) {
        let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        self.text.push_str(&fields.join(","));
        self.text.push('\n');
    }
}

/// A field, quoted where it must be; what a spreadsheet would take for a formula is kept as text.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '@', '+', '-']) && field.parse::<f64>().is_err();
    let field = if formula { format!("'{field}") } else { field.to_owned() };
    if field.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_row_has_five_fields() {
        for document in fixture::all() {
            let text = rows(&CheckRecording::without_distributions(document));
            for line in text.lines().filter(|line| !line.contains('"')) {
                assert_eq!(line.split(',').count(), 5, "{line}");
            }
        }
    }

    #[test]
    fn fields_are_quoted_and_formulas_defused() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=1+1"), "'=1+1");
        assert_eq!(quoted("-0.5"), "-0.5");
    }
}

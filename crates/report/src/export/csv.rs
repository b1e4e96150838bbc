//! CSV with one row for each figure, as in RFC 4180 but with plain line ends. The format is long instead of
//! wide, so that every figure has its unit and new ones change no column.
//!
//! The columns are `section,name,at_seconds,metric,value,unit`. Sections are `load` (all targets together),
//! `target`, for many hosts `host` (also its level, and the states of its disks), in a check `sync` and `io`,
//! `series` (one row for each figure of each bucket of time) and `verdict`. Durations are seconds, sizes
//! bytes, rates per second. Unknown values have no row. Devices that several targets share appear once, under
//! the names of all these targets. In other documents each value has a row.

use plumb_measure::Latency;
use plumb_measure::run::TimeseriesRow;
use plumb_path::{Finding, Layer};
use plumb_text::printable;
use serde::Deserialize;
use serde_json::Value;

use crate::document::{FleetDocument, RunDocument, RunRecording, Sides, Transactions};
use crate::figures::bucket_seconds;
use crate::quantity::NONE;
use crate::wording;

/// Returns the rows of a recording, with a head.
pub fn csv(recording: &RunRecording) -> String {
    let mut csv = Csv::default();
    let document = &recording.document;
    if !document.is_check() {
        csv.number("load", "", "duration", Some(document.duration), "seconds");
        csv.sides("load", "", &document.total);
        document.transactions.iter().for_each(|done| csv.transactions(done));
    }
    let labels = document.labels();
    for (index, label) in labels.iter().enumerate() {
        csv.target(document, index, label, document.storage_label(index, &labels).as_deref());
    }
    for (index, label) in labels.iter().enumerate() {
        csv.series(label, recording.series_of(index));
    }
    csv.verdicts(&document.verdicts);
    csv.text
}

/// Returns the rows of many hosts, with a head.
pub(crate) fn fleet(document: &FleetDocument) -> String {
    let mut csv = Csv::default();
    if let Some(total) = document.measured() {
        csv.sides("load", "", total);
    }
    for host in &document.hosts {
        let name = &host.name;
        csv.count("host", name, "ok", Some(u64::from(host.ok)), "");
        for (metric, value) in
            [("level", &host.level), ("headline", &host.headline), ("because", &host.because)]
        {
            if let Some(value) = value {
                csv.row(&["host", name, "", metric, value, ""]);
            }
        }
        for disk in host.disks() {
            csv.row(&["host", name, "", &format!("state_of_{}", disk.name), disk.state, ""]);
        }
        csv.number("host", name, "clock_error", host.clock_error, "seconds");
        csv.number("host", name, "start_late", host.start_late, "seconds");
        csv.number("host", name, "done_after", host.done_after, "seconds");
        if let Some(total) = &host.total {
            csv.sides("host", name, total);
        }
    }
    csv.verdicts(&document.verdicts);
    csv.text
}

/// Returns a row for each value of a document, with a head. The section is the part of the document, the name
/// that of the nearest object with one, and the metric the path from there. Names of the layers of a write
/// path begin with its target, since paths share layers.
pub(crate) fn values(document: &Value) -> String {
    let mut csv = Csv::default();
    csv.values(&Place::default(), document);
    csv.text
}

/// Place of a value in a document.
#[derive(Debug, Clone, Default)]
struct Place {
    section: String,
    /// Target of the enclosing write path; empty outside of one.
    target: String,
    name: String,
    metric: String,
}

impl Place {
    fn within(&self, step: &str, value: &Value) -> Self {
        let mut place = self.clone();
        let target = value["target"].as_str().filter(|_| value["layers"].is_array());
        target.into_iter().for_each(|target| target.clone_into(&mut place.target));
        let name = match (value["name"].as_str(), &*place.target) {
            (Some(name), "") => Some(name.to_owned()),
            (Some(name), target) => Some(format!("{target}: {name}")),
            (None, _) => target.map(str::to_owned),
        };
        match name {
            // An object with a name needs no path.
            Some(name) => (place.name, place.metric) = (name, String::new()),
            None if self.section.is_empty() && (value.is_object() || value.is_array()) => {}
            None if place.metric.is_empty() => step.clone_into(&mut place.metric),
            None => place.metric = format!("{}.{step}", place.metric),
        }
        if self.section.is_empty() && (value.is_object() || value.is_array()) {
            step.clone_into(&mut place.section);
        }
        place
    }
}

/// Unit of operations per second.
const RATE: &str = "operations/second";

/// Rows of six fields. The third, the time, is empty for figures of a whole window.
#[derive(Debug)]
struct Csv {
    text: String,
}

impl Default for Csv {
    /// Returns the head.
    fn default() -> Self {
        Self { text: "section,name,at_seconds,metric,value,unit\n".to_owned() }
    }
}

impl Csv {
    fn values(&mut self, place: &Place, value: &Value) {
        let Place { section, name, metric, .. } = place;
        match value {
            Value::Null => {}
            Value::Object(members) => {
                // Same word as in the table of a path. Layers without FUA have no row there.
                let fua = Layer::deserialize(value).ok().map(|layer| match wording::fua(&layer) {
                    NONE => Value::Null,
                    word => word.into(),
                });
                members.iter().for_each(|(key, value)| {
                    let value = fua.as_ref().filter(|_| key == "fua").unwrap_or(value);
                    self.values(&place.within(key, value), value);
                });
            }
            Value::Array(items) => {
                let all = items.iter().enumerate();
                all.for_each(|(number, value)| {
                    self.values(&place.within(&number.to_string(), value), value);
                });
            }
            Value::String(text) => self.row(&[section, name, "", metric, text, ""]),
            Value::Bool(_) | Value::Number(_) => {
                self.row(&[section, name, "", metric, &value.to_string(), ""]);
            }
        }
    }

    fn verdicts(&mut self, findings: &[Finding]) {
        for finding in findings {
            self.row(&["verdict", &finding.id, "", finding.severity.word(), &finding.sentence, ""]);
        }
    }

    fn target(&mut self, document: &RunDocument, index: usize, label: &str, storage: Option<&str>) {
        let Some(target) = document.targets.get(index) else { return };
        let job = document.job_of(target);
        let section = match (document.is_check(), job.is_some_and(|job| job.method.is_some())) {
            (true, true) => "sync",
            (true, false) => "io",
            (false, _) => "target",
        };
        let block = job.and_then(|job| job.block_bytes);
        self.count(section, label, "block", block, "bytes");
        self.count(section, label, "depth", target.sides.depth, "requests");
        self.sides_beside(section, label, &target.sides, storage);
    }

    fn sides(&mut self, section: &str, name: &str, sides: &Sides) {
        self.sides_beside(section, name, sides, Some(name));
    }

    /// Writes both sides, that of the storage under the name `beside`; `None` leaves it out.
    fn sides_beside(&mut self, section: &str, name: &str, sides: &Sides, beside: Option<&str>) {
        let side = &sides.application;
        self.number(section, name, "application_window", Some(side.seconds), "seconds");
        if sides.is_application_seen() {
            self.count(section, name, "application_operations", Some(side.operations), "operations");
            self.count(section, name, "application_errors", Some(side.errors), "operations");
            self.number(section, name, "application_iops", Some(side.iops), RATE);
            self.number(section, name, "application_throughput", Some(side.bytes_per_second), "bytes/second");
            self.number(section, name, "application_io_mean", side.io_bytes_mean, "bytes");
            self.number(section, name, "in_flight_mean", side.in_flight_mean, "requests");
        }
        self.latency(section, name, "application_latency", side.operation_latency().as_ref());
        self.latency(section, name, "application_service_time", sides.service_time().as_ref());
        for (direction, result) in sides.used() {
            let mut number = |metric: &str, value: f64, unit| {
                self.number(section, name, &format!("{direction}_{metric}"), Some(value), unit);
            };
            number("operations", result.ios as f64, "operations");
            number("errors", result.errors as f64, "operations");
            number("moved", result.bytes as f64, "bytes");
            number("iops", result.iops, RATE);
            number("throughput", result.bytes_per_second, "bytes/second");
            let latency = result.operation_latency();
            self.latency(section, name, &format!("{direction}_latency"), latency.as_ref());
            let service = result.service_time();
            self.latency(section, name, &format!("{direction}_service_time"), service.as_ref());
        }
        self.latency(section, name, "durable_latency", sides.durable_latency.as_ref());
        beside.into_iter().for_each(|beside| self.storage(section, beside, sides));
        if sides.sync.is_used() && beside == Some(name) {
            self.number(section, name, "flushes_per_sync", sides.flushes_per_sync(), "flushes/operation");
        }
        self.count(section, name, "dirty_after", sides.dirty_bytes_after, "bytes");
        if let Some(cpu) = sides.cpu {
            self.number(section, name, "cpu_user", Some(cpu.user), "seconds");
            self.number(section, name, "cpu_system", Some(cpu.system), "seconds");
        }
    }

    fn storage(&mut self, section: &str, name: &str, sides: &Sides) {
        if let Some(storage) = &sides.storage {
            self.number(section, name, "storage_iops", Some(storage.iops), RATE);
            self.number(section, name, "storage_throughput", Some(storage.bytes_per_second), "bytes/second");
            self.number(section, name, "storage_io_mean", storage.io_bytes_mean, "bytes");
            self.count(section, name, "storage_flushes", storage.flushes, "flushes");
            self.count(section, name, "storage_read", Some(storage.read_bytes), "bytes");
            self.count(section, name, "storage_written", Some(storage.write_bytes), "bytes");
        }
        if let Some(discards) = sides.discards() {
            self.count(section, name, "storage_discards", Some(discards.count), "discards");
            self.count(section, name, "storage_discarded", Some(discards.bytes), "bytes");
        }
    }

    fn transactions(&mut self, done: &Transactions) {
        self.count("load", "", "transactions", Some(done.count), "transactions");
        let rate = "transactions/second";
        self.number("load", "", "transactions_per_second", Some(done.per_second), rate);
        self.number("load", "", "syncs_per_transaction", done.syncs_each, "syncs/transaction");
        self.latency("load", "", "transaction_latency", done.latency.as_ref());
        for call in &done.calls {
            self.count("load", "", &format!("{}_calls", call.name), Some(call.latency.count), "calls");
            self.latency("load", "", &format!("{}_latency", call.name), Some(&call.latency));
        }
    }

    fn series(&mut self, name: &str, rows: &[TimeseriesRow]) {
        let width = bucket_seconds(rows);
        for row in rows {
            let at = row.at.as_secs_f64();
            self.at(name, at, "iops", row.operations as f64 / width, RATE);
            self.at(name, at, "throughput", row.bytes as f64 / width, "bytes/second");
            row.latency_mean.iter().for_each(|mean| self.at(name, at, "latency_mean", *mean, "seconds"));
            row.latency_max.iter().for_each(|max| self.at(name, at, "latency_max", *max, "seconds"));
        }
    }

    fn at(&mut self, name: &str, at: f64, metric: &str, value: f64, unit: &str) {
        if value.is_finite() {
            self.row(&["series", name, &at.to_string(), metric, &value.to_string(), unit]);
        }
    }
    fn latency(&mut self, section: &str, name: &str, metric: &str, latency: Option<&Latency>) {
        let Some(latency) = latency else { return };
        for (statistic, of) in crate::figures::STATISTICS {
            let statistic = statistic.replace("99.9", "999");
            self.number(section, name, &format!("{metric}_{statistic}"), of(latency), "seconds");
        }
    }

    fn count(&mut self, section: &str, name: &str, metric: &str, value: Option<u64>, unit: &str) {
        self.number(section, name, metric, value.map(|value| value as f64), unit);
    }

    fn number(&mut self, section: &str, name: &str, metric: &str, value: Option<f64>, unit: &str) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.row(&[section, name, "", metric, &value.to_string(), unit]);
        }
    }

    fn row(&mut self, fields: &[&str]) {
        let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
        self.text.push_str(&fields.join(","));
        self.text.push('\n');
    }
}

/// Returns a field on one line, quoted if necessary. A text that a spreadsheet would interpret as a formula
/// is kept as text, and control characters are escaped, since names and sentences may come from other hosts.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '@', '+', '-']) && field.parse::<f64>().is_err();
    let field = printable(&if formula { format!("'{field}") } else { field.to_owned() });
    if field.contains(['"', ',']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use plumb_path::{Flush, Fua};

    use super::*;
    use crate::fixture;

    #[test]
    fn every_row_of_a_check_has_six_fields() {
        for document in fixture::all() {
            let text = csv(&RunRecording::without_distributions(document));
            for line in text.lines().filter(|line| !line.contains('"')) {
                assert_eq!(line.split(',').count(), 6, "{line}");
            }
        }
    }

    #[test]
    fn each_value_of_a_document_is_a_row_under_the_name_of_its_object() {
        let document = serde_json::json!({
            "schema": "plumb/x/1",
            "caches": [{"name": "db", "size": 4096, "backing": {"path": "/dev/a,b", "size": null}}],
        });
        let rows = ["caches,db,,backing.path,\"/dev/a,b\",", "caches,db,,name,db,", "caches,db,,size,4096,"];
        let expected =
            format!("section,name,at_seconds,metric,value,unit\n{}\n,,,schema,plumb/x/1,\n", rows.join("\n"));
        assert_eq!(values(&document), expected);
    }

    #[test]
    fn devices_that_targets_share_are_told_once() {
        let mut document = fixture::load("side-by-side");
        let (first, second) = (document.targets[0].clone(), document.targets.len());
        document.targets.push(crate::document::RunTarget {
            name: "other".to_owned(),
            opened: "other".to_owned(),
            ..first
        });
        let sharers = document.sharers(second);
        assert!(sharers.len() > 1 && sharers[0] == 0, "{sharers:?}");
        let labels = document.labels();
        assert_eq!(document.storage_label(second, &labels), None);
        assert!(document.storage_label(0, &labels).unwrap().contains(", "));
        let text = csv(&RunRecording::without_distributions(document));
        let own = format!("target,{},,storage_", labels[second]);
        assert!(!text.contains(&own) && text.contains(",storage_flushes,"), "{text}");
    }

    #[test]
    fn layers_of_several_paths_are_told_apart() {
        let path = |target: &str| serde_json::json!({"target": target, "layers": [{"name": "ext4", "cache": "none"}]});
        let text = values(&serde_json::json!({"paths": [path("a"), path("b")]}));
        for row in ["paths,a: ext4,,cache,none,", "paths,b: ext4,,cache,none,", "paths,b,,target,b,"] {
            assert!(text.lines().any(|line| line == row), "{row}: {text}");
        }
    }

    #[test]
    fn layers_have_the_words_of_the_table_for_fua() {
        let mut path = fixture::document("hard-drive").path.unwrap();
        let last = path.layers.len() - 1;
        (path.layers[last].flush, path.layers[last].fua) = (Flush::Absorbed, Fua::Dropped);
        let text = values(&serde_json::json!({ "paths": [path] }));
        let rows: Vec<&str> =
            text.lines().filter_map(|line| line.split_once(",,fua,").map(|row| row.1)).collect();
        let words = path.layers.iter().map(wording::fua).filter(|word| *word != NONE);
        assert_eq!(rows, words.map(|word| format!("{word},")).collect::<Vec<_>>(), "{text}");
        assert!(rows.len() < path.layers.len() && rows.last() == Some(&"absorbed,"), "{text}");
    }

    #[test]
    fn fields_are_quoted_and_formulas_defused() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=1+1"), "'=1+1");
        assert_eq!(quoted("-0.5"), "-0.5");
    }
}

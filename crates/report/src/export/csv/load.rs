//! The figures of a load, and its time series.

use plumb_measure::SeriesPoint;

use super::Csv;
use crate::document::{RunRecording, Sides};
use crate::figures::bucket_seconds;
use crate::wording;

/// The rows of a recording, with a head.
pub fn load(recording: &RunRecording) -> String {
    let mut csv = Csv { text: "section,name,at_seconds,metric,value,unit\n".to_owned(), timed: true };
    let document = &recording.document;
    csv.number("load", "", "duration", Some(document.duration), "seconds");
    csv.sides("load", "", &document.total);
    let labels = document.labels();
    for (label, target) in labels.iter().zip(&document.targets) {
        csv.sides("target", label, &target.sides);
    }
    for (index, label) in labels.iter().enumerate() {
        csv.series(label, recording.series_of(index));
    }
    for finding in &document.verdicts {
        csv.row(&["verdict", &finding.id, "", wording::severity(finding.severity), &finding.sentence, ""]);
    }
    csv.text
}

impl Csv {
    fn sides(&mut self, section: &str, name: &str, sides: &Sides) {
        let application = &sides.application;
        self.number(
            section,
            name,
            "application_operations",
            Some(application.operations as f64),
            "operations",
        );
        self.number(section, name, "application_iops", Some(application.iops), "operations/second");
        self.number(
            section,
            name,
            "application_throughput",
            Some(application.bytes_per_second),
            "bytes/second",
        );
        self.number(section, name, "application_io_mean", application.io_bytes_mean, "bytes");
        self.number(section, name, "in_flight_mean", application.in_flight_mean, "requests");
        self.latency(section, name, "application_latency", application.latency.as_ref());
        for (direction, result) in sides.used() {
            let mut number = |metric: &str, value: f64, unit| {
                self.number(section, name, &format!("{direction}_{metric}"), Some(value), unit);
            };
            number("operations", result.ios as f64, "operations");
            number("errors", result.errors as f64, "operations");
            number("moved", result.bytes as f64, "bytes");
            number("iops", result.iops, "operations/second");
            number("throughput", result.bytes_per_second, "bytes/second");
            self.latency(section, name, &format!("{direction}_latency"), result.latency.as_ref());
            let intended = result.latency_from_intended_start.as_ref();
            self.latency(section, name, &format!("{direction}_latency_from_intended_start"), intended);
        }
        self.latency(section, name, "durable_latency", sides.durable_latency.as_ref());
        if let Some(storage) = &sides.storage {
            self.number(section, name, "storage_iops", Some(storage.iops), "operations/second");
            self.number(section, name, "storage_throughput", Some(storage.bytes_per_second), "bytes/second");
            self.number(section, name, "storage_io_mean", storage.io_bytes_mean, "bytes");
            self.number(
                section,
                name,
                "storage_flushes",
                storage.flushes.map(|count| count as f64),
                "flushes",
            );
            self.number(section, name, "storage_read", Some(storage.read_bytes as f64), "bytes");
            self.number(section, name, "storage_written", Some(storage.write_bytes as f64), "bytes");
        }
        if let Some(cpu) = sides.cpu {
            self.number(section, name, "cpu_user", Some(cpu.user), "seconds");
            self.number(section, name, "cpu_system", Some(cpu.system), "seconds");
        }
    }

    fn series(&mut self, name: &str, points: &[SeriesPoint]) {
        let width = bucket_seconds(points);
        for point in points {
            let at = point.at.as_secs_f64();
            self.at(name, at, "iops", point.operations as f64 / width, "operations/second");
            self.at(name, at, "throughput", point.bytes as f64 / width, "bytes/second");
            if point.operations > 0 {
                let mean = point.latency_sum.as_secs_f64() / point.operations as f64;
                self.at(name, at, "latency_mean", mean, "seconds");
                self.at(name, at, "latency_max", point.latency_max.as_secs_f64(), "seconds");
            }
        }
    }

    fn at(&mut self, name: &str, at: f64, metric: &str, value: f64, unit: &str) {
        if value.is_finite() {
            self.row(&["series", name, &at.to_string(), metric, &value.to_string(), unit]);
        }
    }
}

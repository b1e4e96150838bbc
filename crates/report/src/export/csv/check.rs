//! The figures of a check.

use plumb_measure::SyncResult;

use super::Csv;
use crate::recording::CheckRecording;
use crate::wording;

/// The rows of a recording, with a head.
pub fn check(recording: &CheckRecording) -> String {
    let mut csv = Csv { text: "section,name,metric,value,unit\n".to_owned(), timed: false };
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
        csv.row(&["verdict", &finding.id, wording::severity(finding.severity), &finding.sentence, ""]);
    }
    csv.text
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_row_has_five_fields() {
        for document in fixture::all() {
            let text = check(&CheckRecording::without_distributions(document));
            for line in text.lines().filter(|line| !line.contains('"')) {
                assert_eq!(line.split(',').count(), 5, "{line}");
            }
        }
    }
}

//! Counters of the devices below each target. They are not in a `Target` element, where parsers expect
//! results.

use plumb_load::SpanResult;

use super::super::measured::{mib_per_second, per_second};
use super::super::xml::XmlWriter;

pub(super) fn write(result: &SpanResult, writer: &mut XmlWriter) {
    writer.open("Storage");
    for target in &result.targets {
        writer.open("StorageTarget");
        writer.value("Path", &target.name);
        match &target.storage {
            Ok(side) => {
                let operations = side.reads + side.writes;
                let bytes = side.read_bytes + side.write_bytes;
                writer.value("ReadCount", side.reads);
                writer.value("ReadBytes", side.read_bytes);
                writer.value("WriteCount", side.writes);
                writer.value("WriteBytes", side.write_bytes);
                if let Some(flushes) = side.flushes {
                    writer.value("FlushCount", flushes);
                }
                writer.value("IoPerSecond", format!("{:.2}", per_second(operations, result.window)));
                writer.value("MiBPerSecond", format!("{:.2}", mib_per_second(bytes, result.window)));
                if let Some(mean) = bytes.checked_div(operations) {
                    writer.value("MeanIoBytes", mean);
                }
            }
            Err(reason) => writer.value("UnknownBecause", reason),
        }
        writer.close("StorageTarget");
    }
    writer.close("Storage");
}

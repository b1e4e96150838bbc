//! Results as XML in DiskSpd's structure, with an additional element `Storage` at the end of each time span:
//! the counters of the devices below.
//!
//! Unknown facts are left out: efficiency classes of processors, the GUID of a power scheme.

mod latency;
mod storage;
mod system;
mod threads;

use plumb_load::SpanResult;

use super::affinity::GROUP;
use super::measured::{Usage, is_interrupted, timed_with_flushes};
use super::profile::{Profile, TimeSpan};
use super::xml::XmlWriter;
use super::xml_write;
use crate::machine::Machine;

/// Formats the results of the time spans of `profile`, in order. Spans that did not run are left out.
pub fn xml(profile: &Profile, results: &[SpanResult], machine: &Machine) -> String {
    let mut writer = XmlWriter::default();
    writer.open("Results");
    system::write(machine, &mut writer);
    xml_write::write_into(profile, &mut writer);
    for (span, result) in profile.time_spans.iter().zip(&timed_with_flushes(results)) {
        writer.open("TimeSpan");
        if is_interrupted(result) {
            let reason = "The test was interrupted before the measurements began. No results are displayed.";
            writer.value("Error", reason);
        } else {
            time_span(span, result, machine, &mut writer);
        }
        writer.close("TimeSpan");
    }
    writer.close("Results");
    writer.written
}

fn time_span(span: &TimeSpan, result: &SpanResult, machine: &Machine, writer: &mut XmlWriter) {
    writer.value("TestTimeSeconds", format!("{:.2}", result.window.as_secs_f64()));
    writer.value("ThreadCount", result.threads.len());
    writer.value("RequestCount", span.request_count);
    writer.value("ProcCount", machine.processors.len());
    processors(result, machine, writer);
    if span.measure_latency {
        latency::percentiles(&result.total(), writer);
    }
    if span.iops_deviation {
        threads::iops(span, result, &result.total(), writer);
    }
    threads::write(span, result, writer);
    storage::write(result, writer);
}

fn processors(result: &SpanResult, machine: &Machine, writer: &mut XmlWriter) {
    if result.processors.is_empty() {
        return;
    }
    writer.open("CpuUtilization");
    for processor in &result.processors {
        writer.open("CPU");
        let place = machine.topology.iter().find(|place| place.number == processor.number);
        if let Some(place) = place {
            writer.value("Socket", place.socket);
            writer.value("Node", place.node);
        }
        writer.value("Group", processor.number / GROUP);
        if let Some(place) = place {
            writer.value("Core", place.core);
        }
        writer.value("Id", processor.number % GROUP);
        usage(Usage::from_processor(processor), writer);
        writer.close("CPU");
    }
    writer.open("Average");
    usage(Usage::mean(&result.processors), writer);
    writer.close("Average");
    writer.close("CpuUtilization");
}

fn usage(usage: Usage, writer: &mut XmlWriter) {
    let percents = [
        ("UsagePercent", usage.used),
        ("UserPercent", usage.user),
        ("KernelPercent", usage.kernel),
        ("IdlePercent", usage.idle),
    ];
    for (name, percent) in percents {
        writer.value(name, format!("{percent:.2}"));
    }
}

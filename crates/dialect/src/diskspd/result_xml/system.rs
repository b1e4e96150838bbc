//! On what machine, and when.

use super::super::measured::start_time;
use super::super::xml::XmlWriter;
use crate::machine::Machine;

pub(super) fn write(machine: &Machine, writer: &mut XmlWriter) {
    writer.open("System");
    writer.value("ComputerName", &machine.host);
    writer.open("Tool");
    writer.value("Name", "plumb");
    writer.value("Version", &machine.version);
    // DiskSpd's readers expect the element; plumb's versions have no date of their own.
    writer.value("VersionDate", "unknown");
    writer.close("Tool");
    writer.value("RunTime", start_time(&machine.started_at));
    writer.value("Kernel", &machine.kernel);
    writer.value("PageSize", machine.page_bytes);
    writer.value("MemorySize", machine.memory_bytes);
    topology(machine, writer);
    writer.close("System");
}

/// Processors in groups of 64, as `-ag` counts them.
fn topology(machine: &Machine, writer: &mut XmlWriter) {
    let groups = machine.processors.iter().max().map_or(0, |last| last / 64 + 1);
    writer.open("ProcessorTopology");
    for group in 0..groups {
        let there = machine.processors.iter().filter(|number| *number / 64 == group);
        let mask = there.fold(0_u64, |mask, number| mask | 1 << (number % 64));
        if mask == 0 {
            continue;
        }
        let (most, active) = (64 - mask.leading_zeros(), mask.count_ones());
        writer.line(&format!(
            "<Group Group=\"{group}\" MaximumProcessors=\"{most}\" ActiveProcessors=\"{active}\" \
             ActiveProcessorMask=\"{mask:#x}\"/>"
        ));
    }
    writer.close("ProcessorTopology");
}

//! The `System` element of a result: computer, start of the run, processors.

use std::collections::BTreeMap;

use super::super::affinity::GROUP;
use super::super::measured::start_time;
use super::super::xml::{XmlWriter, escaped};
use crate::machine::{Machine, ProcessorPlace};

pub(super) fn write(machine: &Machine, writer: &mut XmlWriter) {
    writer.open("System");
    writer.value("ComputerName", &machine.host);
    writer.open("Tool");
    writer.value("Name", "plumb");
    writer.value("Version", &machine.version);
    writer.value("VersionDate", &machine.version_date);
    writer.close("Tool");
    writer.value("RunTime", start_time(&machine.started_at));
    writer.value("Kernel", &machine.kernel);
    writer.value("PageSize", machine.page_bytes);
    writer.value("MemorySize", machine.memory_bytes);
    topology(machine, writer);
    writer.close("System");
}

/// Writes the processors in groups of 64, as `-ag` counts them, and the members of each node, socket and
/// core.
fn topology(machine: &Machine, writer: &mut XmlWriter) {
    writer.open("ProcessorTopology");
    for (group, mask) in masks(machine, |_| ()).into_iter().map(|(((), group), mask)| (group, mask)) {
        let (most, active) = (64 - mask.leading_zeros(), mask.count_ones());
        writer.line(&format!(
            "<Group Group=\"{group}\" MaximumProcessors=\"{most}\" ActiveProcessors=\"{active}\" \
             ActiveProcessorMask=\"{mask:#x}\"/>"
        ));
    }
    for ((node, group), mask) in masks(machine, |place| place.node) {
        writer.line(&format!("<Node Node=\"{node}\" Group=\"{group}\" Processors=\"{mask:#x}\"/>"));
    }
    for ((_, group), mask) in masks(machine, |place| place.socket) {
        writer.open("Socket");
        writer.line(&format!("<Group Group=\"{group}\" Processors=\"{mask:#x}\"/>"));
        writer.close("Socket");
    }
    for (((_, core), group), mask) in masks(machine, |place| (place.socket, place.core)) {
        writer.line(&format!("<Core Group=\"{group}\" Core=\"{core}\" Processors=\"{mask:#x}\"/>"));
    }
    writer.close("ProcessorTopology");
    let scheme = machine.governor.as_deref().unwrap_or("none");
    writer.line(&format!("<PowerScheme Name=\"{}\" Guid=\"\"/>", escaped(scheme)));
}

/// Returns the processors with each value of `of`, for each group, as bit masks.
fn masks<K: Ord>(machine: &Machine, of: impl Fn(&ProcessorPlace) -> K) -> BTreeMap<(K, u32), u64> {
    let mut masks = BTreeMap::new();
    for place in &machine.topology {
        *masks.entry((of(place), place.number / GROUP)).or_insert(0) |= 1 << (place.number % GROUP);
    }
    masks
}

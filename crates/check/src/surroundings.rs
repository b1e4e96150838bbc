//! What else went on while a phase ran, and where it ran.

use std::fs;
use std::path::Path;

use plumb_block::{Device, ExtentState, Lba, LbaRange};
use plumb_measure::process::ProcessorTimes;

/// Processor times of the whole machine now; `None` where /proc is hidden.
pub(crate) fn processor_times() -> Option<ProcessorTimes> {
    ProcessorTimes::parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// The share of a device's blocks that were written before, 0 to 1; `None` if the file system does not say.
pub(crate) fn written_share(device: &dyn Device) -> Option<f64> {
    let blocks = device.info().blocks();
    let extents = device.extents(LbaRange::new(Lba(0), blocks)).ok()?;
    if extents.iter().any(|extent| extent.state == ExtentState::Unknown) {
        return None;
    }
    let written: u64 = extents
        .iter()
        .filter(|extent| extent.state == ExtentState::Written)
        .map(|extent| extent.range.nlb)
        .sum();
    (blocks > 0).then(|| written as f64 / blocks as f64)
}

/// The machine's memory in bytes (/proc/meminfo, MemTotal).
pub(crate) fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?
        .trim()
        .strip_suffix(" kB")?
        .parse()
        .ok()?;
    Some(kib * 1024)
}

/// The host's name.
pub(crate) fn host() -> Option<String> {
    let name = fs::read_to_string(Path::new("/proc/sys/kernel/hostname")).ok()?;
    Some(name.trim_end().to_owned()).filter(|name| !name.is_empty())
}

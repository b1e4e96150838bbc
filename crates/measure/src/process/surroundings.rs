//! Where a measurement runs: the machine's name, memory and processors, from /proc.

use std::fs;

use crate::process::ProcessorTimes;

/// Returns the processor times of the whole machine now; `None` where /proc is hidden.
pub fn processor_times() -> Option<ProcessorTimes> {
    ProcessorTimes::parse(&fs::read_to_string("/proc/stat").ok()?)
}

/// Returns the processor times of each processor now, by number; empty where /proc is hidden.
pub fn each_processor() -> Vec<(u32, ProcessorTimes)> {
    fs::read_to_string("/proc/stat").map_or_else(|_| Vec::new(), |text| ProcessorTimes::parse_each(&text))
}

/// Returns the machine's memory in bytes (/proc/meminfo, MemTotal).
pub fn memory_bytes() -> Option<u64> {
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

/// Returns the host's name.
pub fn host() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim_end().to_owned()).filter(|name| !name.is_empty())
}

/// Returns the kernel's release.
pub fn kernel() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/osrelease").ok()?.trim_end().to_owned())
}

/// Returns the time since the machine started, in milliseconds (/proc/uptime).
pub fn uptime_ms() -> Option<u64> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some((seconds * 1000.0) as u64)
}

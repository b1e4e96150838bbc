//! Surroundings of a measurement: the machine's name, memory and processors, from /proc and /sys.

use std::fs;
use std::path::Path;

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

/// Place of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorPlace {
    /// Number of the processor.
    pub number: u32,
    /// The core that it is a thread of, unique in its socket.
    pub core: u32,
    /// The socket.
    pub socket: u32,
    /// The memory node.
    pub node: u32,
}

/// Returns the cpufreq governor; `None` if there is none.
pub fn governor() -> Option<String> {
    text_of("cpu/cpu0/cpufreq/scaling_governor")
}

/// Returns the text of a file beneath /sys/devices/system.
fn text_of(name: &str) -> Option<String> {
    let text = fs::read_to_string(Path::new("/sys/devices/system").join(name)).ok()?;
    Some(text.trim().to_owned())
}

/// Returns where the processors are that say so, by number.
pub fn topology() -> Vec<ProcessorPlace> {
    let entries = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let mut places: Vec<ProcessorPlace> = entries
        .filter_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()?;
            let of = |name: &str| text_of(&format!("cpu/cpu{number}/topology/{name}"))?.parse::<u32>().ok();
            // Without memory nodes all of it is one.
            let files = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            let node =
                files.filter_map(|file| file.file_name().to_str()?.strip_prefix("node")?.parse().ok()).next();
            let (core, socket) = (of("core_id")?, of("physical_package_id")?);
            Some(ProcessorPlace { number, core, socket, node: node.unwrap_or(0) })
        })
        .collect();
    places.sort_by_key(|place| place.number);
    places
}

//! Machine that runs a bench.

/// Directory of files in memory.
pub(super) const MEMORY: &str = "/dev/shm";

/// Prints the load average: a busy machine misses limits that it meets when idle.
pub(super) fn print_load_average() {
    let busy = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average before: {}", busy.trim());
}

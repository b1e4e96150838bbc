//! Facts about the machine that dialects need, passed as arguments so that translations stay pure.

/// Position of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorPlace {
    /// Number of the processor.
    pub number: u32,
    /// Core of the processor, unique in its socket.
    pub core: u32,
    /// Socket of the processor.
    pub socket: u32,
    /// NUMA node of the processor.
    pub node: u32,
}

/// Facts about the machine and the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Name of the machine.
    pub host: String,
    /// Processors that this process may use.
    pub processors: Vec<u32>,
    /// Positions of all processors, where the kernel reports them.
    pub topology: Vec<ProcessorPlace>,
    /// cpufreq governor; `None` without cpufreq.
    pub governor: Option<String>,
    /// Size of a memory page in bytes.
    pub page_bytes: u64,
    /// Size of the memory in bytes.
    pub memory_bytes: u64,
    /// Kernel release, as by uname(1).
    pub kernel: String,
    /// Milliseconds since boot: DiskSpd's seed for `-z` without a value.
    pub uptime_ms: u64,
    /// Start of the run, RFC 3339 in UTC.
    pub started_at: String,
    /// Start of the run, in seconds since 1970.
    pub started_unix: u64,
    /// Start of the run, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Offset of local time from UTC at the start, in seconds; negative west of Greenwich.
    pub zone_offset_seconds: i32,
    /// Version of plumb.
    pub version: String,
    /// Date of this build, as `2026/01/31`.
    pub version_date: String,
    /// Command line as typed.
    pub argv: Vec<String>,
}

impl Machine {
    /// Returns the number of distinct values of `of` among the processors.
    pub(crate) fn count_of<K: Ord>(&self, of: impl Fn(&ProcessorPlace) -> K) -> usize {
        self.topology.iter().map(of).collect::<std::collections::BTreeSet<K>>().len()
    }
}

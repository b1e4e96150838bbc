//! Facts of the machine that a dialect must know: passed in, so that translations stay pure.

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

/// Facts of this machine and this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Name of the machine.
    pub host: String,
    /// The processors that this process may use, by number.
    pub processors: Vec<u32>,
    /// Where those of the machine are, as far as it says so.
    pub topology: Vec<ProcessorPlace>,
    /// The cpufreq governor; `None` if there is none.
    pub governor: Option<String>,
    /// The memory page in bytes.
    pub page_bytes: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The kernel, as uname says.
    pub kernel: String,
    /// Milliseconds since the machine started: DiskSpd's seed for a bare `-z`.
    pub uptime_ms: u64,
    /// When the run began, RFC 3339, UTC.
    pub started_at: String,
    /// Time when the run began, in seconds since 1970.
    pub started_unix: u64,
    /// Time when the run began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Seconds by which local time was then ahead of UTC; negative in the west.
    pub zone_offset_seconds: i32,
    /// The version of plumb.
    pub version: String,
    /// When this program was made, as `2026/01/31`.
    pub version_date: String,
    /// The command line as typed.
    pub argv: Vec<String>,
}

impl Machine {
    /// Returns how many different values of `of` its processors have.
    pub(crate) fn count_of<K: Ord>(&self, of: impl Fn(&ProcessorPlace) -> K) -> usize {
        self.topology.iter().map(of).collect::<std::collections::BTreeSet<K>>().len()
    }
}

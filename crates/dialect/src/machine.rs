//! What of the machine a dialect must know: passed in, so that translations stay pure.

/// Facts of this machine and this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// The processors that this process may use, by number.
    pub processors: Vec<u32>,
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
    /// The same in seconds since 1970.
    pub started_unix: u64,
    /// The version of plumb.
    pub version: String,
    /// The command line as typed.
    pub argv: Vec<String>,
}

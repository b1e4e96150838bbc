//! The document behind `plumb check --json`, and all that a report of a check is made from.

use plumb_measure::{IoResult, SyncResult};
use plumb_path::{Finding, WritePath};
use serde::{Deserialize, Serialize};

/// All that a check learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckDocument {
    /// Always [`CheckDocument::SCHEMA`].
    pub schema: String,
    /// The directory that was checked, as given.
    pub target: String,
    /// Whether every phase ran; false in what an interrupted run left.
    pub complete: bool,
    /// Why it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_because: Option<String>,
    /// Whether it ended because something failed that should not: a flush, a device.
    #[serde(default)]
    pub failed: bool,
    /// The write path beneath the target.
    pub path: WritePath,
    /// The cost of a durable write, by method.
    pub sync: Vec<SyncResult>,
    /// Application beside storage, by load.
    pub io: Vec<IoResult>,
    /// What the devices beneath were handed, phase by phase and without a gap: the sum is what an outside observer of
    /// /proc/diskstats sees. Empty where no device can be observed.
    #[serde(default)]
    pub accounting: Vec<Account>,
    /// What is wrong or worth knowing: the findings of the survey and the verdicts of the measurement.
    pub verdicts: Vec<Finding>,
    /// Where all this was measured.
    pub environment: Environment,
    /// Where the recording is; null if it could not be kept.
    pub run_directory: Option<String>,
}

impl CheckDocument {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/check/1";
}

impl Environment {
    /// The facts beside the target in the head of a report.
    pub(crate) fn masthead(&self) -> Vec<String> {
        crate::figures::masthead(self.host.as_deref(), self.kernel.as_deref(), &self.started_at)
    }
}

/// What the devices beneath the target were handed while one phase ran, all devices summed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The phase, including its preparation and its recording.
    pub phase: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Flush requests; null where the kernel does not count them.
    pub flushes: Option<u64>,
    /// Reads.
    pub reads: u64,
    /// Writes, one for every flush taken out once it is known that flushes are counted as writes; a lower bound where
    /// flushes carried data.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// Where and how a measurement was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// plumb's own version.
    pub plumb: String,
    /// The command line.
    pub argv: Vec<String>,
    /// The seed of all random choices.
    pub seed: u64,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The host's name.
    pub host: Option<String>,
    /// Online processors.
    pub cpus: u32,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Size of the test file in bytes.
    pub file_bytes: u64,
    /// How I/O was submitted: `io_uring` or `pread/pwrite`.
    pub engine: String,
    /// Why not by io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_because: Option<String>,
    /// What root would have shown in addition, one line each; empty when run as root.
    pub root_would_add: Vec<String>,
}

//! Document of a run, as `plumb load --json` prints it.

use plumb_measure::Latency;
use plumb_path::{Finding, WritePath};
use serde::{Deserialize, Serialize};

use super::sides::Sides;
use super::span::{RunJob, RunSpan};

/// Kind of a run, written as the schema of its document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunKind {
    /// A load: [`RunDocument::SCHEMA`].
    #[default]
    #[serde(rename = "plumb/load/1")]
    Load,
    /// A check: [`CheckDocument::SCHEMA`](super::CheckDocument::SCHEMA).
    #[serde(rename = "plumb/check/1")]
    Check,
}

/// Results of a run.
///
/// `targets` and `total` exist in every run. Spans run one after another: `targets` lists those of the first
/// span, then of the next. Counts in `total` are sums over the spans, and its rates refer to the sum of their
/// windows. Results of a single span are in `spans`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    /// Kind of the run, which determines its JSON document.
    #[serde(rename = "schema")]
    pub kind: RunKind,
    /// Target as typed on the command line; empty if none was typed, and `targets` has the names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Source, if another program has measured it. Such a document has no recording and no seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Measured seconds of all spans.
    pub duration: f64,
    /// True if everything ran to its end.
    pub complete: bool,
    /// Reason why it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_because: Option<String>,
    /// True if it ended because of a failure, such as that of a flush or a device.
    #[serde(default)]
    pub failed: bool,
    /// Severity of the worst verdict: `none`, `info`, `warning` or `danger`.
    #[serde(default = "none")]
    pub level: String,
    /// Run in one sentence: its worst finding, or its result.
    #[serde(default)]
    pub headline: String,
    /// Write path below the targets; the first of [`paths`](Self::paths) if there are several. Null if
    /// unknown.
    pub path: Option<WritePath>,
    /// Reason why the path below a target is unknown, for the first such target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_unknown_because: Option<String>,
    /// Distinct write paths below the targets, in the order of the targets. Empty in documents of checks,
    /// where `path` is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<TargetPath>,
    /// Each target of each job.
    pub targets: Vec<RunTarget>,
    /// All targets together.
    pub total: Sides,
    /// Spans in order, each with jobs that ran at the same time; at least one.
    pub spans: Vec<RunSpan>,
    /// Transactions of an application; null for a load of operations alone.
    pub transactions: Option<Transactions>,
    /// Requests to the underlying devices, phase by phase without gaps: the sum equals the change of
    /// /proc/diskstats. Empty if no device can be observed, or no accounts were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounting: Vec<Account>,
    /// Maximum error of a latency in seconds, always upwards; null if it was not measured.
    pub latency_resolution_seconds: Option<f64>,
    /// Number of operations whose latency may be too long by more than `latency_resolution_seconds`, since
    /// other completions of the same batch came late; by at most 4 ms.
    pub latencies_late: u64,
    /// Method of measuring latencies, and the direction of their error.
    pub latency_resolution: String,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// Requested workload in plumb's own language (TOML), which can be run again.
    pub workload: String,
    /// Findings of the survey and verdicts of the measurement.
    pub verdicts: Vec<Finding>,
    /// Environment of the measurement.
    pub environment: Environment,
    /// Path of the recording; null if there is none.
    pub run_directory: Option<String>,
}

/// Write path, and the targets above it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetPath {
    /// Targets, by [`RunTarget::opened`].
    pub targets: Vec<String>,
    /// Path. Its facts about the target are those of the first one.
    pub path: WritePath,
}

/// Requests to the devices below the target during one phase, summed over all devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Phase, including its preparation and its recording.
    pub phase: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// Flush requests; null if the kernel does not count them.
    pub flushes: Option<u64>,
    /// Reads.
    pub reads: u64,
    /// Writes. If the kernel counts flushes as writes, one is subtracted for each flush; a lower bound if
    /// flushes carried data.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// Transactions of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// Number of completed transactions.
    pub count: u64,
    /// Transactions per second.
    pub per_second: f64,
    /// Syncs per transaction; null if none completed.
    pub syncs_each: Option<f64>,
    /// Time from the start of a transaction to its end; null if none completed.
    pub latency: Option<Latency>,
    /// Calls that make up a transaction.
    pub calls: Vec<CallLatency>,
}

/// Calls of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallLatency {
    /// Name of the call: `fsync`, `rename`.
    pub name: String,
    /// Latency of the calls.
    pub latency: Latency,
}

/// One target of one job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTarget {
    /// Name of the target, as typed.
    pub name: String,
    /// Name of the opened object: an absolute path, or a name with a scheme.
    pub opened: String,
    /// Index of the target's span in `spans`.
    pub span: usize,
    /// Index of the target's job in the `jobs` of that span.
    pub job: usize,
    /// Size in bytes.
    pub size: u64,
    /// Length of the touched range, in bytes.
    pub range_bytes: u64,
    /// Interface for requests: `io_uring`, `pread/pwrite`, `mmap`.
    pub engine: String,
    /// Reason why it is not io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_because: Option<String>,
    /// Reason why the target could not be measured, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_because: Option<String>,
    /// Facts that the device reports.
    pub device: DeviceFacts,
    /// Results of untorn writes; absent if the job requests none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic: Option<AtomicResult>,
    /// Requests to the target, and their results.
    #[serde(flatten)]
    pub sides: Sides,
}

/// Results of untorn writes (`RWF_ATOMIC`) to one target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicResult {
    /// Largest untorn write that the target supports, in bytes.
    pub unit_bytes: u64,
    /// Number of writes refused (EINVAL, EOPNOTSUPP), since the kernel could not send them in one piece.
    pub refused: u64,
    /// Number of blocks read back partly old and partly new; null without verification.
    pub torn: Option<u64>,
}

/// Facts that a device reports. Null means that the device does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// True if the device has an enabled volatile write cache.
    pub volatile_cache: Option<bool>,
    /// True if the device supports FUA natively.
    pub fua_native: Option<bool>,
    /// Time of one revolution in seconds, if the drive reports that it rotates.
    pub revolution_seconds: Option<f64>,
}

/// Environment of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of plumb.
    pub plumb: String,
    /// Command line.
    pub argv: Vec<String>,
    /// Seed of all random choices, in the document of a check. Every run has [`RunDocument::seed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Working directory of the command, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Start time, RFC 3339 in UTC.
    pub started_at: String,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Name of the host.
    pub host: Option<String>,
    /// Number of online processors.
    pub cpus: u32,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Size of a check's test file, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Method by which the direct requests of a check were submitted: `io_uring` or `pread/pwrite`. In other
    /// runs each target has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Reason why it is not io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_because: Option<String>,
    /// Findings that only root can get, one line each; empty when run as root.
    #[serde(default)]
    pub root_would_add: Vec<String>,
}

fn none() -> String {
    "none".to_owned()
}

impl RunDocument {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/load/1";

    /// Note that applies to every latency of the document.
    pub const LATENCY_RESOLUTION: &str = "One reading of the clock serves a batch of completions and is taken after \
        they were reaped: latencies are never too short, and too long by at most the time since the queue was last \
        looked at.";

    /// Returns the document of a run without results.
    pub fn empty(kind: RunKind) -> Self {
        Self {
            kind,
            level: none(),
            latency_resolution: Self::LATENCY_RESOLUTION.to_owned(),
            ..Self::default()
        }
    }

    /// Returns true for a check, whose result is the effect of an fsync instead of a rate.
    pub fn is_check(&self) -> bool {
        self.kind == RunKind::Check
    }

    /// Returns the command for this kind of run.
    pub fn command(&self) -> &'static str {
        if self.is_check() { "check" } else { "load" }
    }

    /// Returns the write path below `target`; `None` if unknown.
    pub fn path_of(&self, target: &RunTarget) -> Option<&WritePath> {
        if self.paths.is_empty() {
            return self.path.as_ref();
        }
        let beneath = self.paths.iter().find(|one| one.targets.contains(&target.opened));
        beneath.map(|one| &one.path)
    }

    /// Returns each distinct path below a target.
    pub fn all_paths(&self) -> Vec<&WritePath> {
        self.named_paths().into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the distinct write paths, each with the targets above it if there are several paths.
    pub(crate) fn named_paths(&self) -> Vec<(String, &WritePath)> {
        match self.paths.as_slice() {
            [] => self.path.iter().map(|path| (String::new(), path)).collect(),
            [one] => vec![(String::new(), &one.path)],
            several => several.iter().map(|one| (one.targets.join(", "), &one.path)).collect(),
        }
    }

    /// Adds the path below the target opened as `opened`. A path that is already listed is not added again.
    pub fn add_path(&mut self, opened: &str, path: &WritePath) {
        let same = |one: &&mut TargetPath| {
            let (one, other) = (&one.path, path);
            (&one.layers, &one.durable_at, &one.unknown_below)
                == (&other.layers, &other.durable_at, &other.unknown_below)
        };
        match self.paths.iter_mut().find(same) {
            Some(known) if known.targets.iter().any(|target| target == opened) => {}
            Some(known) => known.targets.push(opened.to_owned()),
            None => {
                self.path.get_or_insert_with(|| path.clone());
                self.paths.push(TargetPath { targets: vec![opened.to_owned()], path: path.clone() });
            }
        }
    }

    /// Returns the indices of the targets that share devices with target `index` in its span, including
    /// itself: the counters of the devices cover all of them. Returns only `index` if nothing was counted.
    pub(crate) fn sharers(&self, index: usize) -> Vec<usize> {
        fn devices(target: &RunTarget) -> impl Iterator<Item = &str> {
            let counted = target.sides.storage.iter().flat_map(|storage| &storage.devices);
            counted.map(|device| &*device.name)
        }
        let Some(this) = self.targets.get(index) else { return Vec::new() };
        let is_counted = devices(this).next().is_some();
        let shares =
            |other: &RunTarget| is_counted && other.span == this.span && devices(other).eq(devices(this));
        let all = self.targets.iter().enumerate();
        all.filter(|(number, other)| *number == index || shares(other)).map(|(number, _)| number).collect()
    }

    /// Returns the name under which exports report the storage side of target `index`, so that a sum over
    /// targets counts it once: the `labels` of all targets that share it, for the first of them. `None` for
    /// the others.
    pub(crate) fn storage_label(&self, index: usize, labels: &[String]) -> Option<String> {
        let sharers = self.sharers(index);
        let names = || sharers.iter().filter_map(|number| labels.get(*number)).map(String::as_str);
        (sharers.first() == Some(&index)).then(|| names().collect::<Vec<_>>().join(", "))
    }

    /// Returns the job of `target`; `None` if the document has no such job.
    pub fn job_of(&self, target: &RunTarget) -> Option<&RunJob> {
        self.spans.get(target.span)?.jobs.get(target.job)
    }
}

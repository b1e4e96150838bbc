//! The document of a run, as `plumb load --json` prints it.

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

/// All that a run learnt.
///
/// `targets` and `total` stand at the top for every run. Spans run one after the other: with several,
/// `targets` are those of the first span, then of the next; counts in `total` are those of all, and its rates
/// are over the sum of their windows. What belongs to one span alone is in `spans`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    /// Kind of the run, which says as which JSON document it is written.
    #[serde(rename = "schema")]
    pub kind: RunKind,
    /// Target as typed on the command line; empty where nothing was typed, and the targets tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Where it is from, if another program has measured it; then it has no recording, and no seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
    /// The seed of all random choices.
    pub seed: u64,
    /// Seconds that were measured, all spans together.
    pub duration: f64,
    /// True if everything ran to its end.
    pub complete: bool,
    /// Reason why it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_because: Option<String>,
    /// True if it ended because something failed that should not: a flush, a device.
    #[serde(default)]
    pub failed: bool,
    /// The severity of the worst verdict: `none`, `info`, `warning` or `danger`.
    #[serde(default = "none")]
    pub level: String,
    /// The run in one sentence: its worst finding, or what was reached.
    #[serde(default)]
    pub headline: String,
    /// The write path beneath the targets; of several the first of [`paths`](Self::paths). Null if it is not
    /// known.
    pub path: Option<WritePath>,
    /// Reason why the path beneath a target is not known: that of the first such target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_unknown_because: Option<String>,
    /// Each write path beneath the targets once, in the order of the targets. Empty in documents of checks,
    /// where `path` is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<TargetPath>,
    /// Each target of each job.
    pub targets: Vec<RunTarget>,
    /// All targets together.
    pub total: Sides,
    /// Spans in order, each of jobs that ran at the same time; at least one.
    pub spans: Vec<RunSpan>,
    /// The transactions of an application; null for a load of operations alone.
    pub transactions: Option<Transactions>,
    /// Requests that the underlying devices received, phase by phase and without a gap: the sum is what an
    /// outside observer of /proc/diskstats sees. Empty where no device can be observed, or nobody kept it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounting: Vec<Account>,
    /// By how much a latency may be too long, in seconds; null if that was not measured.
    pub latency_resolution_seconds: Option<f64>,
    /// Number of operations whose latency may be too long by more than `latency_resolution_seconds`, because
    /// the completions they were waited for with came late: by 4 ms at most.
    pub latencies_late: u64,
    /// How latencies are taken, and which way they err.
    pub latency_resolution: String,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// Requested workload in plumb's own language (TOML): it can be run again.
    pub workload: String,
    /// Findings of the survey and verdicts of the measurement.
    pub verdicts: Vec<Finding>,
    /// Where all this was measured.
    pub environment: Environment,
    /// Where the recording is; null if it is not kept.
    pub run_directory: Option<String>,
}

/// A write path, and the targets that it is beneath.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetPath {
    /// The targets, as [`RunTarget::opened`].
    pub targets: Vec<String>,
    /// The path; what it says of its target is of the first of them.
    pub path: WritePath,
}

/// Requests that the devices beneath the target received during one phase, summed over all devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The phase, including its preparation and its recording.
    pub phase: String,
    /// Time that it took, in seconds.
    pub seconds: f64,
    /// Flush requests; null where the kernel does not count them.
    pub flushes: Option<u64>,
    /// Reads.
    pub reads: u64,
    /// Writes, one for every flush taken out once it is known that flushes are counted as writes; a lower
    /// bound where flushes carried data.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// Transactions that an application performed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// Number that completed.
    pub count: u64,
    /// Per second.
    pub per_second: f64,
    /// Syncs for each; null if none completed.
    pub syncs_each: Option<f64>,
    /// From the start of one to its end; null if none completed.
    pub latency: Option<Latency>,
    /// The calls that they are made of.
    pub calls: Vec<CallLatency>,
}

/// Calls of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallLatency {
    /// Name of the call: `fsync`, `rename`.
    pub name: String,
    /// How long they took.
    pub latency: Latency,
}

/// One target of one job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTarget {
    /// Name of the target, as typed.
    pub name: String,
    /// Opened object: an absolute path, or a scheme.
    pub opened: String,
    /// Index of the target's span in `spans`.
    pub span: usize,
    /// Index of the target's job in the `jobs` of that span.
    pub job: usize,
    /// How large it is.
    pub size: u64,
    /// Bytes of the range that was touched.
    pub range_bytes: u64,
    /// How requests reached the kernel: `io_uring`, `pread/pwrite`, `mmap`.
    pub engine: String,
    /// Reason why not by io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_because: Option<String>,
    /// Reason why it could not be measured, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_because: Option<String>,
    /// Facts that the device states about itself.
    pub device: DeviceFacts,
    /// Results of untorn writes; absent where the job asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic: Option<AtomicResult>,
    /// Requests to the target, and their results.
    #[serde(flatten)]
    pub sides: Sides,
}

/// Results of untorn writes (`RWF_ATOMIC`) to one target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicResult {
    /// The largest untorn write that the target takes, in bytes.
    pub unit_bytes: u64,
    /// Writes that were refused (EINVAL, EOPNOTSUPP): the kernel could not send them as one.
    pub refused: u64,
    /// Blocks that were read back in part old and in part new; null without verification.
    pub torn: Option<u64>,
}

/// Facts that a device states about itself. Null means that the device does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// True if the device has a volatile write cache that is on.
    pub volatile_cache: Option<bool>,
    /// True if the device has FUA of its own.
    pub fua_native: Option<bool>,
    /// The time of one turn, in seconds, if the drive itself states that it turns.
    pub revolution_seconds: Option<f64>,
}

/// Where and how a run was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// plumb's own version.
    pub plumb: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Seed of all random choices, in the document of a check; [`RunDocument::seed`] in every run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The directory that it was typed in, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
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
    /// Size of the test file that a check made, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// How the direct requests of a check were submitted: `io_uring` or `pread/pwrite`. The targets of other
    /// runs have each their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Reason why not by io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_because: Option<String>,
    /// Findings that root would have shown in addition, one line each; empty when run as root.
    #[serde(default)]
    pub root_would_add: Vec<String>,
}

fn none() -> String {
    "none".to_owned()
}

impl RunDocument {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/load/1";

    /// Statement that holds for every latency of the document.
    pub const LATENCY_RESOLUTION: &str = "One reading of the clock serves a batch of completions and is taken after \
        they were reaped: latencies are never too short, and too long by at most the time since the queue was last \
        looked at.";

    /// Returns the document of a run that has measured nothing yet.
    pub fn empty(kind: RunKind) -> Self {
        Self {
            kind,
            level: none(),
            latency_resolution: Self::LATENCY_RESOLUTION.to_owned(),
            ..Self::default()
        }
    }

    /// Returns true if it is of a check: its answer is what an fsync is worth, not a rate.
    pub fn is_check(&self) -> bool {
        self.kind == RunKind::Check
    }

    /// Returns the command that makes such a run.
    pub fn command(&self) -> &'static str {
        if self.is_check() { "check" } else { "load" }
    }

    /// Returns the write path beneath `target`; `None` if it is not known.
    pub fn path_of(&self, target: &RunTarget) -> Option<&WritePath> {
        if self.paths.is_empty() {
            return self.path.as_ref();
        }
        let beneath = self.paths.iter().find(|one| one.targets.contains(&target.opened));
        beneath.map(|one| &one.path)
    }

    /// Returns each path beneath a target once.
    pub fn all_paths(&self) -> Vec<&WritePath> {
        self.named_paths().into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the write paths, each once, with the targets that each is beneath if there are several.
    pub(crate) fn named_paths(&self) -> Vec<(String, &WritePath)> {
        match self.paths.as_slice() {
            [] => self.path.iter().map(|path| (String::new(), path)).collect(),
            [one] => vec![(String::new(), &one.path)],
            several => several.iter().map(|one| (one.targets.join(", "), &one.path)).collect(),
        }
    }

    /// Adds a path beneath the target that was opened as `opened`. The same path of another target is kept
    /// once.
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

    /// Returns the targets on the devices of target number `index` in its span, itself among them: the
    /// counters of the devices are of all of these together. Only itself, if nothing was counted.
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

    /// Returns the name under which exports tell what the storage of target number `index` counted, so that a
    /// sum over targets counts it once: all the `labels` of the targets that share it, beside the first of
    /// them. `None` beside the others.
    pub(crate) fn storage_label(&self, index: usize, labels: &[String]) -> Option<String> {
        let sharers = self.sharers(index);
        let names = || sharers.iter().filter_map(|number| labels.get(*number)).map(String::as_str);
        (sharers.first() == Some(&index)).then(|| names().collect::<Vec<_>>().join(", "))
    }

    /// Returns the job of `target`; `None` if the document names one that is not there.
    pub fn job_of(&self, target: &RunTarget) -> Option<&RunJob> {
        self.spans.get(target.span)?.jobs.get(target.job)
    }
}

//! The document of `plumb prove trace --json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Audit, Finding, Lapse, TracedCalls};

/// Document of what a program synced, and of what it left to luck.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceDocument {
    /// [`TraceDocument::SCHEMA`].
    pub schema: String,
    /// The program with its arguments.
    pub command: Vec<String>,
    /// The directory beneath which files were looked at.
    pub beneath: String,
    /// How the program ended, such as `exit status: 0`.
    pub ended: String,
    /// True if it ended with success.
    pub succeeded: bool,
    /// How many writes of the drive failed on purpose; null if none was to.
    pub failed_writes: Option<u64>,
    /// How many fsync(2), fdatasync(2) and syncfs(2) failed. sync(2) reports no errors.
    pub failed_syncs: u64,
    /// Findings of what the program left to luck, in the order of its calls.
    pub findings: Vec<TraceFinding>,
    /// How often each file or directory was synced with success; by path beneath the directory, which itself
    /// is `.`.
    pub synced: BTreeMap<String, u64>,
    /// How often ways to write were set up that its calls do not tell of: `mmap`, `io_uring`, `aio`. What
    /// went through them was not seen.
    pub not_seen: BTreeMap<String, u64>,
    /// States that a power cut may leave; null if they were not explored.
    pub states: Option<TraceStates>,
}

/// States that a power cut may leave on a file system that promises only POSIX, each compared with what the
/// program had made visible.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceStates {
    /// Number of states that were explored.
    pub explored: u64,
    /// Number of those that fail.
    pub failing: u64,
    /// True if there are no others.
    pub exhaustive: bool,
    /// Reason why not all of them were explored, or not all that the program did is in them.
    pub incomplete_because: Option<String>,
    /// Ways in which states fail.
    pub failures: Vec<TraceFailure>,
}

/// Way in which states fail.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceFailure {
    /// Class of the failure, such as `lost-acknowledged`.
    pub class: String,
    /// Number of states that fail so.
    pub states: u64,
    /// Difference of the simplest of them, in words.
    pub words: String,
}

/// One thing that was left unsynced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceFinding {
    /// `data-not-synced`, `directory-not-synced`, `renamed-before-sync`, `failed-sync-ignored`,
    /// `failed-sync-retried` or `failure-not-seen`.
    pub kind: String,
    /// File that the finding concerns, beneath the directory.
    pub path: String,
    /// When the call was made after which something is missing, in seconds since the program was started.
    pub at: f64,
    /// Description of the finding, in one sentence.
    pub sentence: String,
}

impl TraceDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-trace/1";

    /// Builds the document from the calls of a program. One that ended with an error has not ignored the
    /// fsync that failed, and promised nothing of what it had not synced by then.
    pub fn new(traced: &TracedCalls, succeeded: bool) -> Self {
        let root = &*traced.root;
        let mut audit = Audit::beneath(root, &traced.names);
        traced.calls.iter().for_each(|call| audit.take(call));
        let failed_syncs = traced.calls.iter().filter(|call| call.is_failed_sync()).count() as u64;
        let has_stopped = !succeeded && failed_syncs > 0;
        let shown = |path: &Path| match path.strip_prefix(root) {
            Ok(beneath) if beneath.as_os_str().is_empty() => ".".to_owned(),
            beneath => beneath.unwrap_or(path).display().to_string(),
        };
        let findings = audit.findings().into_iter();
        let findings =
            findings.filter(|one| !has_stopped || matches!(one.lapse, Lapse::FailedSyncRetried { .. }));
        Self {
            schema: Self::SCHEMA.to_owned(),
            beneath: root.display().to_string(),
            succeeded,
            failed_syncs,
            findings: findings
                .map(|Finding { lapse, path, at, .. }| {
                    let (kind, sentence) = lapse.told();
                    TraceFinding {
                        kind: kind.to_owned(),
                        path: shown(&path),
                        at: at.since(traced.began).as_secs_f64(),
                        sentence,
                    }
                })
                .collect(),
            synced: audit.synced().iter().map(|(path, count)| (shown(path), *count)).collect(),
            not_seen: audit.not_seen().iter().map(|(way, count)| ((*way).to_owned(), *count)).collect(),
            ..Self::default()
        }
    }

    /// Puts down that so many writes of the drive failed beneath the program. One that ended with success and
    /// was told by no call could not know.
    pub fn set_failed_writes(&mut self, failed: u64) {
        self.failed_writes = Some(failed);
        if failed > 0 && self.failed_syncs == 0 && self.succeeded {
            let sentence =
                "a write of the drive failed, and no fsync told the program; sync(2) reports no errors";
            self.findings.push(TraceFinding {
                kind: "failure-not-seen".to_owned(),
                path: ".".to_owned(),
                sentence: sentence.to_owned(),
                ..TraceFinding::default()
            });
        }
    }
}

impl Lapse {
    /// Returns the kind of the lapse in the document, and the sentence.
    fn told(&self) -> (&'static str, String) {
        match self {
            Self::DataNotSynced { bytes } => {
                let what = match bytes {
                    0 => "its size was changed".to_owned(),
                    bytes => format!("{bytes} bytes were written"),
                };
                ("data-not-synced", format!("{what} and not synced afterwards"))
            }
            Self::DirectoryNotSynced(change) => {
                let what = match *change {
                    "open" | "mkdir" => "made",
                    "link" => "linked",
                    "rename" => "renamed",
                    _ => "removed",
                };
                ("directory-not-synced", format!("the directory was not synced after it was {what}"))
            }
            Self::RenamedBeforeSync => {
                ("renamed-before-sync", "it was renamed before its data was synced".to_owned())
            }
            Self::FailedSyncIgnored { error } => {
                ("failed-sync-ignored", format!("fsync failed ({error}) and the program went on"))
            }
            Self::FailedSyncRetried { error } => (
                "failed-sync-retried",
                format!(
                    "fsync failed ({error}); a later one succeeded, which says nothing of the data before"
                ),
            ),
        }
    }
}

//! Documents of `plumb policy` that combine several of `plumb_policy`, as `--json` prints them.

use std::path::{Path, PathBuf};

use plumb_policy::apply::Report;
use plumb_policy::claims::Claim;
use plumb_policy::device::raid_tool::RaidReport;
use plumb_policy::gateway::recording::Exchange;
use plumb_policy::observe::Observation;
use plumb_policy::persist::{InstallResult, KeptPolicy, Ledger};
use plumb_policy::plan::Plan;
use plumb_policy::raid::Controller;
use plumb_policy::view::PolicyDocument;
use serde::Serialize;

/// `plumb policy show`: the disks, and the disks hidden behind RAID controllers.
#[derive(Debug, Serialize)]
pub struct PolicyShow {
    /// Disks.
    #[serde(flatten)]
    pub document: PolicyDocument,
    /// Report of a controller's own program, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidReport>,
    /// RAID controllers of this machine, with the commands that query them.
    pub raid_controllers: Vec<Controller>,
    /// True if it ran as root. Otherwise values that only root may query are missing.
    pub as_root: bool,
    /// Commands sent to the drives and their responses, for comparison with a specification.
    #[serde(skip)]
    pub exchanges: Option<Vec<Exchange>>,
    /// True if one disk was named, so that everything about it is shown.
    #[serde(skip)]
    pub is_of_one: bool,
}

/// `plumb policy plan`: a plan, and its presentation.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ShownPlan<'a> {
    /// Plan.
    pub plan: &'a Plan,
    /// True if the bytes of each step are shown.
    #[serde(skip)]
    pub with_bytes: bool,
    /// Sentence below the plan about the next step; may be empty.
    #[serde(skip)]
    pub end: String,
}

/// `plumb policy apply`: the outcome for each disk.
#[derive(Debug, Serialize)]
pub struct PolicyApply {
    /// Outcome of each disk.
    #[serde(flatten)]
    pub report: Report,
    /// Latency of a light load during the changes; null without one.
    pub observation: Option<Observation>,
}

/// `plumb policy claim`: a claim that was recorded or withdrawn.
#[derive(Debug, Serialize)]
pub struct PolicyClaim {
    /// Name and version of the document: [`PolicyClaim::SCHEMA`].
    pub schema: &'static str,
    /// File that holds the claims.
    pub file: PathBuf,
    /// Identity of the disk.
    pub identity: String,
    /// Kernel's current name of the disk; null if it is absent.
    pub name: Option<String>,
    /// Recorded claim; null if claims were withdrawn.
    pub claim: Option<Claim>,
    /// Number of withdrawn claims.
    pub withdrawn: usize,
}

impl PolicyClaim {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/policy-claim/1";

    /// Creates the document of a disk with this identity, without changes to `file`.
    pub fn new(file: &Path, identity: &str) -> Self {
        let (file, identity) = (file.to_owned(), identity.to_owned());
        Self { schema: Self::SCHEMA, file, identity, name: None, claim: None, withdrawn: 0 }
    }
}

/// `plumb policy persist`: the persistent policies, and the files written or removed.
#[derive(Debug, Serialize)]
pub struct PolicyPersist {
    /// Name and version of the document: [`PolicyPersist::SCHEMA`].
    pub schema: &'static str,
    /// Persistent policies.
    pub kept: Vec<KeptPolicy>,
    /// Files written or removed.
    pub files: Vec<PathBuf>,
    /// Commands to run so that the change applies before the next boot.
    pub then_run: Vec<&'static str>,
    /// True if the files belong to this machine, false for an image.
    #[serde(skip)]
    pub is_here: bool,
    /// Removed files. The others were written.
    #[serde(skip)]
    pub removed: Vec<PathBuf>,
}

impl PolicyPersist {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/policy-persist/1";

    /// Creates the document of the current ledger and of the changes made.
    pub fn new(ledger: Ledger, done: InstallResult) -> Self {
        let InstallResult { files, then_run } = done;
        let removed = files.iter().filter(|file| file.symlink_metadata().is_err()).cloned().collect();
        Self { schema: Self::SCHEMA, kept: ledger.kept, files, then_run, removed, is_here: false }
    }
}

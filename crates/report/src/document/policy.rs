//! The documents of `plumb policy` that are made of several of `plumb_policy`'s, as `--json` prints them.

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

/// `plumb policy show`: the disks, and what RAID controllers hide of others.
#[derive(Debug, Serialize)]
pub struct PolicyShow {
    /// The disks.
    #[serde(flatten)]
    pub document: PolicyDocument,
    /// Report of a controller's own program, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidReport>,
    /// Controllers of this machine, with what to ask their programs.
    pub raid_controllers: Vec<Controller>,
    /// True if it was read as root; otherwise what a drive itself says stays hidden where only root may ask.
    pub as_root: bool,
    /// Questions to the drives and their answers, for people who hold them against a specification.
    #[serde(skip)]
    pub exchanges: Option<Vec<Exchange>>,
    /// True if one disk was named, of which everything is wanted.
    #[serde(skip)]
    pub is_of_one: bool,
}

/// `plumb policy plan`: a plan, with what is shown of it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ShownPlan<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// True if the bytes of each step are shown.
    #[serde(skip)]
    pub with_bytes: bool,
    /// Sentence below the plan that says what to do with it; empty for none.
    #[serde(skip)]
    pub end: String,
}

/// `plumb policy apply`: what became of each disk.
#[derive(Debug, Serialize)]
pub struct PolicyApply {
    /// Outcome of each disk.
    #[serde(flatten)]
    pub report: Report,
    /// Latency of a light load meanwhile; null if there was none.
    pub observation: Option<Observation>,
}

/// `plumb policy claim`: a word that was recorded, or taken back.
#[derive(Debug, Serialize)]
pub struct PolicyClaim {
    /// [`PolicyClaim::SCHEMA`].
    pub schema: &'static str,
    /// File that holds the claims.
    pub file: PathBuf,
    /// The disk.
    pub identity: String,
    /// The kernel's name of the disk now; null if it is not here.
    pub name: Option<String>,
    /// Claim that was recorded; null if claims were taken back.
    pub claim: Option<Claim>,
    /// Number of claims that were taken back.
    pub withdrawn: usize,
}

impl PolicyClaim {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/policy-claim/1";

    /// Creates the document of a disk with this identity, of which nothing was changed in `file`.
    pub fn new(file: &Path, identity: &str) -> Self {
        let (file, identity) = (file.to_owned(), identity.to_owned());
        Self { schema: Self::SCHEMA, file, identity, name: None, claim: None, withdrawn: 0 }
    }
}

/// `plumb policy persist`: what is kept, and what was written or removed for it.
#[derive(Debug, Serialize)]
pub struct PolicyPersist {
    /// [`PolicyPersist::SCHEMA`].
    pub schema: &'static str,
    /// Policies that are kept.
    pub kept: Vec<KeptPolicy>,
    /// Files that were written or removed.
    pub files: Vec<PathBuf>,
    /// Commands to run, so that it counts before the next start.
    pub then_run: Vec<&'static str>,
    /// True if the files are of this machine, not of an image.
    #[serde(skip)]
    pub is_here: bool,
    /// Files that were removed; the others were written.
    #[serde(skip)]
    pub removed: Vec<PathBuf>,
}

impl PolicyPersist {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/policy-persist/1";

    /// Creates the document of what is kept now, and of what was done for it.
    pub fn new(ledger: Ledger, done: InstallResult) -> Self {
        let InstallResult { files, then_run } = done;
        let removed = files.iter().filter(|file| file.symlink_metadata().is_err()).cloned().collect();
        Self { schema: Self::SCHEMA, kept: ledger.kept, files, then_run, removed, is_here: false }
    }
}

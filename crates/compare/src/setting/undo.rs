//! Undoing of a setting, as data that outlives the process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_block::{RealClock, Time};
use plumb_linux::{isolated_thread, tree};
use plumb_policy::apply::{ApplyEnd, Report, Session, Silent};
use plumb_policy::claims::Claims;
use plumb_policy::error::PolicyError;
use plumb_policy::gateway::Gateway;
use plumb_policy::journal::JournalError;
use plumb_policy::rollback::rollback_in;
use plumb_state::whole_file;
use plumb_targets::Kind;
use plumb_targets::cache::{self, CacheConfig, NamedCache, Opening};
use plumb_trial::TrialError;
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

use super::{failed, refused};

/// The machine on which levels are set.
pub struct Machine {
    /// Gateway to the machine's disks.
    pub gateway: Arc<dyn Gateway>,
    /// The words of administrators, without which nothing is `protected`.
    pub claims: Claims,
    /// Now, for the claims.
    pub now: Timestamp,
    /// Where the journals of policies are.
    pub journals: PathBuf,
    /// Where what is to be put back is written down.
    pub records: PathBuf,
}

/// Action that puts one setting back. Each may be carried out twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "undo")]
pub enum Undo {
    /// The policy of disks, from the journal of the apply that changed it first.
    Policy {
        /// The directory of the journal.
        journal: PathBuf,
    },
    /// A file of the kernel, in the same boot only: another one begins with the kernel's defaults.
    Attribute {
        /// The file.
        path: PathBuf,
        /// Text that the file held.
        text: String,
        /// The boot.
        boot: String,
    },
    /// A write-back cache is drained and detached.
    Cache {
        /// Name of the cache.
        name: String,
        /// The file of its log, if that was made for it.
        log: Option<PathBuf>,
    },
    /// A file system in a file is unmounted, and goes.
    Mount {
        /// Where it is mounted: a directory that was made for it.
        at: PathBuf,
        /// The file.
        image: PathBuf,
    },
}

impl Undo {
    /// Returns true if carrying this out makes `later` needless: of a file what it held first counts.
    pub(super) fn covers(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::Attribute { path, .. }, Self::Attribute { path: other, .. }) => path == other,
            _ => self == later,
        }
    }
}

impl Machine {
    /// Returns the boot that this is; empty where it is not known.
    pub(super) fn boot(&self) -> String {
        tree::boot_id(self.gateway.tree()).unwrap_or_default()
    }

    pub(super) fn session<'a>(&'a self, stop: &'a AtomicBool) -> Session<'a> {
        Session { gateway: &*self.gateway, claims: &self.claims, now: self.now, stop, progress: &Silent }
    }

    /// Carries out all of `list`, the last first. One that fails does not keep the others from it.
    ///
    /// # Errors
    /// What could not be put back, and why.
    pub(super) fn undo_all(&self, list: &[Undo]) -> Result<(), TrialError> {
        let failures = list.iter().rev().filter_map(|undo| {
            let error = self.undo(undo).err()?;
            Some(format!("{undo} was not put back: {}", plumb_block::in_one_line(&error)))
        });
        let failures: Vec<String> = failures.collect();
        if failures.is_empty() { Ok(()) } else { Err(failed(&plain(failures.join("; ")))) }
    }

    fn undo(&self, undo: &Undo) -> Result<(), TrialError> {
        match undo {
            Undo::Policy { journal } => self.roll_back(journal),
            Undo::Attribute { path, text, boot } if *boot == self.boot() => {
                isolated_thread::write(path.clone(), text.clone()).map_err(|error| failed(&error))
            }
            Undo::Attribute { .. } => Ok(()),
            Undo::Cache { name, log } => {
                detach(name)?;
                log.as_deref().map_or(Ok(()), remove)
            }
            Undo::Mount { at, image } => {
                match unmount(at, UnmountFlags::NOFOLLOW) {
                    // The file system is not mounted any more, or was never mounted.
                    Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
                    Err(errno) => return Err(failed(&std::io::Error::from(errno))),
                }
                match std::fs::remove_dir(at) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(&error)),
                    _ => remove(image),
                }
            }
        }
    }

    fn roll_back(&self, journal: &Path) -> Result<(), TrialError> {
        let stop = AtomicBool::new(false);
        match rollback_in(&self.session(&stop), journal) {
            // Nothing was changed then.
            Err(PolicyError::Journal(JournalError::NotBegun { .. })) => Ok(()),
            Err(error) => Err(failed(&error)),
            Ok(report) => verified(&report),
        }
    }
}

/// Checks that all disks of a report are as they should be.
pub(super) fn verified(report: &Report) -> Result<(), TrialError> {
    if report.ended == ApplyEnd::Complete {
        return Ok(());
    }
    let each: Vec<String> =
        report.disks.iter().map(|disk| format!("{}: {:?}", disk.name, disk.result)).collect();
    let go_on = report.go_on.as_deref().unwrap_or_default();
    Err(refused(format!("{}; {go_on}", each.join(", "))))
}

/// Drains a cache and takes it away; nothing if there is none of the name.
fn detach(name: &str) -> Result<(), TrialError> {
    let config = match CacheConfig::load(&cache::directory(), name) {
        Err(error) if error.kind() == Kind::NotFound => return Ok(()),
        config => config?,
    };
    let time = Time::Real(Arc::new(RealClock::start()));
    let open = NamedCache::open(config, Opening::STRICT, &time)?;
    open.begin_to_detach();
    open.detached(false)?;
    Ok(())
}

fn remove(file: &Path) -> Result<(), TrialError> {
    whole_file::remove(file).map(drop).map_err(|error| failed(&error))
}

fn plain(text: String) -> std::io::Error {
    std::io::Error::other(text)
}

impl std::fmt::Display for Undo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Policy { journal } => write!(f, "the write-cache policy of {}", journal.display()),
            Self::Attribute { path, text, .. } => write!(f, "{} = {text}", path.display()),
            Self::Cache { name, .. } => write!(f, "the cache {name}"),
            Self::Mount { at, .. } => write!(f, "the file system at {}", at.display()),
        }
    }
}

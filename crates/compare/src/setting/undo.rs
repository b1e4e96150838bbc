//! Undoing of a setting, as data that outlives the process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_block::{FailureKind, Time};
use plumb_caches::{CacheConfig, NamedCache, Opening};
use plumb_linux::{isolated_thread, tree};
use plumb_policy::apply::{ApplyEnd, Report, Session};
use plumb_policy::claims::Claims;
use plumb_policy::error::PolicyError;
use plumb_policy::gateway::Gateway;
use plumb_policy::journal::JournalError;
use plumb_policy::rollback::rollback_in;
use plumb_state::whole_file;
use plumb_targets::Kind;
use plumb_trial::TrialError;
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

use super::{failed, refused};

/// The machine on which levels are set.
pub struct Machine {
    /// Gateway to the machine's disks.
    pub gateway: Arc<dyn Gateway>,
    /// Claims of administrators, which `protected` requires.
    pub claims: Claims,
    /// Current time, for the expiry of claims.
    pub now: Timestamp,
    /// Directory of the journals of policies.
    pub journals: PathBuf,
    /// Directory of the records of settings to restore.
    pub records: PathBuf,
}

/// Action that restores one setting. An action may be executed twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "undo")]
pub enum Undo {
    /// The policy of disks, from the journal of the apply that changed it first.
    Policy {
        /// The directory of the journal.
        journal: PathBuf,
    },
    /// A file of the kernel, only in the same boot: another boot starts with the kernel's defaults.
    Attribute {
        /// The file.
        path: PathBuf,
        /// Text that the file held.
        text: String,
        /// Identifier of the boot.
        boot: String,
    },
    /// A write-back cache is drained and detached.
    Cache {
        /// Name of the cache.
        name: String,
        /// File of the log, if it was created for the cache.
        log: Option<PathBuf>,
    },
    /// A file system in a file is unmounted, and the file is removed.
    Mount {
        /// Mount point: a directory that was created for the file system.
        at: PathBuf,
        /// The file.
        image: PathBuf,
    },
}

impl Undo {
    /// Returns true if this action makes `later` unnecessary: of several texts of a file, the first counts.
    pub(super) fn covers(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::Attribute { path, .. }, Self::Attribute { path: other, .. }) => path == other,
            _ => self == later,
        }
    }
}

impl Machine {
    /// Returns the identifier of this boot; empty if unknown.
    pub(super) fn boot(&self) -> String {
        tree::boot_id(self.gateway.tree()).unwrap_or_default()
    }

    pub(super) fn session<'a>(&'a self, stop: &'a AtomicBool) -> Session<'a> {
        Session { gateway: &*self.gateway, claims: &self.claims, now: self.now, stop, progress: &|_| () }
    }

    /// Executes all actions of `list`, the last first. A failed action does not prevent the others.
    ///
    /// # Errors
    /// Fails with the settings that could not be restored, and the reasons.
    pub(super) fn undo_all(&self, list: &[Undo]) -> Result<(), TrialError> {
        let failures = list.iter().rev().filter_map(|undo| {
            let error = self.undo(undo).err()?;
            Some(format!("{undo} was not put back: {}", plumb_block::in_one_line(&error)))
        });
        let failures: Vec<String> = failures.collect();
        if failures.is_empty() {
            Ok(())
        } else {
            Err(TrialError::new(FailureKind::Failed, failures.join("; ")))
        }
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
            // The journal has not begun, so nothing was changed.
            Err(PolicyError::Journal(JournalError::NotBegun { .. })) => Ok(()),
            Err(error) => Err(failed(&error)),
            Ok(report) => verified(&report),
        }
    }
}

/// Checks that all disks of a report match their goals.
pub(super) fn verified(report: &Report) -> Result<(), TrialError> {
    if report.ended == ApplyEnd::Complete {
        return Ok(());
    }
    let each: Vec<String> =
        report.disks.iter().map(|disk| format!("{}: {:?}", disk.name, disk.result)).collect();
    let go_on = report.go_on.as_deref().unwrap_or_default();
    Err(refused(format!("{}; {go_on}", each.join(", "))))
}

/// Drains and detaches a cache; does nothing if no cache has the name.
fn detach(name: &str) -> Result<(), TrialError> {
    let config = match CacheConfig::load(&plumb_caches::directory(), name) {
        Err(error) if error.kind() == Kind::NotFound => return Ok(()),
        config => config?,
    };
    let time = Time::real();
    let open = NamedCache::open(config, Opening::STRICT, &time)?;
    open.begin_to_detach();
    open.detached(false)?;
    Ok(())
}

fn remove(file: &Path) -> Result<(), TrialError> {
    whole_file::remove(file).map(drop).map_err(|error| failed(&error))
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

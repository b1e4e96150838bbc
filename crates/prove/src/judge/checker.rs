//! Check of a state at a path, by the subject or by comparison with the moments of the work.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::Nanos;
use ring::digest::{SHA256, digest};

use super::parameters::Judge;
use crate::error::{Error, Result, cannot};
use crate::mount_point::MountPoint;
use crate::oracle::{FoundTree, Moments, Reading};
use crate::posix::Tree;
use crate::recording::Contents;
use crate::subject::{Outcome, Output, Subject};

/// Maximum length of an output in a report, in bytes.
const SHOWN_MAX: usize = 200;

/// Check of states.
pub(super) struct Checker {
    pub(super) subject: Arc<dyn Subject>,
    /// Moments of the work, for a subject without a checker.
    moments: Option<Arc<Moments>>,
    /// Directory in which the trees of moments are created.
    directory: PathBuf,
}

impl Checker {
    /// Creates the checker of a judge.
    ///
    /// # Errors
    /// If the subject has no checker and the system calls of its work are unknown.
    pub(super) fn new(judge: &Judge<'_>) -> Result<Self> {
        let moments = judge.recorded.moments.clone();
        if judge.subject.is_judged_by_its_files() && moments.is_none() {
            let what = "without --check the system calls of the program must be known, and this recording lacks them";
            return Err(Error::missing(what, "record the program again, or name a checker with --check"));
        }
        Ok(Self {
            subject: Arc::clone(judge.subject),
            moments: moments.filter(|_| judge.subject.is_judged_by_its_files()),
            directory: judge.directory.to_owned(),
        })
    }

    /// Returns true if states are compared with the moments of the work.
    pub(super) const fn has_moments(&self) -> bool {
        self.moments.is_some()
    }

    /// Returns the time limit of a check in which each program may take `timeout`.
    pub(super) fn timeout(&self, timeout: Nanos) -> Nanos {
        let own = 1 + usize::from(self.subject.has_recovery());
        let programs = self.moments.as_ref().map_or(own, |moments| moments.longest() + 2);
        timeout.saturating_mul(programs as u64)
    }

    /// Judges the state at `path`.
    pub(super) fn outcome(&self, path: &Path, required: Option<u64>) -> Result<Outcome> {
        let Some(moments) = &self.moments else {
            let judged = || match self.subject.recover(path, required)? {
                Outcome::Intact => self.subject.check(path, required),
                failed => Ok(failed),
            };
            let checked = catch_unwind(AssertUnwindSafe(judged));
            return checked.map_err(|_| Error::failed(self.subject.name(), "its check panicked"))?;
        };
        match self.subject.read(path)? {
            Some(output) => moments
                .judge_reading(&reading(&output, path), required, &|tree| self.reading_of(tree, moments)),
            None => {
                let found = FoundTree::read(path).map_err(cannot(format!("read {}", path.display())))?;
                Ok(moments.judge(&found, required))
            }
        }
    }

    /// Runs the part of the check that writes to `path`, so that a second cut may take its writes: the
    /// recovery if the subject has one, otherwise the whole check.
    pub(super) fn write(&self, path: &Path, required: Option<u64>) -> Result<Outcome> {
        match self.subject.has_recovery() {
            true => self.subject.recover(path, required),
            false => self.outcome(path, required),
        }
    }

    /// Judges a tree of files without creating it, if that is possible. Its contents are those of the
    /// recording.
    pub(super) fn outcome_of_tree(
        &self,
        tree: &Tree,
        contents: &Contents,
        required: Option<u64>,
    ) -> Option<Outcome> {
        let moments = self
            .moments
            .as_ref()
            .filter(|moments| std::ptr::eq(&raw const moments.recording.contents, contents))?;
        (!self.subject.has_reader()).then(|| moments.judge(&FoundTree::from(tree), required))
    }

    /// Returns the output of the reader at a moment.
    fn reading_of(&self, tree: &Tree, moments: &Moments) -> Result<Reading> {
        let scratch = MountPoint::scratch(&self.directory)?;
        let path = scratch.path().join("state");
        let made = fs::create_dir(&path).and_then(|()| tree.make_in(&path, &moments.recording.contents));
        made.map_err(cannot(format!("make a moment in {}", path.display())))?;
        if let Some(owner) = self.subject.user() {
            own(owner, tree, &path)?;
        }
        let output = self.subject.read(&path)?;
        scratch.close()?;
        output
            .map(|output| reading(&output, &path))
            .ok_or_else(|| Error::failed(self.subject.name(), "has no reader"))
    }
}

/// Makes a user the owner of a tree of files at `root`.
pub(super) fn own(owner: &crate::subject::User, tree: &Tree, root: &Path) -> Result<()> {
    let paths = tree.nodes.keys().map(|path| root.join(path));
    paths.chain([root.to_owned()]).try_for_each(|path| owner.own(&path))
}

/// Returns the reading of an output, in which the path of the tree is replaced by a constant.
fn reading(output: &Output, place: &Path) -> Reading {
    let place = place.as_os_str().as_encoded_bytes();
    let (mut stdout, mut rest) = (Vec::with_capacity(output.stdout.len()), &output.stdout[..]);
    while let Some((first, more)) = rest.split_first() {
        match rest.strip_prefix(place) {
            Some(after) => {
                stdout.push(b'.');
                rest = after;
            }
            None => {
                stdout.push(*first);
                rest = more;
            }
        }
    }
    let text = String::from_utf8_lossy(&stdout);
    let shown: String = text.trim().chars().take(SHOWN_MAX).collect();
    let words = match output.stderr.trim() {
        "" => shown,
        stderr => format!("{shown} {}", stderr.chars().take(SHOWN_MAX).collect::<String>()),
    };
    Reading { status: output.status, digest: digest(&SHA256, &stdout).as_ref().to_vec(), words }
}

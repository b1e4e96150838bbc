//! Directory of this machine that holds one state after another, each a tree of files.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checker::{Checker, own};
use super::parameters::Judge;
use super::results::CheckResult;
use crate::error::{Result, cannot};
use crate::explore::OwnedState;
use crate::mount_point::{MountPoint, remove_tree};
use crate::posix::Tree;
use crate::posix::{Index, Layout};
use crate::recording::{Content, Recording};
use crate::subject::{Outcome, User};

/// Directory in which states are created.
pub(super) struct StateDirectory {
    pub(super) site: DirectorySite,
    scratch: MountPoint,
}

/// Parts that a thread needs to create states in a directory and check them.
#[derive(Clone)]
pub(super) struct DirectorySite {
    recording: Arc<Recording>,
    index: Arc<Index>,
    varied: Arc<HashSet<u64>>,
    /// User who owns each state; `None` for the user who runs plumb.
    owner: Option<User>,
    path: PathBuf,
}

impl StateDirectory {
    /// Creates the directory.
    pub(super) fn new(judge: &Judge<'_>, layout: &Layout) -> Result<Self> {
        let scratch = MountPoint::scratch(judge.directory)?;
        let owner = judge.subject.user().cloned();
        let site = DirectorySite {
            recording: Arc::clone(&judge.recorded.recording),
            index: Arc::new(Index::new(layout.clone())),
            varied: Arc::new(judge.explorer().varied()),
            owner,
            path: scratch.path().join("state"),
        };
        Ok(Self { site, scratch })
    }

    /// Returns the path of the state.
    pub(super) fn path(&self) -> &Path {
        &self.site.path
    }

    /// Removes the directory and the state in it.
    pub(super) fn close(self) -> Result<()> {
        self.scratch.close()
    }
}

impl DirectorySite {
    pub(super) fn make(&self, state: &OwnedState) -> Result<()> {
        self.make_tree(&self.tree(state).0)
    }

    /// Returns the tree of a state, and the blocks that were read for it, of those that may differ between
    /// states, in the order of the reads. A state that is equal in these blocks has the same tree.
    pub(super) fn tree(&self, state: &OwnedState) -> (Tree, Vec<(u64, Content)>) {
        let (mut looked_up, mut seen) = (Vec::new(), HashSet::new());
        let Recording { contents, logical_block, .. } = &*self.recording;
        let tree = self.index.tree(contents, *logical_block, &mut |lba| {
            let content = state.content(lba);
            if self.varied.contains(&lba) && seen.insert(lba) {
                looked_up.push((lba, content));
            }
            content
        });
        (tree, looked_up)
    }

    fn make_tree(&self, tree: &Tree) -> Result<()> {
        let contents = &self.recording.contents;
        let made = fs::create_dir(&self.path).and_then(|()| tree.make_in(&self.path, contents));
        made.map_err(cannot(format!("make a state in {}", self.path.display())))?;
        self.owner.as_ref().map_or(Ok(()), |owner| own(owner, tree, &self.path))
    }

    /// Checks the state, and removes it. The state is not created if its tree is enough for the check.
    pub(super) fn check(&self, checker: &Checker, state: &OwnedState) -> Result<CheckResult> {
        let (tree, read) = self.tree(state);
        if let Some(outcome) = checker.outcome_of_tree(&tree, &self.recording.contents, state.required) {
            return Ok(CheckResult { outcome, read, wrote: false });
        }
        self.make_tree(&tree)?;
        let looked = checker.outcome(&self.path, state.required);
        remove_tree(&self.path).map_err(cannot(format!("remove {}", self.path.display())))?;
        let outcome = match looked? {
            Outcome::Failed { class, words } => {
                Outcome::Failed { class, words: words.replace(&self.path.display().to_string(), ".") }
            }
            Outcome::Intact => Outcome::Intact,
        };
        Ok(CheckResult { outcome, read, wrote: false })
    }
}

//! File system alone, judged by its own checker.

use std::path::Path;

use plumb_linux::file_system::FileSystem;
use plumb_report::document::proof::FailureClass;

use super::files::{CHURN, Files};
use super::options::Settings;
use super::{Outcome, Subject};
use crate::error::{Error, Result};

/// Mixture of file operations. Only the structure of the file system is checked.
pub(super) struct Fsck(Files);

impl Fsck {
    pub(super) fn new(settings: &Settings<'_>) -> Result<Self> {
        Files::doing(settings.typed, &CHURN).map(Self)
    }
}

impl Subject for Fsck {
    fn name(&self) -> String {
        self.0.name()
    }

    fn set_up(&self, place: &Path) -> Result<()> {
        if place.is_dir() {
            return self.0.set_up(place);
        }
        let what = "without a file system there is nothing to check: give --fs ext4, xfs or btrfs";
        Err(Error::failed(self.name(), what))
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<()> {
        self.0.work(place, acknowledge)
    }

    /// Checkers change the file system, or refuse to check it, before the journal is replayed.
    fn is_checked_unmounted(&self) -> bool {
        true
    }

    fn check(&self, place: &Path, _required: Option<u64>) -> Result<Outcome> {
        let damage = FileSystem::check(place)?;
        Ok(damage.map_or(Outcome::Intact, |words| Outcome::failure(FailureClass::Corrupt, words)))
    }
}

//! Directory that is created for a run and always removed after it.
//!
//! Only files of this process are removed: the directory has a new name, creating it fails if the name
//! exists, and the removal follows no symbolic links.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use plumb_block::unix_time;

use crate::chance::Chance;
use crate::error::Error;

/// Directory that is removed on drop.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    removed: bool,
}

/// Number of names to try.
const TRIES: u64 = 100;

impl Scratch {
    /// Prefix of the names of all scratch directories.
    pub(crate) const PREFIX: &'static str = "plumb-load-";

    /// Creates a directory below `parent` that only this user can access.
    pub(crate) fn beneath(parent: &Path) -> Result<Self, Error> {
        let failed = |path, source| Error::Directory { operation: "create", path, source };
        // Only the name depends on the time; two simultaneous runs often have the same seed.
        let mut chance = Chance::from_seed(unix_time().0, u64::from(std::process::id()));
        for _ in 0..TRIES {
            let path = parent.join(format!("{}{:08x}", Self::PREFIX, chance.below(1 << 32)));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, removed: false }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(path, error)),
            }
        }
        Err(failed(parent.to_owned(), ErrorKind::AlreadyExists.into()))
    }

    /// Returns the path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory and returns `result`. A failed removal is an error, too.
    pub(crate) fn remove_after<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.removed = true;
        let path = self.path.clone();
        match (std::fs::remove_dir_all(&path), result) {
            (Ok(()), result) => result,
            (Err(source), Ok(_)) => Err(Error::Directory { operation: "remove", path, source }),
            (Err(removal), Err(source)) => {
                Err(Error::LeftBehind { path, removal: removal.to_string(), source: Box::new(source) })
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.removed
            && let Err(error) = std::fs::remove_dir_all(&self.path)
        {
            // Reached only in a panic, so there is no other way to report it.
            eprintln!("plumb: cannot remove {}: {error}", self.path.display());
        }
    }
}

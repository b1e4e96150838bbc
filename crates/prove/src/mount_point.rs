//! Directories to mount at. A plumb that is killed leaves its own behind, and the next one removes it.

use std::fs;
use std::path::Path;

use plumb_state::{LockedRecord, Owner};
use tempfile::TempDir;

use crate::error::{Error, Result, cannot};

const PREFIX: &str = "plumb-prove-";

/// An empty directory, locked while it is in use. It goes when this is dropped.
pub(crate) struct MountPoint {
    directory: TempDir,
    _lock: LockedRecord,
}

impl MountPoint {
    /// Makes one in `directory`, and removes what killed processes left there.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        sweep(directory);
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(directory);
        let made = made.map_err(|error| {
            let what = format!("cannot make a directory in {}: {error}", directory.display());
            Error::missing(what, "make room there, or name another directory with TMPDIR")
        })?;
        match LockedRecord::take_over(made.path()).map_err(|error| Error::failed(&error, &error.source))? {
            Owner::Dead(lock) => Ok(Self { directory: made, _lock: lock }),
            // Another process took it for a left one before it was locked.
            Owner::Alive | Owner::None => Self::new(directory),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Removes it.
    pub(crate) fn close(self) -> Result<()> {
        let failed = cannot(format!("remove {}", self.path().display()));
        self.directory.close().map_err(failed)
    }
}

/// Removes what nobody uses any more.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && let Ok(Owner::Dead(_lock)) = LockedRecord::take_over(&entry.path()) {
            // What is not empty, or mounted at, is somebody else's.
            fs::remove_dir(entry.path()).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_has_left_goes_and_what_is_in_use_or_not_empty_stays() {
        let place = tempfile::tempdir().unwrap();
        let in_use = MountPoint::new(place.path()).unwrap();
        let [left, full, other] =
            ["plumb-prove-left", "plumb-prove-full", "other"].map(|name| place.path().join(name));
        [&left, &full, &other].into_iter().for_each(|path| fs::create_dir(path).unwrap());
        fs::write(full.join("file"), "x").unwrap();
        let next = MountPoint::new(place.path()).unwrap();
        let there = [&left, &full, &other, &in_use.path().to_owned()].map(|path| path.exists());
        assert_eq!(there, [false, true, true, true]);
        next.close().unwrap();
        in_use.close().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }
}

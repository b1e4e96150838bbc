//! Where attachments live: a directory of this user's alone, and in it one for each attachment.
//!
//! ```text
//! /run/plumb/attach/          0700; locked while attachments come and go
//!   NAME/
//!     server                  the number of the process that serves it, which keeps it locked for as long as it lives;
//!                             of a simulated drive each DriveRecord
//!     mount/disk              the file under the loop device
//! ```
//! Nothing is ever removed but by these names, and a mount point that is in use cannot be removed at all.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_state::places::{ATTACHMENTS, attachments_of_this_user};
use plumb_state::{DirectoryLock, LockedRecord, Owner};

use crate::error::{ExportError, Result, at};
use crate::name::is_name;
use crate::records::{PrivateDirectory, remove_if_there};

/// The directory of all attachments.
#[derive(Debug, Clone)]
pub(super) struct Base {
    directory: PrivateDirectory,
    /// True if it was made here just now, in place of the default.
    is_stopgap: bool,
}

impl Base {
    /// Returns `wanted`, or the default, made if it is not there.
    pub(super) fn open(wanted: Option<&Path>) -> Result<Self> {
        let mut is_stopgap = false;
        let directory = match wanted {
            Some(path) => PrivateDirectory::open(path)?,
            None => match PrivateDirectory::open(Path::new(ATTACHMENTS)) {
                Err(ExportError::Os { operation: "make", .. }) => {
                    let fallback = attachments_of_this_user();
                    is_stopgap = !fallback.exists();
                    PrivateDirectory::open(&fallback)?
                }
                opened => opened?,
            },
        };
        Ok(Self { directory, is_stopgap })
    }

    /// Opens the default directory of attachments; returns `None` if nobody has made one.
    pub(super) fn open_default() -> Result<Option<Self>> {
        match [PathBuf::from(ATTACHMENTS), attachments_of_this_user()].into_iter().find(|path| path.is_dir())
        {
            Some(path) => Self::open(Some(&path)).map(Some),
            None => Ok(None),
        }
    }

    /// Takes it away again if it was made here and nobody uses it.
    pub(super) fn take_back(&self) {
        if self.is_stopgap {
            // Whoever uses it keeps it from being removed.
            fs::remove_dir(self.directory.path()).unwrap_or_default();
        }
    }

    /// Waits until nobody else changes anything here, and keeps others from it.
    pub(super) fn lock(&self) -> Result<DirectoryLock> {
        self.directory.lock()
    }

    /// Keeps others from changing anything here; `None` while somebody does.
    pub(super) fn try_lock(&self) -> Result<Option<DirectoryLock>> {
        self.directory.try_lock()
    }

    /// Returns the directories of all attachments, dead or alive, by name.
    pub(super) fn attachments(&self) -> Result<Vec<AttachmentDirectory>> {
        let mut found = self.directory.names()?;
        found.retain(|name| is_name(name) && self.directory.path().join(name).is_dir());
        Ok(found.iter().map(|name| self.attachment(name)).collect())
    }

    /// Makes the directory of a new attachment that this process serves. While `_locked`.
    pub(super) fn create(&self, name: &str, _locked: &DirectoryLock) -> Result<AttachmentDirectory> {
        if !is_name(name) {
            return Err(ExportError::Name(name.to_owned()));
        }
        let mut directory = self.attachment(name);
        match private().create(&directory.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let pid = directory.server();
                return Err(ExportError::NameInUse { name: name.to_owned(), pid });
            }
            outcome => outcome.map_err(at("make", &directory.path))?,
        }
        let filled = directory.fill();
        if filled.is_err() {
            directory.remove().unwrap_or_default();
        }
        filled.map(|()| directory)
    }

    fn attachment(&self, name: &str) -> AttachmentDirectory {
        let path = self.directory.path().join(name);
        AttachmentDirectory { name: name.to_owned(), path, owned: None }
    }
}

/// The directory of one attachment.
#[derive(Debug, Clone)]
pub(super) struct AttachmentDirectory {
    pub(super) name: String,
    path: PathBuf,
    /// The record, where this process serves it.
    owned: Option<Arc<LockedRecord>>,
}

impl AttachmentDirectory {
    /// Returns where the file system is mounted.
    pub(super) fn mount_point(&self) -> PathBuf {
        self.path.join("mount")
    }

    fn record(&self) -> PathBuf {
        self.path.join("server")
    }

    fn fill(&mut self) -> Result<()> {
        let mount_point = self.mount_point();
        private().create(&mount_point).map_err(at("make", &mount_point))?;
        let taken = || at::<io::Error>("make", &self.record())(io::ErrorKind::AlreadyExists.into());
        let record = LockedRecord::create(&self.record())?.ok_or_else(taken)?;
        record.write_start(format!("{}\n", std::process::id()).as_bytes())?;
        self.owned = Some(Arc::new(record));
        Ok(())
    }

    /// Adds a line to the record.
    pub(super) fn describe(&self, line: &str) -> Result<()> {
        self.owned.iter().try_for_each(|record| Ok(record.append(line.as_bytes())?))
    }

    /// Returns the process that serves it, for messages; 0 if that was never written down.
    fn server(&self) -> u32 {
        let text = fs::read_to_string(self.record()).unwrap_or_default();
        text.lines().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Returns true if the attachment's server lives. The lock ensures that nobody makes one meanwhile.
    pub(super) fn is_served(&self, _locked: &DirectoryLock) -> Result<bool> {
        Ok(matches!(LockedRecord::take_over(&self.record())?, Owner::Alive))
    }

    /// Takes the directory away; what no longer exists is fine. Fails while the file system is mounted.
    pub(super) fn remove(&self) -> Result<()> {
        remove_if_there(&self.mount_point(), |path| fs::remove_dir(path))?;
        remove_if_there(&self.record(), |path| fs::remove_file(path))?;
        remove_if_there(&self.path, |path| fs::remove_dir(path))
    }
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn base() -> (tempfile::TempDir, Base) {
        let directory = tempfile::tempdir().unwrap();
        let base = Base::open(Some(&directory.path().join("attach"))).unwrap();
        (directory, base)
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let open = directory.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(Base::open(Some(&open)), Err(ExportError::Directory(_))));
        let link = directory.path().join("link");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&open, &link).unwrap();
        assert!(matches!(Base::open(Some(&link)), Err(ExportError::Directory(_))));
    }

    #[test]
    fn a_name_is_taken_once_and_free_again_after_removal() {
        let (_directory, base) = base();
        let locked = base.lock().unwrap();
        let first = base.create("a-1", &locked).unwrap();
        let pid = std::process::id();
        assert!(
            matches!(base.create("a-1", &locked), Err(ExportError::NameInUse { pid: found, .. }) if found == pid)
        );
        assert!(base.attachments().unwrap()[0].is_served(&locked).unwrap());
        first.remove().unwrap();
        base.create("a-1", &locked).unwrap();
    }

    #[test]
    fn it_is_served_until_the_last_who_has_it_is_gone() {
        let (_directory, base) = base();
        let locked = base.lock().unwrap();
        let served = base.create("a", &locked).unwrap();
        let again = served.clone();
        drop(served);
        let found = &base.attachments().unwrap()[0];
        assert!(found.is_served(&locked).unwrap());
        drop(again);
        assert!(!found.is_served(&locked).unwrap(), "as after a kill: the record is there, its lock is not");
        fs::remove_file(found.record()).unwrap();
        assert!(!found.is_served(&locked).unwrap(), "one that was never finished");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let (_directory, base) = base();
        let locked = base.lock().unwrap();
        for name in ["", ".", "..", "a/b", ".hidden", "a b", "a\n", &"x".repeat(65)] {
            assert!(matches!(base.create(name, &locked), Err(ExportError::Name(_))), "{name:?}");
        }
    }

    #[test]
    fn only_what_is_known_is_removed() {
        let (_directory, base) = base();
        let attachment = base.create("a", &base.lock().unwrap()).unwrap();
        let strange = attachment.path.join("strange");
        fs::write(&strange, "mine").unwrap();
        assert!(attachment.remove().is_err());
        assert!(strange.exists());
    }
}

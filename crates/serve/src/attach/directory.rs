//! Directories of attachments: a private directory of this user, with a subdirectory for each attachment.
//!
//! ```text
//! /run/plumb/attach/          0700; locked while attachments come and go
//!   NAME/
//!     server                  number of the serving process, which locks the file while it lives; then the
//!                             LoopBinding of the device, and if they apply: the directory of the service's
//!                             control socket, each DriveRecord of a simulated drive, and MOUNTS_GO if only
//!                             the server mounts the device
//!     mount/disk              the file under the loop device
//! ```
//! Only files with these names are ever removed, and a mount point in use cannot be removed.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_state::places::{ATTACHMENTS, attachments_of_this_user};
use plumb_state::{DirectoryLock, LockedRecord, Owner};

use crate::error::{ExportError, Result, at};
use crate::holders::LoopBinding;
use crate::name::is_name;
use crate::records::{PrivateDirectory, remove_if_there};

/// Line in the record of an attachment that only its server mounts: a sweep after the server's death removes
/// these mounts, too.
pub const MOUNTS_GO: &str = "mounts go\n";

/// The directory of all attachments.
#[derive(Debug, Clone)]
pub(super) struct Base {
    directory: PrivateDirectory,
    /// True if it was just created as a replacement for the default.
    is_stopgap: bool,
}

impl Base {
    /// Opens `wanted` or the default directory, creating it if needed.
    pub(super) fn open(wanted: Option<&Path>) -> Result<Self> {
        let mut is_stopgap = false;
        let directory = match wanted {
            Some(path) => PrivateDirectory::open(path)?,
            None => match PrivateDirectory::open(Path::new(ATTACHMENTS)) {
                Err(ExportError::Os { operation: "make" | "use", .. }) => {
                    let fallback = attachments_of_this_user();
                    is_stopgap = !fallback.exists();
                    PrivateDirectory::open(&fallback)?
                }
                opened => opened?,
            },
        };
        Ok(Self { directory, is_stopgap })
    }

    /// Opens the default directory of attachments; `None` if it does not exist.
    pub(super) fn open_default() -> Result<Option<Self>> {
        match [PathBuf::from(ATTACHMENTS), attachments_of_this_user()].into_iter().find(|path| path.is_dir())
        {
            Some(path) => Self::open(Some(&path)).map(Some),
            None => Ok(None),
        }
    }

    /// Removes the directory if it was created as a replacement and is empty.
    pub(super) fn take_back(&self) {
        if self.is_stopgap {
            // Removal fails if the directory is in use.
            fs::remove_dir(self.directory.path()).unwrap_or_default();
        }
    }

    /// Locks the directory against changes by others; waits for the lock.
    pub(super) fn lock(&self) -> Result<DirectoryLock> {
        self.directory.lock()
    }

    /// Locks the directory against changes by others; `None` if it is locked already.
    pub(super) fn try_lock(&self) -> Result<Option<DirectoryLock>> {
        self.directory.try_lock()
    }

    /// Returns the directories of all attachments, whether served or not, ordered by name.
    pub(super) fn attachments(&self) -> Result<Vec<AttachmentDirectory>> {
        let mut found = self.directory.names()?;
        found.retain(|name| is_name(name) && self.directory.path().join(name).is_dir());
        Ok(found.iter().map(|name| self.attachment(name)).collect())
    }

    /// Creates the directory of a new attachment served by this process. Requires the lock.
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
    /// Record of the attachment, if this process serves it.
    owned: Option<Arc<LockedRecord>>,
}

impl AttachmentDirectory {
    /// Returns the mount point of the file system.
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

    /// Appends a line to the record.
    pub(super) fn describe(&self, line: &str) -> Result<()> {
        self.owned.iter().try_for_each(|record| Ok(record.append(line.as_bytes())?))
    }

    /// Returns true if all mounts of the device are those of its server.
    pub(super) fn is_mounted_by_server(&self) -> bool {
        let text = fs::read_to_string(self.record()).unwrap_or_default();
        text.lines().any(|line| line == MOUNTS_GO.trim_end())
    }

    /// Returns the binding of the loop device; `None` if none was recorded.
    pub(super) fn binding(&self) -> Option<LoopBinding> {
        let text = fs::read_to_string(self.record()).unwrap_or_default();
        text.lines().find_map(LoopBinding::parse)
    }

    /// Returns the process that serves the attachment, for messages; 0 if none was recorded.
    fn server(&self) -> u32 {
        let text = fs::read_to_string(self.record()).unwrap_or_default();
        text.lines().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Returns true if the service of the attachment has its control socket in `directory`.
    pub(super) fn is_of_service_in(&self, directory: &Path) -> bool {
        let text = fs::read_to_string(self.record()).unwrap_or_default();
        text.lines().skip(1).any(|line| Path::new(line) == directory)
    }

    /// Returns true if the attachment's server is alive. The lock prevents a new one from starting meanwhile.
    pub(super) fn is_served(&self, _locked: &DirectoryLock) -> Result<bool> {
        Ok(matches!(LockedRecord::take_over(&self.record())?, Owner::Alive))
    }

    /// Removes the directory; missing parts are not an error. Fails while the file system is mounted.
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

    /// Tests an ordinary user, who finds the directory of root, and whose own directory leads to something
    /// that only root may use.
    #[test]
    fn a_directory_of_another_user_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        if std::os::unix::fs::chown(directory.path(), Some(65534), None).is_err() {
            return plumb_testkit::skip("only root gives files away");
        }
        let refused = Base::open(Some(directory.path())).unwrap_err();
        assert!(matches!(&refused, ExportError::Os { operation: "use", .. }), "{refused}");
        let remedy = crate::named::ServiceError::Attach(refused).remedy();
        assert_eq!(remedy, "; --attach takes root, --nbd does not");
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
    fn it_belongs_to_the_services_among_which_its_own_is_found() {
        let (_directory, base) = base();
        let served = base.create("a", &base.lock().unwrap()).unwrap();
        let [drives, caches] = ["/run/plumb", "/run/plumb/cache"].map(Path::new);
        assert!(!served.is_of_service_in(drives) && !served.is_of_service_in(caches));
        served.describe(&format!("{}\n", caches.display())).unwrap();
        served.describe("{\"model\":\"liar\"}\n").unwrap();
        assert!(!served.is_of_service_in(drives) && served.is_of_service_in(caches));
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

//! Where attachments live: a directory of this user's alone, and in it one for each attachment.
//!
//! ```text
//! /run/plumb/attach/          0700; locked while attachments come and go
//!   NAME/
//!     server                  the number of the process that serves it, which keeps it locked for as long as it lives
//!     mount/disk              the file under the loop device
//! ```
//! Nothing is ever removed but by these names, and a mount point that is in use cannot be removed at all.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::error::{ExportError, Result, at};
use crate::lock::Lock;

const DEFAULT: &str = "/run/plumb/attach";
const NAME_BYTES_MAX: usize = 64;

/// The directory of all attachments.
#[derive(Debug, Clone)]
pub(super) struct Base {
    path: PathBuf,
    /// Whether it was made here just now, in place of the default.
    is_stopgap: bool,
}

impl Base {
    /// `wanted`, or the default, made if it is not there.
    pub(super) fn open(wanted: Option<&Path>) -> Result<Self> {
        let mut is_stopgap = false;
        let path = match wanted {
            Some(path) => made(path).map_err(at("make", path))?,
            None => made(Path::new(DEFAULT)).or_else(|_| {
                let fallback = fallback();
                is_stopgap = !fallback.exists();
                made(&fallback).map_err(at("make", &fallback))
            })?,
        };
        let metadata = fs::symlink_metadata(&path).map_err(at("look at", &path))?;
        let is_private = metadata.is_dir()
            && metadata.uid() == rustix::process::geteuid().as_raw()
            && metadata.mode() & 0o077 == 0;
        if !is_private {
            return Err(ExportError::Directory(path));
        }
        // As the kernel will show it in the paths of backing files.
        Ok(Self { path: path.canonicalize().map_err(at("look at", &path))?, is_stopgap })
    }

    /// Of the attachments that there are by default; `None` if nobody has made any.
    pub(super) fn found() -> Result<Option<Self>> {
        match [PathBuf::from(DEFAULT), fallback()].into_iter().find(|path| path.is_dir()) {
            Some(path) => Self::open(Some(&path)).map(Some),
            None => Ok(None),
        }
    }

    /// Takes it away again if it was made here and nobody uses it.
    pub(super) fn take_back(&self) {
        if self.is_stopgap {
            // Whoever uses it keeps it from being removed.
            fs::remove_dir(&self.path).unwrap_or_default();
        }
    }

    /// Waits until nobody else changes anything here.
    pub(super) fn lock(&self) -> Result<Lock> {
        Lock::directory(&self.path).map_err(at("lock", &self.path))
    }

    /// The directories of all attachments, dead or alive, by name.
    pub(super) fn attachments(&self) -> Result<Vec<AttachmentDirectory>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(at("list", &self.path))? {
            let entry = entry.map_err(at("list", &self.path))?;
            let is_directory = entry.file_type().map_err(at("look at", &entry.path()))?.is_dir();
            match entry.file_name().into_string() {
                Ok(name) if is_directory && is_name(&name) => found.push(self.attachment(&name)),
                _ => {}
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Makes the directory of a new attachment that this process serves. While `_locked`.
    pub(super) fn create(&self, name: &str, _locked: &Lock) -> Result<AttachmentDirectory> {
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
        AttachmentDirectory { name: name.to_owned(), path: self.path.join(name), lock: None }
    }
}

/// The directory of one attachment.
#[derive(Debug, Clone)]
pub(super) struct AttachmentDirectory {
    pub(super) name: String,
    path: PathBuf,
    /// On the record, where this process serves it.
    lock: Option<Arc<Lock>>,
}

impl AttachmentDirectory {
    /// Where the file system is mounted.
    pub(super) fn mount_point(&self) -> PathBuf {
        self.path.join("mount")
    }

    fn record(&self) -> PathBuf {
        self.path.join("server")
    }

    fn fill(&mut self) -> Result<()> {
        let (mount_point, record) = (self.mount_point(), self.record());
        private().create(&mount_point).map_err(at("make", &mount_point))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&record, flags, Mode::RUSR | Mode::WUSR).map_err(at("make", &record))?;
        let taken = || at::<io::Error>("lock", &record)(io::ErrorKind::WouldBlock.into());
        let lock = Lock::unless_taken(file.into()).map_err(at("lock", &record))?.ok_or_else(taken)?;
        let text = format!("{}\n", std::process::id());
        lock.file().write_all_at(text.as_bytes(), 0).map_err(at("write", &record))?;
        self.lock = Some(Arc::new(lock));
        Ok(())
    }

    /// The process that serves it, for messages; 0 if that was never written down.
    fn server(&self) -> u32 {
        fs::read_to_string(self.record()).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// Whether its server lives. Asked while nobody makes one.
    pub(super) fn is_served(&self, _locked: &Lock) -> Result<bool> {
        let record = self.record();
        match File::open(&record) {
            Ok(file) => Ok(Lock::unless_taken(file).map_err(at("lock", &record))?.is_none()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(at("open", &record)(error)),
        }
    }

    /// Takes the directory away; what is not there any more is fine. Fails while the file system is mounted.
    pub(super) fn remove(&self) -> Result<()> {
        let mount_point = self.mount_point();
        unless_missing(fs::remove_dir(&mount_point)).map_err(at("remove", &mount_point))?;
        unless_missing(fs::remove_file(self.record())).map_err(at("remove", &self.record()))?;
        unless_missing(fs::remove_dir(&self.path)).map_err(at("remove", &self.path))
    }
}

/// Where those are who may not have [`DEFAULT`].
fn fallback() -> PathBuf {
    std::env::temp_dir().join(format!("plumb-attach-{}", rustix::process::geteuid().as_raw()))
}

fn unless_missing(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

fn made(path: &Path) -> io::Result<PathBuf> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match private().create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(path.to_owned()),
    }
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_allowed)
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

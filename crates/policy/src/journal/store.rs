//! Storage of a journal: a directory whose files are durable when a call returns.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::error::JournalError;
use crate::file::{self, Lasting, Mode, failed};

/// Files of one apply. Everything is durable when a call returns; after a failure nothing may be assumed.
pub trait JournalStore: Send {
    /// Returns the directory of the store, for messages.
    fn place(&self) -> PathBuf;

    /// Returns the contents of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// Fails as the file system does.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError>;

    /// Replaces the contents of the file with `bytes`: after a power cut it has either the old or the new
    /// contents.
    ///
    /// # Errors
    /// Fails as the file system does.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError>;

    /// Appends `bytes` to the file: after a power cut before the return, a part of them may be there.
    ///
    /// # Errors
    /// Fails as the file system does.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError>;
}

/// A directory of a file system.
#[derive(Debug)]
pub struct DirectoryStore {
    directory: PathBuf,
    /// Last file that was appended to, kept open, because opening it for each record is slow with a thousand
    /// disks.
    open: Option<(String, File)>,
}

impl DirectoryStore {
    /// Creates the private directory `root/id`, and `root` if it is missing. If `id` is taken, a number is
    /// appended.
    ///
    /// # Errors
    /// Fails as the file system does.
    pub fn create(root: &Path, id: &str) -> Result<Self, JournalError> {
        make_root(root)?;
        for attempt in 0..1000 {
            let name = if attempt == 0 { id.to_owned() } else { format!("{id}-{attempt}") };
            let directory = root.join(name);
            match fs::DirBuilder::new().mode(0o700).create(&directory) {
                Ok(()) => {
                    file::sync_directory(root)?;
                    return Ok(Self { directory, open: None });
                }
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(failed("make", &directory)(source).into()),
            }
        }
        Err(failed("make", &root.join(id))(io::ErrorKind::AlreadyExists.into()).into())
    }

    /// Opens the directory of an earlier apply.
    ///
    /// # Errors
    /// [`JournalError::NotBegun`] if there is no such directory.
    pub fn open(directory: &Path) -> Result<Self, JournalError> {
        if directory.is_dir() {
            Ok(Self { directory: directory.to_owned(), open: None })
        } else {
            Err(JournalError::NotBegun { path: directory.to_owned() })
        }
    }

    fn appender(&mut self, name: &str) -> Result<&mut File, JournalError> {
        let known = self.open.take().filter(|(open, _)| open == name);
        let entry = match known {
            Some(entry) => entry,
            None => {
                let path = self.directory.join(name);
                let file = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .open(&path)
                    .map_err(failed("open", &path))?;
                // The name must be as durable as the contents.
                file::sync_directory(&self.directory)?;
                (name.to_owned(), file)
            }
        };
        Ok(&mut self.open.insert(entry).1)
    }
}

impl JournalStore for DirectoryStore {
    fn place(&self) -> PathBuf {
        self.directory.clone()
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError> {
        Ok(file::read(&self.directory.join(name))?)
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        // An open descriptor would refer to the replaced file.
        self.open = None;
        Ok(file::replace(&self.directory.join(name), bytes, Mode::Exactly(0o600), Lasting::Durable)?)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let path = self.directory.join(name);
        let file = self.appender(name)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_data());
        Ok(written.map_err(failed("write durably to", &path))?)
    }
}

/// Creates the private root of all journals, which contain serial numbers and mounts.
pub(super) fn make_root(root: &Path) -> Result<(), JournalError> {
    Ok(file::make_directory(root, 0o700)?)
}

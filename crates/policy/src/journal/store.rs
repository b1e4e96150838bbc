//! Where a journal is kept: a directory whose files are durable when a call returns.

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

    /// Returns the whole file; none if there is no such file.
    ///
    /// # Errors
    /// As the file system answers.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError>;

    /// Makes `bytes` the whole content of the file: after a power cut it holds the old content or the new.
    ///
    /// # Errors
    /// As the file system answers.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError>;

    /// Adds `bytes` to the end of the file: after a power cut they may be there in part, until this has
    /// returned.
    ///
    /// # Errors
    /// As the file system answers.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError>;
}

/// A directory of a file system.
#[derive(Debug)]
pub struct DirectoryStore {
    directory: PathBuf,
    /// The file that was appended to last, kept open: one open for each record would be felt with a thousand
    /// disks.
    open: Option<(String, File)>,
}

impl DirectoryStore {
    /// Makes the directory `root/id`, and `root` where it is missing, for root's eyes only. If `id` is taken,
    /// a number is added to it.
    ///
    /// # Errors
    /// As the file system answers.
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

    /// Returns the directory of an apply that was begun before.
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
                // The name must last as well as what is written to it.
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
        // An open descriptor would go on with the file that is replaced.
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

/// Makes the root of all journals, which only its owner may look into: serial numbers and mounts are nobody
/// else's business.
pub(super) fn make_root(root: &Path) -> Result<(), JournalError> {
    Ok(file::make_directory(root, 0o700)?)
}

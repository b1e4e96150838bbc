//! Where a journal is kept: a directory whose files are durable when a call returns.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::error::JournalError;
use crate::durable_file;

/// Files of one apply. Everything is durable when a call returns; after a failure nothing may be assumed.
pub trait JournalStore: Send {
    /// Its directory, for messages.
    fn place(&self) -> PathBuf;

    /// The whole file; none if there is no such file.
    ///
    /// # Errors
    /// As the file system answers.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError>;

    /// Makes `bytes` the whole content of the file: after a power cut it holds the old content or the new.
    ///
    /// # Errors
    /// As the file system answers.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError>;

    /// Adds `bytes` to the end of the file: after a power cut they may be there in part, until this has returned.
    ///
    /// # Errors
    /// As the file system answers.
    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError>;
}

/// A directory of a file system.
#[derive(Debug)]
pub struct DirectoryStore {
    directory: PathBuf,
    /// The file that was appended to last, kept open: one open for each record would be felt with a thousand disks.
    open: Option<(String, File)>,
}

impl DirectoryStore {
    /// Makes the directory `root/id`, and `root` where it is missing, for root's eyes only. If `id` is taken, a number is
    /// added to it.
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
                    durable_file::sync_directory(root).map_err(|source| io_error("sync", root, source))?;
                    return Ok(Self { directory, open: None });
                }
                Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(io_error("make", &directory, source)),
            }
        }
        Err(io_error("make", &root.join(id), io::ErrorKind::AlreadyExists.into()))
    }

    /// The directory of an apply that was begun before.
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
                    .map_err(|source| io_error("open", &path, source))?;
                // The name must last as well as what is written to it.
                durable_file::sync_directory(&self.directory)
                    .map_err(|source| io_error("sync", &self.directory, source))?;
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
        let path = self.directory.join(name);
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => Ok(Some(bytes)),
            Err(absent) if absent.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(io_error("read", &path, source)),
        }
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        // An open descriptor would go on with the file that is replaced.
        self.open = None;
        let path = self.directory.join(name);
        durable_file::replace(&path, bytes, 0o600).map_err(|source| io_error("write", &path, source))
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let path = self.directory.join(name);
        let file = self.appender(name)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_data())
            .map_err(|source| io_error("write durably to", &path, source))
    }
}

/// Makes the root of all journals, which only its owner may look into: serial numbers and mounts are nobody else's
/// business.
pub(super) fn make_root(root: &Path) -> Result<(), JournalError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(root)
        .map_err(|source| io_error("make", root, source))
}

pub(super) fn io_error(operation: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { operation, path: path.to_owned(), source }
}

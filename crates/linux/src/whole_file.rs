//! Files and directories: read where they are, and replaced so that they are whole at every moment, and last.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The file system refused or failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}", path.display())]
pub struct FileError {
    /// What was done.
    pub operation: &'static str,
    /// To what.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

/// The error of what was done to `path`.
pub fn failed(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError { operation, path: path.to_owned(), source }
}

/// What the file holds; none if there is no such file.
///
/// # Errors
/// As read(2).
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    none_if_absent(std::fs::read(path)).map_err(failed("read", path))
}

/// What is in a directory; nothing if there is no such directory.
///
/// # Errors
/// As readdir(3).
pub fn list(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = none_if_absent(std::fs::read_dir(directory)).map_err(failed("list", directory))?;
    let paths = entries.into_iter().flatten().map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<io::Result<_>>().map_err(failed("list", directory))
}

fn none_if_absent<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => Ok(None),
        answer => answer.map(Some),
    }
}

/// Makes a directory, and those above it that are missing, with this mode.
///
/// # Errors
/// As mkdir(2).
pub fn make_directory(directory: &Path, mode: u32) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(failed("make", directory))
}

/// Makes `bytes` the content of `path`, with this mode. When it returns, the new content and its name are durable; when
/// it fails, the old content is still there, or the new is not known to last.
///
/// # Errors
/// As open(2), write(2), fsync(2) and rename(2).
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let replaced = || {
        let directory = parent_of(path);
        // A name that nobody can guess, made with O_EXCL: no link of somebody else's is followed.
        let mut part = tempfile::Builder::new().prefix(".plumb-").tempfile_in(directory)?;
        part.write_all(bytes)?;
        part.as_file().set_permissions(Permissions::from_mode(mode))?;
        part.as_file().sync_all()?;
        part.persist(path).map_err(|refused| refused.error)?;
        sync(directory)
    };
    replaced().map_err(failed("write", path))
}

/// As [`replace`], with the directory made if it is missing, for all to read.
///
/// # Errors
/// As [`make_directory`] and [`replace`].
pub fn publish(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    make_directory(parent_of(path), 0o777)?;
    replace(path, bytes, 0o644)
}

/// Takes the file away, durably. Whether there was one.
///
/// # Errors
/// As unlink(2) and fsync(2).
pub fn remove(path: &Path) -> Result<bool, FileError> {
    let removed = none_if_absent(std::fs::remove_file(path))
        .and_then(|removed| removed.map_or(Ok(false), |()| sync(parent_of(path)).map(|()| true)));
    removed.map_err(failed("remove", path))
}

/// Locks a directory against all others who do so, in this process too, as soon as nobody else does, until the file is dropped.
///
/// # Errors
/// As open(2) and flock(2): over NFS directories cannot be locked (EBADF).
pub fn lock_directory(directory: &Path) -> io::Result<File> {
    let file = File::open(directory)?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            outcome => return outcome.map(|()| file).map_err(io::Error::from),
        }
    }
}

/// Makes the names in a directory durable.
///
/// # Errors
/// As fsync(2).
pub fn sync_directory(directory: &Path) -> Result<(), FileError> {
    sync(directory).map_err(failed("sync", directory))
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

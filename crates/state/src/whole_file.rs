//! Reading and atomic replacement of files and directories.
//!
//! To replace a file, a temporary file in the same directory is written, synced and renamed over the old one;
//! then the directory is synced. The temporary file has an unpredictable name and is created with O_EXCL, so
//! no file or symbolic link of another user is written to.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Mode of a new file with [`Mode::Kept`], before the umask: others, such as a metrics collector, read it
/// too.
const NEW: u32 = 0o666;

/// A failed operation on a file or a directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}", path.display())]
pub struct FileError {
    /// Operation, as a verb.
    pub operation: &'static str,
    /// File or directory.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

/// Returns a function that adds `operation` and `path` to an I/O error.
pub fn failed(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> FileError {
    move |source| FileError { operation, path: path.to_owned(), source }
}

/// Permissions of a file that [`replace`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Exactly these permission bits, independent of the old file and the umask.
    Exactly(u32),
    /// Permissions of the replaced file; for a new file 0666 less the umask.
    Kept,
}

/// Guarantee for the contents when [`replace`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// Durable: the contents survive a power cut.
    Durable,
    /// Visible: a killed process leaves the old or the new contents; a power cut may leave neither. For files
    /// written while a device is measured, which must not receive plumb's own flushes.
    Visible,
}

/// Returns the contents of a file, or `None` if it does not exist.
///
/// # Errors
/// Fails as read(2) does.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    none_if_absent(fs::read(path)).map_err(failed("read", path))
}

/// Returns the paths in a directory; none if it does not exist.
///
/// # Errors
/// Fails as readdir(3) does.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = none_if_absent(fs::read_dir(directory)).map_err(failed("list", directory))?;
    let paths = entries.into_iter().flatten().map(|entry| entry.map(|entry| entry.path()));
    paths.collect::<io::Result<_>>().map_err(failed("list", directory))
}

fn none_if_absent<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => Ok(None),
        answer => answer.map(Some),
    }
}

/// Creates a directory and its missing parents with this mode.
///
/// # Errors
/// Fails as mkdir(2) does.
pub fn make_directory(directory: &Path, mode: u32) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(failed("make", directory))
}

/// Replaces the contents of `path` with `bytes`. A failure leaves the old contents, except that a failed sync
/// of the directory leaves the new contents, which may not survive a power cut.
///
/// # Errors
/// Fails as open(2), write(2), fsync(2) and rename(2) do.
pub fn replace(path: &Path, bytes: &[u8], mode: Mode, lasting: Lasting) -> Result<(), FileError> {
    replace_with(path, mode, lasting, |file| file.write_all(bytes)).map_err(failed("write", path))
}

/// Replaces a file as [`replace`] does, with the contents that `write` writes to the temporary file. If
/// `write` fails, the old contents remain.
///
/// # Errors
/// Fails as [`replace`] and `write` do.
pub fn replace_with<E: From<io::Error>>(
    path: &Path,
    mode: Mode,
    lasting: Lasting,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let directory = parent_of(path);
    let mut part = tempfile::Builder::new()
        .prefix(".plumb-")
        .permissions(Permissions::from_mode(NEW))
        .tempfile_in(directory)
        .map_err(|error| without_name(&error))?;
    set_mode(path, part.as_file(), mode)?;
    write(part.as_file_mut())?;
    if lasting == Lasting::Durable {
        part.as_file().sync_all()?;
    }
    part.persist(path).map_err(|refused| refused.error)?;
    if lasting == Lasting::Durable { Ok(sync(directory)?) } else { Ok(()) }
}

/// Reserves space for `bytes` in the file system of `directory` until the file is dropped, so that this much
/// can then be written even to a full disk. The file has no name: a killed process leaves nothing behind.
///
/// # Errors
/// Fails as open(2), write(2) and fsync(2) do.
pub fn reserve(directory: &Path, bytes: usize) -> Result<File, FileError> {
    let reserved = tempfile::tempfile_in(directory).map_err(|error| without_name(&error));
    let filled = reserved.and_then(|mut file| {
        file.write_all(&vec![0; bytes])?;
        file.sync_all().map(|()| file)
    });
    filled.map_err(failed("make room in", directory))
}

/// Removes the name of the temporary file from an error of `tempfile`, since the user did not type it.
fn without_name(error: &io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|named| named.source()?.downcast_ref::<io::Error>());
    let number = cause.unwrap_or(error).raw_os_error();
    number.map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error)
}

fn set_mode(path: &Path, part: &File, mode: Mode) -> io::Result<()> {
    match (mode, none_if_absent(fs::metadata(path))?) {
        (Mode::Exactly(mode), _) => part.set_permissions(Permissions::from_mode(mode)),
        (Mode::Kept, Some(old)) => part.set_permissions(old.permissions()),
        (Mode::Kept, None) => Ok(()),
    }
}

/// Replaces a file durably, as [`replace`] does, but creates a missing directory and makes the file readable
/// for all. Only a regular file or a link to one is replaced: /dev/null stays as it is.
///
/// # Errors
/// Fails as [`make_directory`] and [`replace`] do, and if `path` is not a regular file.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    make_directory(parent_of(path), 0o777)?;
    let found = none_if_absent(fs::metadata(path)).map_err(failed("look at", path))?;
    if found.is_some_and(|found| !found.is_file()) {
        let other = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        return Err(failed("replace", path)(other));
    }
    let target = none_if_absent(fs::canonicalize(path)).map_err(failed("follow", path))?;
    replace(target.as_deref().unwrap_or(path), bytes, Mode::Exactly(0o644), Lasting::Durable)
}

/// Removes a file durably. Returns true if it existed.
///
/// # Errors
/// Fails as unlink(2) and fsync(2) do.
pub fn remove(path: &Path) -> Result<bool, FileError> {
    let removed = none_if_absent(fs::remove_file(path))
        .and_then(|removed| removed.map_or(Ok(false), |()| sync(parent_of(path)).map(|()| true)));
    removed.map_err(failed("remove", path))
}

/// Makes the names in a directory durable.
///
/// # Errors
/// Fails as fsync(2) does.
pub fn sync_directory(directory: &Path) -> Result<(), FileError> {
    sync(directory).map_err(failed("sync", directory))
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Returns the parent directory of `path`: `.` for a bare name.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_failed_write_leaves_the_old_contents_and_no_litter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        replace(&path, b"old", Mode::Kept, Lasting::Durable).unwrap();
        let error = replace_with(&path, Mode::Kept, Lasting::Durable, |file| {
            file.write_all(b"half of the n")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        replace(&path, b"new", Mode::Kept, Lasting::Visible).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn permissions_are_those_of_the_old_file_or_exactly_those_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        replace(&path, b"1", Mode::Exactly(0o600), Lasting::Durable).unwrap();
        assert_eq!(mode_of(&path), 0o600);
        replace(&path, b"2", Mode::Kept, Lasting::Durable).unwrap();
        assert_eq!(mode_of(&path), 0o600);
        replace(&path, b"3", Mode::Exactly(0o644), Lasting::Durable).unwrap();
        assert_eq!(mode_of(&path), 0o644);
    }

    #[test]
    fn publish_replaces_regular_files_alone_and_follows_links_to_them() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a/file"), directory.path().join("link"));
        publish(&file, b"one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        publish(&link, b"two").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"two");
        std::os::unix::fs::symlink("/dev/null", directory.path().join("null")).unwrap();
        let error = publish(&directory.path().join("null"), b"three").unwrap_err();
        assert!(
            error.to_string().contains("null") && error.source.to_string().contains("regular"),
            "{error}"
        );
    }
}

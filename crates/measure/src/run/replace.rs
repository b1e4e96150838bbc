//! Replacing a file so that it is whole at every moment: a temporary file in the same directory, synced, renamed over
//! the old one, and the directory synced.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::error::{Error, Result};

/// The mode of a new file, before the umask: others read it too, such as a metrics collector.
const MODE: u32 = 0o666;

/// Makes `bytes` the content of `path`. When it returns, the new content is durable; when it fails, the old content
/// is still there.
///
/// # Errors
/// If the directory cannot be written, or the file system is full.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(bytes).and_then(|()| file.sync_all()))?;
    sync_parent(path)
}

/// The same, but the new content is only visible when it returns: a process that is killed leaves the old or the new one, a
/// power cut may leave neither. For what is written while a device is measured, which must see no flush of ours.
///
/// # Errors
/// As [`replace`].
pub(super) fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(bytes))
}

/// The same with a writer of its own.
fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let failed = |source| Error::io("write", path, source);
    // A name that nobody can guess, made with O_EXCL: neither a file nor a link of somebody else's is written.
    let mut part = tempfile::Builder::new()
        .prefix(".plumb-")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(parent_of(path))
        .map_err(failed)?;
    keep_mode(path, part.as_file()).and_then(|()| write(part.as_file_mut())).map_err(failed)?;
    part.persist(path).map_err(|refused| failed(refused.error))?;
    Ok(())
}

/// A file that is replaced keeps who may read it.
fn keep_mode(path: &Path, part: &File) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(old) => part.set_permissions(old.permissions()),
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(refused) => Err(refused),
    }
}

/// The directory that `path` is in.
pub(super) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the name of `path` durable.
pub(super) fn sync_parent(path: &Path) -> Result<()> {
    File::open(parent_of(path))
        .and_then(|directory| directory.sync_all())
        .map_err(|source| Error::io("sync the directory of", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_leaves_the_old_content_and_no_litter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        replace(&path, b"old").unwrap();
        let error = replace_with(&path, |file| {
            file.write_all(b"half of the n")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
        assert!(matches!(error, Error::Full { .. }));
        let message = error.to_string();
        assert!(message.contains("result.json: the file system is full"), "{message}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}

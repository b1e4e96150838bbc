//! Replacing a file so that it is whole at every moment, and lasts.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Makes `bytes` the content of `path`, with this mode. When it returns, the new content and its name are durable; when
/// it fails, the old content is still there, or the new is not known to last.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let directory = parent_of(path);
    // A name that nobody can guess, made with O_EXCL: no link of somebody else's is followed.
    let mut part = tempfile::Builder::new().prefix(".plumb-").tempfile_in(directory)?;
    part.write_all(bytes)?;
    part.as_file().set_permissions(Permissions::from_mode(mode))?;
    part.as_file().sync_all()?;
    part.persist(path).map_err(|refused| refused.error)?;
    sync_directory(directory)
}

/// Takes the file away, durably. Whether there was one.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => sync_directory(parent_of(path)).map(|()| true),
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(refused) => Err(refused),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

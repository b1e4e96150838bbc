//! Replacing a file so that it is whole at every moment: a temporary file in the same directory, synced, renamed over
//! the old one, and the directory synced.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::error::{Error, Result};

/// Makes `bytes` the content of `path`. When it returns, the new content is durable; when it fails, the old content
/// is still there.
///
/// # Errors
/// If the directory cannot be written, or the file system is full.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_with(path, |file| file.write_all(bytes))
}

/// The same with a writer of its own.
fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let written = File::create(&part)
        .and_then(|mut file| {
            write(&mut file)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&part, path));
    if let Err(source) = written {
        // Best effort: the failure to report is the first one, and a left-over part is overwritten next time.
        drop(fs::remove_file(&part));
        return Err(Error::io("write", path, source));
    }
    sync_parent(path)
}

/// Makes the name of `path` durable.
pub(super) fn sync_parent(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)
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

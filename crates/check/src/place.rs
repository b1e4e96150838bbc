//! The place that is checked: a directory in which a file can be made. What is not one is refused with a reason
//! before anything is touched.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::error::CheckError;

/// A directory to check, and what had to be said about how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory, as given, or that of the file that was given.
    pub directory: PathBuf,
    /// A remark for the user, if the directory is not what was given.
    pub remark: Option<String>,
}

impl Place {
    /// The place that `target` names: a directory, or a regular file, whose directory is then checked.
    ///
    /// # Errors
    /// [`CheckError::NotThere`], [`CheckError::RawDevice`] or [`CheckError::NotADirectory`].
    pub fn of(target: &Path) -> Result<Self, CheckError> {
        let found = fs::metadata(target)
            .map_err(|source| CheckError::NotThere { path: target.to_owned(), source })?;
        let kind = found.file_type();
        if kind.is_dir() {
            return Ok(Self { directory: target.to_owned(), remark: None });
        }
        if kind.is_block_device() {
            return Err(CheckError::RawDevice { path: target.to_owned() });
        }
        if !kind.is_file() {
            return Err(CheckError::NotADirectory { path: target.to_owned() });
        }
        let parent =
            target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let remark = format!(
            "{} is a file: checking its directory {} with a file of plumb's own",
            target.display(),
            parent.display()
        );
        Ok(Self { directory: parent.to_owned(), remark: Some(remark) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_for_its_directory_and_devices_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("database.db");
        fs::write(&file, b"x").unwrap();
        let place = Place::of(&file).unwrap();
        assert_eq!(place.directory, directory.path());
        assert!(place.remark.unwrap().contains("database.db"));
        assert!(matches!(Place::of(&directory.path().join("gone")), Err(CheckError::NotThere { .. })));
        assert!(matches!(Place::of(Path::new("/dev/null")), Err(CheckError::NotADirectory { .. })));
    }
}

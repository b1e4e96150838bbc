//! A result written where the user said.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use plumb_measure::run::replace::replace;

/// Writes `bytes` to `path`. A regular file is replaced whole or not at all; a link is followed, and a device or a pipe is
/// written to as it is: a rename would put a file in its place.
///
/// # Errors
/// As of the system, with the path.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let place = || format!("cannot write to {}", path.display());
            fs::OpenOptions::new()
                .write(true)
                .open(path)
                .and_then(|mut file| file.write_all(bytes))
                .with_context(place)
        }
        Ok(_) => {
            let place = || format!("cannot follow {}", path.display());
            Ok(replace(&fs::canonicalize(path).with_context(place)?, bytes)?)
        }
        Err(_) => Ok(replace(path, bytes)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_and_what_is_no_file_stays_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(!pipe.metadata().unwrap().is_file());
    }
}

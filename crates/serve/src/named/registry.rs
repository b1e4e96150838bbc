//! Registry of a user's services: a directory with a control socket for each name. It also covers attachments
//! of killed processes, which are found even without their control socket.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub use plumb_state::places::control_socket as socket;

use crate::name::NAME_MAX;
pub use crate::name::is_name;

/// Creates the private directory if it is missing.
///
/// # Errors
/// Fails as mkdir(2) does; also if the directory belongs to another user, or others may write to it.
pub fn make(directory: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).recursive(true).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let there = fs::symlink_metadata(directory)?;
    if !there.is_dir() || there.uid() != rustix::process::geteuid().as_raw() {
        let why = format!("{} belongs to somebody else", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if there.mode() & 0o022 != 0 {
        let why = format!("others may write to {}: chmod go-w it", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// Returns the names of the drives in `directory`, including those of killed processes.
///
/// # Errors
/// Fails as readdir(3) does; a missing directory has no drives.
pub fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".control").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Returns the names of the drives in `directory`, and of attachments left by killed processes.
///
/// # Errors
/// Fails as readdir(3) does; a missing directory has no drives.
pub fn names_with_unserved(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = names(directory)?;
    found.extend(unserved(directory));
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns the attachments that killed processes have left which had their control sockets in `directory`.
/// Only root attaches, and only root may look.
pub(super) fn unserved(directory: &Path) -> Vec<String> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    crate::attach::unserved(directory).unwrap_or_default()
}

/// Returns true if a process listens on the control socket of the drive `name`.
pub fn is_served(directory: &Path, name: &str) -> bool {
    UnixStream::connect(socket(directory, name)).is_ok()
}

/// Returns the first name derived from `model` that is not in use: `liar`, `liar-2`, ...
pub(crate) fn free_name(directory: &Path, model: &str) -> String {
    let plain: String =
        model.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(NAME_MAX - 6).collect();
    let plain = plain.trim_start_matches('-').to_owned();
    let plain = if plain.is_empty() { "drive".to_owned() } else { plain };
    let mut name = plain.clone();
    let mut number = 1;
    while is_served(directory, &name) {
        number += 1;
        name = format!("{plain}-{number}");
    }
    name
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_free_name_follows_those_that_are_served() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        assert_eq!(free_name(at, "liar"), "liar");
        let first = UnixListener::bind(socket(at, "liar")).unwrap();
        let _second = UnixListener::bind(socket(at, "liar-2")).unwrap();
        assert_eq!(free_name(at, "liar"), "liar-3");
        assert_eq!(names(at).unwrap(), ["liar", "liar-2"]);
        drop(first);
        assert_eq!(free_name(at, "liar"), "liar", "its socket is there, and nobody listens");
        assert_eq!(free_name(&at.join("none"), "../x y"), "xy");
        assert_eq!(free_name(at, "--x"), "x");
    }
}

//! The registry of what a user serves: a directory of control sockets, one for each name. Beside them there
//! may be what killed processes have left: attachments whose server is gone. They are found even where the
//! control socket is gone as well.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub use plumb_state::places::control_socket as socket;

use crate::name::NAME_MAX;
pub use crate::name::is_name;

/// Makes the directory if it is missing, for this user alone.
///
/// # Errors
/// As mkdir(2); if there is a directory of that name that belongs to somebody else, or to which others may
/// write.
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

/// Returns the names of the drives in `directory`, those of killed processes too.
///
/// # Errors
/// As readdir(3); a directory that does not exist has none.
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

/// Returns the names of the drives in `directory`, and of those of which killed processes have left an
/// attachment.
///
/// # Errors
/// As readdir(3); a directory that does not exist has none.
pub fn names_with_unserved(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = names(directory)?;
    found.extend(unserved());
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns the attachments that killed processes have left. Only root attaches, and only root may look.
pub(super) fn unserved() -> Vec<String> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    crate::attach::unserved().unwrap_or_default()
}

/// Returns true if somebody listens on the control socket of the drive `name`.
pub fn is_served(directory: &Path, name: &str) -> bool {
    UnixStream::connect(socket(directory, name)).is_ok()
}

/// Returns the first name after `model` that no drive has which is being served: `liar`, `liar-2`, ...
pub fn free_name(directory: &Path, model: &str) -> String {
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

//! Names of files that have more than one, as the calls of a program made and removed them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// End of the path that the kernel shows for a descriptor whose name was removed (d_path in fs/d_path.c).
const DELETED: &str = " (deleted)";

/// Names that link(2) gave to a file which had one already. A file that is not in it has one name.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    /// Number of the file by name. A name that was removed ends with [`DELETED`].
    files: BTreeMap<PathBuf, usize>,
    next: usize,
}

impl FileNames {
    /// Adds a name of the file that has the name `from`.
    pub(super) fn link(&mut self, from: &Path, to: &Path) {
        let file = *self.files.entry(from.to_owned()).or_insert(self.next);
        self.next += 1;
        self.files.insert(to.to_owned(), file);
    }

    /// Takes a name from its file, for one that is removed or taken by another file.
    pub(super) fn remove(&mut self, name: &Path) {
        if let Some(file) = self.files.remove(name) {
            self.files.insert(removed(name), file);
        }
    }

    /// Gives a file another name in place of one.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        self.remove(to);
        if let Some(file) = self.files.remove(from) {
            self.files.insert(to.to_owned(), file);
        }
    }

    /// Returns a name that the file with this name has now: the same, unless that was removed.
    pub(super) fn current(&self, name: &Path) -> PathBuf {
        let other = self.others(name).next().filter(|_| is_removed(name));
        other.unwrap_or(name).to_owned()
    }

    /// Returns the other names that the file with this name has now.
    pub(super) fn others<'a>(&'a self, name: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.all(name).filter(move |other| *other != name && !is_removed(other))
    }

    /// Returns all names that the file with this name has or had, if it has more than one.
    pub(super) fn all(&self, name: &Path) -> impl Iterator<Item = &Path> {
        let file = self.files.get(name);
        let names = self.files.iter().filter(move |(_, other)| Some(*other) == file);
        names.map(|(other, _)| &**other)
    }
}

/// Returns true if a descriptor has this path after its name was removed, or if it never had one.
pub(super) fn is_removed(path: &Path) -> bool {
    path.to_string_lossy().ends_with(DELETED)
}

/// Returns the path that is shown for a descriptor after its name was removed.
pub(super) fn removed(name: &Path) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(DELETED);
    name.into()
}

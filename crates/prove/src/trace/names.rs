//! Names of files below a directory: the initial ones, and the changes by the calls of a program.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// End of the path that the kernel shows for a descriptor whose name was removed (d_path in fs/d_path.c).
const DELETED: &str = " (deleted)";

/// Directories of the kernel, which hold no files of programs.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// Files by name, as far as known. Files created by other programs meanwhile are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileNames {
    /// Number of the file by name. A removed name ends with [`DELETED`].
    files: BTreeMap<PathBuf, usize>,
    /// Names by the number of the file.
    names: BTreeMap<usize, BTreeSet<PathBuf>>,
    /// Files that may contain data.
    filled: BTreeSet<usize>,
    next: usize,
}

impl FileNames {
    /// Reads the current names below a directory. Unreadable ones are left out.
    pub fn beneath(root: &Path) -> Self {
        let mut all = Self::default();
        let mut linked = HashMap::new();
        let mut unread = vec![root.to_owned()];
        while let Some(directory) = unread.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
                let has_several = !metadata.is_dir() && metadata.nlink() > 1;
                let number = (metadata.dev(), metadata.ino());
                let known = linked.get(&number).copied().filter(|_| has_several);
                let file = known.unwrap_or_else(|| all.new_file());
                if has_several {
                    linked.insert(number, file);
                }
                all.assign(&path, Some(file));
                if metadata.len() > 0 {
                    all.filled.insert(file);
                }
                if metadata.is_dir() && !KERNEL.contains(&path.to_str().unwrap_or_default()) {
                    unread.push(path);
                }
            }
        }
        all
    }

    /// Returns true if a file is known to have this name now.
    pub(super) fn exists(&self, name: &Path) -> bool {
        self.files.contains_key(name)
    }

    /// Returns true if both are names of one file.
    pub(super) fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        one == other || self.files.get(one).is_some_and(|file| self.files.get(other) == Some(file))
    }

    /// Gives a new, empty file this name.
    pub(super) fn add(&mut self, name: &Path) {
        let file = self.new_file();
        self.assign(name, Some(file));
    }

    /// Adds a name to the file named `from`.
    pub(super) fn link(&mut self, from: &Path, to: &Path) {
        let file = self.file(from);
        self.assign(to, Some(file));
    }

    /// Removes a name from its file, after an unlink or a replacement.
    pub(super) fn remove(&mut self, name: &Path) {
        if let Some(file) = self.files.get(name).copied() {
            self.assign(name, None);
            self.assign(&removed(name), Some(file));
        }
    }

    /// Renames a file or directory, with everything below it.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        self.remove(to);
        for name in beneath(&self.files, from) {
            let file = self.files.get(&name).copied();
            self.assign(&name, None);
            self.assign(&rebased(&name, from, to), file);
        }
    }

    /// Notes that the file with this name may contain data.
    pub(super) fn fill(&mut self, name: &Path) {
        let file = self.file(name);
        self.filled.insert(file);
    }

    /// Notes that the file with this name is empty. Returns true if it may have contained data.
    pub(super) fn empty(&mut self, name: &Path) -> bool {
        let is_known = self.exists(name);
        let file = self.file(name);
        self.filled.remove(&file) || !is_known
    }

    /// Returns a current name of the file with this name: the same one, unless that was removed.
    pub(super) fn current(&self, name: &Path) -> PathBuf {
        let other = self.others(name).next().filter(|_| is_removed(name));
        other.unwrap_or(name).to_owned()
    }

    /// Returns the other current names of the file with this name.
    pub(super) fn others<'a>(&'a self, name: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.all(name).filter(move |other| *other != name && !is_removed(other))
    }

    /// Returns all known names, current and former, of the file with this name.
    pub(super) fn all(&self, name: &Path) -> impl Iterator<Item = &Path> {
        let names = self.files.get(name).and_then(|file| self.names.get(file));
        names.into_iter().flatten().map(|other| &**other)
    }

    fn new_file(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Returns the number of the file with this name, assigning one if it is unknown.
    fn file(&mut self, name: &Path) -> usize {
        match self.files.get(name) {
            Some(file) => *file,
            None => {
                self.add(name);
                self.next
            }
        }
    }

    /// Assigns a name to a file, or to none.
    fn assign(&mut self, name: &Path, file: Option<usize>) {
        if let Some(before) = self.files.remove(name)
            && let Some(names) = self.names.get_mut(&before)
        {
            names.remove(name);
        }
        if let Some(file) = file {
            self.files.insert(name.to_owned(), file);
            self.names.entry(file).or_default().insert(name.to_owned());
        }
    }
}

/// Returns the keys of a map at or below this path.
pub(super) fn beneath<V>(map: &BTreeMap<PathBuf, V>, root: &Path) -> Vec<PathBuf> {
    let from_root = map.range(root.to_owned()..).map(|(path, _)| path);
    from_root.take_while(|path| path.starts_with(root)).cloned().collect()
}

/// Returns the new path of a file after `from`, which is its path or that of a directory above it, was
/// renamed to `to`.
pub(super) fn rebased(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
        Ok(rest) => to.join(rest),
        Err(_) => path.to_owned(),
    }
}

/// Returns true for the path of a descriptor whose name was removed, or that never had one.
pub(super) fn is_removed(path: &Path) -> bool {
    path.to_string_lossy().ends_with(DELETED)
}

/// Returns the path that is shown for a descriptor after its name was removed.
pub(super) fn removed(name: &Path) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(DELETED);
    name.into()
}

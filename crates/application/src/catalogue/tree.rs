//! Paths of many files: flat, or in a tree of directories with equal numbers of entries.

use std::path::PathBuf;

use crate::engine::{Hand, Step};

/// Tree of numbered files.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    root: String,
    /// Number of entries of a directory.
    width: u64,
    /// Levels of directories between the root and the files.
    levels: u32,
}

impl Tree {
    /// Creates a tree with all files in one directory.
    pub(super) fn flat(root: impl Into<String>) -> Self {
        Self { root: root.into(), width: u64::MAX, levels: 0 }
    }

    /// Creates a tree with `width` files in a directory, below `levels` levels of directories with as many
    /// entries.
    pub(super) fn spread(root: impl Into<String>, width: u64, levels: u32) -> Self {
        Self { root: root.into(), width, levels }
    }

    /// Returns the path of a file.
    pub(super) fn file(&self, number: u64) -> PathBuf {
        let mut path = PathBuf::from(&self.root);
        for level in (0..self.levels).rev() {
            path.push(self.directory_name(number, level));
        }
        path.push(format!("f{number:06}"));
        path
    }

    /// Returns the directories that no file with a lower number needs, the outer ones first.
    fn new_directories(&self, number: u64) -> Vec<PathBuf> {
        let mut made = Vec::new();
        let mut path = PathBuf::from(&self.root);
        if number == 0 {
            made.push(path.clone());
        }
        for level in (0..self.levels).rev() {
            path.push(self.directory_name(number, level));
            if number.is_multiple_of(self.files_beneath(level)) {
                made.push(path.clone());
            }
        }
        made
    }

    /// Creates the directories that no file with a lower number needs.
    pub(super) fn make_directories(&self, hand: &mut Hand<'_>, number: u64) -> Step<()> {
        self.new_directories(number).iter().try_for_each(|directory| hand.create_directory(directory))
    }

    /// Returns the number of files below a directory of this level; level 0 holds files.
    fn files_beneath(&self, level: u32) -> u64 {
        self.width.saturating_pow(level + 1)
    }

    fn directory_name(&self, number: u64, level: u32) -> String {
        format!("d{:04}", number / self.files_beneath(level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_is_made_once_and_before_its_files() {
        let tree = Tree::spread("t", 3, 2);
        let mut made = std::collections::HashSet::new();
        for number in 0..40 {
            for directory in tree.new_directories(number) {
                let parent = directory.parent().unwrap().to_owned();
                assert!(parent.as_os_str().is_empty() || made.contains(&parent), "{}", directory.display());
                assert!(made.insert(directory));
            }
            assert!(made.contains(tree.file(number).parent().unwrap()), "file {number}");
        }
        assert_eq!(made.len(), 1 + 14 + 5, "the root, 14 directories of 3 files, 5 of 3 directories");
        assert_eq!(Tree::flat("mail").file(7), PathBuf::from("mail/f000007"));
        assert_eq!(Tree::flat("mail").new_directories(0), [PathBuf::from("mail")]);
        assert!(Tree::flat("mail").new_directories(1).is_empty());
    }
}

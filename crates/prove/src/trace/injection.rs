//! Sync calls that a program does not make, as a change to try: which one, and after which of its system calls.

use std::fmt;
use std::path::{Path, PathBuf};

use plumb_block::Nanos;

use super::Call;

/// What is synced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sync {
    /// The file that the call has written to or named last.
    File,
    /// A directory, beneath the root; the root itself is empty.
    Directory(PathBuf),
}

/// A sync call, made after every call that matches and before the thread that made it does anything else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Injection {
    /// The kind of system call by its plainest name: `unlink` stands for unlinkat(2) too.
    pub after: &'static str,
    /// The file it was given last, beneath the root. In its name `#` stands for any number, and a name of `*` for any name.
    pub path: PathBuf,
    /// What is synced.
    pub sync: Sync,
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.sync {
            Sync::File => write!(f, "fsync of the file after {}({path})", self.after),
            Sync::Directory(_) => write!(f, "fsync of the directory after {}({path})", self.after),
        }
    }
}

/// The sync calls that may mend what the calls of a program leave to luck beneath `root`, the likeliest first. Only what was
/// still open at one of the times in `acknowledged` counts.
pub fn candidates(_calls: &[Call], _root: &Path, _acknowledged: &[Nanos]) -> Vec<Injection> {
    Vec::new()
}

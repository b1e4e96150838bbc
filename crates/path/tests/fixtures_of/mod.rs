//! Location of the recordings.

use std::path::{Path, PathBuf};

/// Returns the directory with the recordings.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Returns every directory below the root with a recording or an oracle, in order.
pub(crate) fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root(), &mut found);
    found.sort();
    found
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
            if path.join("recording.json").exists() || path.join("oracle.json").exists() {
                found.push(path);
            }
        }
    }
}

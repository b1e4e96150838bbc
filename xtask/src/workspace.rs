//! Workspace on which the tasks operate: its directory, its files, and cargo's metadata.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// Returns the directory of the workspace.
pub(crate) fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .context("xtask has no parent directory")
}

/// Lists every file with one of these endings that git tracks or would track, relative to the root.
pub(crate) fn tracked(root: &Path, endings: &[&str]) -> Result<Vec<String>> {
    let listing = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let names = process::text(Command::new("git").args(listing).current_dir(root))?;
    let mut files: Vec<String> = names
        .lines()
        .filter(|name| endings.iter().any(|ending| name.ends_with(ending)) && root.join(name).is_file())
        .map(str::to_owned)
        .collect();
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// Runs `cargo metadata` with these arguments for the workspace at `root`.
pub(crate) fn cargo_metadata(root: &Path, arguments: &[&str]) -> Result<serde_json::Value> {
    let mut command = Command::new("cargo");
    command.args(["metadata", "--format-version", "1", "--quiet"]).args(arguments);
    process::document(command.current_dir(root))
}

/// Returns the directory in which cargo builds the workspace at `root`.
pub(crate) fn target_directory(root: &Path) -> Result<PathBuf> {
    let metadata = cargo_metadata(root, &["--no-deps"])?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .context("cargo metadata names no target directory")
}

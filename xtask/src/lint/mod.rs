//! `cargo xtask lint`: everything about the sources that a machine can judge.

mod crates;
mod dependencies;
mod licences;
mod links;
mod sources;
mod tests_layout;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::process;

/// One rule broken: where, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offence {
    place: String,
    what: String,
}

impl Offence {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }
}

/// Runs every check, also after one has failed, and says which did.
pub(crate) fn main() -> Result<ExitCode> {
    let root = workspace_root()?;
    let passed = run(&root, CHECKS) & run(&root, &[("clippy", clippy)]);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The same without clippy, for those who let clippy compile the tests.
pub(crate) fn passes_without_clippy(root: &Path) -> bool {
    run(root, CHECKS)
}

fn run(root: &Path, checks: &[(&str, Check)]) -> bool {
    let mut failed = Vec::new();
    for (name, check) in checks {
        eprintln!("lint: {name}");
        if let Err(error) = check(root) {
            eprintln!("lint: {name} failed: {error:#}");
            failed.push(*name);
        }
    }
    if !failed.is_empty() {
        eprintln!("lint: failed: {}", failed.join(", "));
    }
    failed.is_empty()
}

/// A check of the tree at a root.
type Check = fn(&Path) -> Result<()>;

/// The checks but for clippy, which has to compile.
const CHECKS: &[(&str, Check)] = &[
    ("format", |root| cargo(root, &["fmt", "--all", "--check"])),
    ("sources", |root| judge(&sources::offences(root)?)),
    ("every test is run", |root| judge(&tests_layout::offences(root)?)),
    ("table of crates", |root| judge(&crates::offences(root)?)),
    ("dependencies are justified", |root| judge(&dependencies::offences(root)?)),
    ("links in documents", |root| judge(&links::offences(root)?)),
    ("words that were given up", |root| judge(&words::offences(root)?)),
    ("licences, bans and doubles", |root| judge(&licences::offences(root)?)),
];

/// Fails if there is any offence, after printing each on a line of its own.
fn judge(offences: &[Offence]) -> Result<()> {
    for Offence { place, what } in offences {
        eprintln!("  {place}: {what}");
    }
    ensure!(offences.is_empty(), "{} offence(s)", offences.len());
    Ok(())
}

fn clippy(root: &Path) -> Result<()> {
    let what = ["--workspace", "--all-targets", "--all-features", "--quiet", "--", "-D", "warnings"];
    cargo(root, &[&["clippy"], &what[..]].concat())
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    process::run(Command::new("cargo").args(arguments).current_dir(root))
}

/// The directory of the workspace.
pub(crate) fn workspace_root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .context("xtask has no parent directory")
}

/// Every file that git tracks or would track, relative to the root, with one of these endings.
fn tracked(root: &Path, endings: &[&str]) -> Result<Vec<String>> {
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

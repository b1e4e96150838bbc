//! `cargo xtask lint`: everything about the sources that a machine can judge.

mod arrows;
mod dependencies;
mod links;
mod sources;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::packages;

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
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        eprintln!("lint: {name}");
        if let Err(error) = check(&root) {
            eprintln!("lint: {name} failed: {error:#}");
            failed.push(*name);
        }
    }
    if failed.is_empty() {
        eprintln!("lint: all {} checks passed", CHECKS.len());
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("lint: failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// A check of the tree at a root.
type Check = fn(&Path) -> Result<()>;

/// The checks, the quick ones first.
const CHECKS: &[(&str, Check)] = &[
    ("format", |root| cargo(root, &["fmt", "--all", "--check"])),
    ("sources", |root| judge(&sources::offences(root)?)),
    ("arrows between crates", |root| judge(&arrows::offences(root)?)),
    ("dependencies are justified", |root| judge(&dependencies::offences(root)?)),
    ("links in documents", |root| judge(&links::offences(root)?)),
    ("clippy", |root| {
        cargo(
            root,
            &["clippy", "--workspace", "--all-targets", "--all-features", "--quiet", "--", "-D", "warnings"],
        )
    }),
    ("licences and bans", deny),
];

/// Fails if there is any offence, after printing each on a line of its own.
fn judge(offences: &[Offence]) -> Result<()> {
    for Offence { place, what } in offences {
        eprintln!("  {place}: {what}");
    }
    ensure!(offences.is_empty(), "{} offence(s)", offences.len());
    Ok(())
}

/// cargo-deny is a program of its own; it is built once where it is missing.
fn deny(root: &Path) -> Result<()> {
    if packages::find("cargo-deny").is_none() {
        eprintln!("lint: building cargo-deny, which is missing (once, some minutes)");
        // Quick to build rather than quick to run: it runs for a second.
        let status = Command::new("cargo")
            .args(["install", "--locked", "--quiet", "cargo-deny"])
            .envs([("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")])
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .status()
            .context("starting cargo install")?;
        ensure!(status.success(), "cargo install cargo-deny: {status}");
    }
    cargo(root, &["deny", "--log-level", "error", "check", "licenses", "bans", "sources"])
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    let status =
        Command::new("cargo").args(arguments).current_dir(root).status().context("starting cargo")?;
    ensure!(status.success(), "cargo {}: {status}", arguments.join(" "));
    Ok(())
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
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("starting git")?;
    ensure!(listing.status.success(), "git ls-files: {}", listing.status);
    let names = String::from_utf8(listing.stdout).context("a file name is not UTF-8")?;
    let mut files: Vec<String> = names
        .lines()
        .filter(|name| endings.iter().any(|ending| name.ends_with(ending)) && root.join(name).is_file())
        .map(str::to_owned)
        .collect();
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

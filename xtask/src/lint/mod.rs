//! `cargo xtask lint`: all automatic checks of the sources.

mod circles;
mod crates;
mod dependencies;
mod english;
mod licences;
mod links;
mod offence;
mod sources;
mod tests_layout;
mod words;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use offence::Offence;

use crate::{process, workspace};

/// Runs every check, even after a failure, and reports the failed ones.
pub(crate) fn main() -> Result<ExitCode> {
    let root = workspace::root()?;
    let passed = run(&root, CHECKS) & run(&root, &[("clippy", clippy), ("documentation", documentation)]);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the checks that do not compile, for `cargo xtask test`, which compiles with clippy anyway. Building
/// the documentation compiles all dependencies once more, which takes minutes on a fresh machine. Returns
/// true if all passed.
pub(crate) fn passes_without_compiling(root: &Path) -> bool {
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

/// Check of the tree at a root directory.
type Check = fn(&Path) -> Result<()>;

/// All checks except clippy, which has to compile.
const CHECKS: &[(&str, Check)] = &[
    ("format", |root| cargo(root, &["fmt", "--all", "--check"])),
    ("sources", |root| judge(&sources::offences(root)?)),
    ("every test is run", |root| judge(&tests_layout::offences(root)?)),
    ("circles of files", |root| judge(&circles::offences(root)?)),
    ("plain English", |root| judge(&english::offences(root)?)),
    ("table of crates", |root| judge(&crates::offences(root)?)),
    ("dependencies are justified", |root| judge(&dependencies::offences(root)?)),
    ("links in documents", |root| judge(&links::offences(root)?)),
    ("words that were given up", |root| judge(&words::offences(root)?)),
    ("licences, bans and doubles", |root| judge(&licences::offences(root)?)),
];

/// Fails if there is any offence, after printing each on its own line.
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

/// Builds the documentation, in which every link must resolve.
fn documentation(root: &Path) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
    process::run(cargo.env("RUSTDOCFLAGS", "-D warnings").current_dir(root))
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    process::run(Command::new("cargo").args(arguments).current_dir(root))
}

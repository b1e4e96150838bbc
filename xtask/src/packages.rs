//! Debian packages that a task needs: missing ones are installed, with a message.
//!
//! A task names a program and the package that provides it. Installed programs are left alone; missing ones
//! are installed by apt if this runs as root on a machine with apt. Otherwise the result is
//! [`Outcome::Unavailable`], which the caller reports as skipped: a machine without QEMU is not a failed
//! test.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::process;

/// Program, and the Debian package that provides it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// Name to find in the path.
    pub name: &'static str,
    /// Package to install if the program is missing.
    pub package: &'static str,
}

/// Returns the programs of a list: `name`, or `name=package` if the names differ.
pub(crate) fn programs(list: &'static str) -> impl Iterator<Item = Program> {
    list.split_whitespace().map(|entry| {
        let (name, package) = entry.split_once('=').unwrap_or((entry, entry));
        Program { name, package }
    })
}

/// Returns true if all programs of a list are available; otherwise prints that a task is skipped, and why.
///
/// # Errors
/// Those of [`ensure_installed`].
pub(crate) fn are_there(list: &'static str) -> Result<bool> {
    let outcome = ensure_installed(&programs(list).collect::<Vec<_>>())?;
    if let Outcome::Unavailable(reason) = &outcome {
        println!("skipped: {reason}");
    }
    Ok(outcome == Outcome::Ready)
}

/// Result of an installation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every program is available.
    Ready,
    /// A program is missing and cannot be installed here, for this reason.
    Unavailable(String),
}

/// Makes every program available by installing the packages of missing ones.
///
/// # Errors
/// If apt could be run but failed, which is a fault instead of a missing feature of this machine.
pub(crate) fn ensure_installed(programs: &[Program]) -> Result<Outcome> {
    let mut packages: Vec<&str> = programs
        .iter()
        .filter(|program| find(program.name).is_none())
        .map(|program| program.package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        return Ok(Outcome::Ready);
    }
    let wanted = packages.join(" ");
    if find("apt-get").is_none() {
        return Ok(Outcome::Unavailable(format!("missing {wanted}, and this machine has no apt-get")));
    }
    if !is_root()? {
        return Ok(Outcome::Unavailable(format!("missing {wanted}; install them, or run this as root")));
    }
    eprintln!("installing missing packages: {wanted}");
    if apt_install(&packages).is_err() {
        // The package lists may be outdated or missing, as in a fresh container, so they are refreshed once.
        apt_get(&["update"])?;
        apt_install(&packages)?;
    }
    let still_missing: Vec<&str> =
        programs.iter().filter(|program| find(program.name).is_none()).map(|program| program.name).collect();
    ensure!(still_missing.is_empty(), "installed {wanted}, yet cannot find {}", still_missing.join(" "));
    Ok(Outcome::Ready)
}

/// Returns the path of a program: from the path of this process, then from the system administrator's
/// directories.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

/// Returns true if apt may be used to install, which takes root.
pub(crate) fn is_root() -> Result<bool> {
    Ok(process::text(Command::new("id").arg("-u"))?.trim() == "0")
}

/// Installs packages without questions and without suggested packages.
fn apt_install(packages: &[&str]) -> Result<()> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

/// Runs apt-get with its output on stderr, where progress belongs.
pub(crate) fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(arguments).arg("--quiet").env("DEBIAN_FRONTEND", "noninteractive");
    process::run(command.stdout(std::io::stderr()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_every_machine_needs_nothing() {
        let shell = Program { name: "sh", package: "dash" };
        assert_eq!(ensure_installed(&[shell]).unwrap(), Outcome::Ready);
    }

    #[test]
    fn an_unknown_program_is_not_found() {
        assert_eq!(find("no-program-has-this-name"), None);
    }
}

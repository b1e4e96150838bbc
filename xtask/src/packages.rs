//! Debian packages that a chore needs: installed when they are missing, and said aloud.
//!
//! A chore names a program and the package that brings it. What is there already is left alone; what is
//! missing is installed by apt when this runs as root on a machine that has apt. When it cannot be installed
//! the answer is [`Outcome::Unavailable`], which the caller reports as skipped: a machine without QEMU is not
//! a failed test.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::process;

/// A program, and the Debian package that brings it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// Name that is looked for in the path.
    pub name: &'static str,
    /// Package that is installed when the program is not found.
    pub package: &'static str,
}

/// Returns the programs of a list: `name`, or `name=package` where the package is called otherwise.
pub(crate) fn programs(list: &'static str) -> impl Iterator<Item = Program> {
    list.split_whitespace().map(|entry| {
        let (name, package) = entry.split_once('=').unwrap_or((entry, entry));
        Program { name, package }
    })
}

/// Returns true if the programs of a list can be found now; says that a chore is skipped, and why, if not.
///
/// # Errors
/// As [`ensure_installed`].
pub(crate) fn are_there(list: &'static str) -> Result<bool> {
    let outcome = ensure_installed(&programs(list).collect::<Vec<_>>())?;
    if let Outcome::Unavailable(reason) = &outcome {
        println!("skipped: {reason}");
    }
    Ok(outcome == Outcome::Ready)
}

/// Result of an installation: whether everything requested is there now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every program can be found.
    Ready,
    /// Something is missing and cannot be installed here; the reason, for people.
    Unavailable(String),
}

/// Makes sure that every program can be found, installing the packages of those that cannot.
///
/// # Errors
/// When apt could be run but failed: that is a fault, not a missing ability of this machine.
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
        // The lists may be stale or absent, as in a fresh container: refresh them once.
        apt_get(&["update"])?;
        apt_install(&packages)?;
    }
    let still_missing: Vec<&str> =
        programs.iter().filter(|program| find(program.name).is_none()).map(|program| program.name).collect();
    ensure!(still_missing.is_empty(), "installed {wanted}, yet cannot find {}", still_missing.join(" "));
    Ok(Outcome::Ready)
}

/// Returns where a program is: the path of this process, then the directories for the administrator's
/// programs.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

/// Returns true if apt may be used to install: only root may.
pub(crate) fn is_root() -> Result<bool> {
    Ok(process::text(Command::new("id").arg("-u"))?.trim() == "0")
}

/// Installs packages without asking anything and without their suggestions.
fn apt_install(packages: &[&str]) -> Result<()> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

/// Runs apt-get; its chatter goes to stderr, where progress belongs.
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

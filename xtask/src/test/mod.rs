//! `cargo xtask test`: everything that must pass, on a fresh machine, with one command.
//!
//! It installs what the tests need (Debian packages, as root, told aloud), then lints, compiles everything once
//! (`build`), runs every test of the workspace (`programs`), and boots the guests. It ends with what each of these took, and
//! one line that counts what passed, failed and was skipped.

mod build;
mod programs;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use build::Built;
use tempfile::TempDir;

use crate::packages::{self, Outcome, Program};
use crate::phases::Phases;
use crate::tally::Tally;
use crate::{guest, lint};

/// What the tests use for real, beside what the guests need.
const PROGRAMS: [Program; 24] = [
    Program { name: "fio", package: "fio" },
    Program { name: "chromium", package: "chromium" },
    Program { name: "promtool", package: "prometheus" },
    Program { name: "losetup", package: "mount" },
    Program { name: "mkfs.ext4", package: "e2fsprogs" },
    Program { name: "mkfs.xfs", package: "xfsprogs" },
    Program { name: "mkfs.btrfs", package: "btrfs-progs" },
    Program { name: "mkfs.vfat", package: "dosfstools" },
    Program { name: "mkfs.exfat", package: "exfatprogs" },
    Program { name: "mkfs.ntfs", package: "ntfs-3g" },
    Program { name: "mkfs.f2fs", package: "f2fs-tools" },
    Program { name: "mkfs.jfs", package: "jfsutils" },
    Program { name: "mkfs.nilfs2", package: "nilfs-tools" },
    Program { name: "mkfs.reiserfs", package: "reiserfsprogs" },
    Program { name: "mkfs.erofs", package: "erofs-utils" },
    Program { name: "sfdisk", package: "fdisk" },
    Program { name: "strace", package: "strace" },
    Program { name: "python3", package: "python3" },
    Program { name: "nbdinfo", package: "libnbd-bin" },
    Program { name: "nbdsh", package: "python3-libnbd" },
    Program { name: "nbdkit", package: "nbdkit" },
    Program { name: "qemu-nbd", package: "qemu-utils" },
    Program { name: "certtool", package: "gnutls-bin" },
    Program { name: "setpriv", package: "util-linux" },
];

/// Runs all of it, also after a failure, so that one run shows everything.
pub(crate) fn main() -> Result<ExitCode> {
    let began = Instant::now();
    let root = lint::workspace_root()?;
    let mut phases = Phases::default();
    let needed: Vec<Program> = PROGRAMS.into_iter().chain(guest::programs()).collect();
    if let Outcome::Unavailable(reason) = phases.time("packages", || packages::ensure_installed(&needed))? {
        eprintln!("test: {reason}; tests that need it will say that they were skipped");
    }
    let mut total = Tally::default();
    total.add(Tally::one(phases.time("lint", || lint::passes_without_clippy(&root))));
    let built = phases.time("build of the tests, by clippy", || build::build(&root))?;
    total.add(Tally::one(built.succeeded && built.complaints == 0));
    let ran = phases.time("tests", || programs::run(built.programs.clone()))?;
    for ran in ran {
        phases.add(format!("  {}: {} tests", ran.name, ran.tally.passed + ran.tally.failed), ran.taken);
        total.add(ran.tally);
    }
    total.add(match plumb_of_guests(&built)? {
        Some((plumb, _directory)) => phases.time("guests", || guest::test(&plumb))?,
        None => Tally::one(false),
    });
    phases.add("all of it", began.elapsed());
    print!("{}", phases.table());
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The plumb of the tests for the guests, without its symbols, since all of it is unpacked at each boot; and the directory
/// that holds it. None if it could not be made.
fn plumb_of_guests(built: &Built) -> Result<Option<(PathBuf, TempDir)>> {
    let Some(plumb) = &built.plumb else { return Ok(None) };
    let directory = tempfile::tempdir().context("making a directory for the plumb of the guests")?;
    let stripped = directory.path().join("plumb");
    let status =
        Command::new("strip").arg("-o").args([&stripped, plumb]).status().context("starting strip")?;
    Ok(status.success().then_some((stripped, directory)))
}

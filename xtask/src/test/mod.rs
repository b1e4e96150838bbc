//! `cargo xtask test`: all tests, on a fresh machine, with one command.
//!
//! It installs the packages that the tests need (as root, with a message), then lints, compiles everything
//! once (`build`), and runs every test of the workspace (`programs`), those of `integrations/` and the guests
//! in parallel. It ends with the durations, and one line with the numbers of passed, failed and skipped
//! tests.

mod build;
mod integrations;
mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use build::Built;
use programs::ProgramResult;
use tempfile::TempDir;

use crate::packages::{self, Outcome, Program};
use crate::phases::Phases;
use crate::tally::Tally;
use crate::{guest, lint, workspace};

/// Programs that the tests use, in addition to those of the guests.
const PROGRAMS: &str = "fio chromium promtool=prometheus losetup=mount mkfs.ext4=e2fsprogs mkfs.xfs=xfsprogs \
    mkfs.btrfs=btrfs-progs mkfs.vfat=dosfstools mkfs.exfat=exfatprogs mkfs.ntfs=ntfs-3g mkfs.f2fs=f2fs-tools \
    mkfs.jfs=jfsutils mkfs.nilfs2=nilfs-tools mkfs.reiserfs=reiserfsprogs mkfs.erofs=erofs-utils sfdisk=fdisk strace \
    python3 nbdinfo=libnbd-bin nbdsh=python3-libnbd nbdkit qemu-nbd=qemu-utils certtool=gnutls-bin setpriv=util-linux psql=postgresql \
    ansible-playbook=ansible-core sshd=openssh-server ssh=openssh-client jsonschema=python3-jsonschema shellcheck systemd-analyze=systemd kubectl=kubernetes-client";

/// Runs everything, even after a failure, so that one run shows all failures.
pub(crate) fn main() -> Result<ExitCode> {
    let began = Instant::now();
    let root = workspace::root()?;
    let (mut phases, mut total) = (Phases::default(), Tally::default());
    // Packages are downloaded while the processors compile.
    let (is_clean, built) = std::thread::scope(|scope| {
        let preparing = scope.spawn(|| prepare(&root, &mut phases));
        let built = build::build(&root);
        (preparing.join().expect("it does not panic"), built)
    });
    phases.add("build of the tests, by clippy, beside both", began.elapsed());
    let built = built?;
    total.add(Tally::one(is_clean?));
    total.add(Tally::one(built.succeeded && built.complaints == 0));
    total.add(Tally::one(phases.time("tests in documentation", || build::documentation_tests_pass(&root))?));
    let ran = phases.time("tests", || run_side_by_side(&root, &built));
    let mut failures = String::new();
    for ran in ran? {
        phases.add(format!("  {}: {} tests", ran.name, ran.tally.passed + ran.tally.failed), ran.taken);
        total.add(ran.tally);
        failures.push_str(&ran.failures);
    }
    phases.add("all of it", began.elapsed());
    print!("{failures}{}", phases.table());
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Installs the packages that the tests need, and lints. Returns true if lint passed.
///
/// # Errors
/// If packages cannot be installed.
fn prepare(root: &Path, phases: &mut Phases) -> Result<bool> {
    let needed: Vec<Program> = packages::programs(PROGRAMS).chain(guest::programs()).collect();
    if let Outcome::Unavailable(reason) = phases.time("packages", || packages::ensure_installed(&needed))? {
        eprintln!("test: {reason}; tests that need it will say that they were skipped");
    }
    Ok(phases.time("lint", || lint::passes_without_compiling(root)))
}

/// Runs the test programs, those of `integrations/` and the guests in parallel, since each of them waits at
/// times.
///
/// # Errors
/// If one of them cannot be run at all.
fn run_side_by_side(root: &Path, built: &Built) -> Result<Vec<ProgramResult>> {
    let integrations = || match &built.plumb {
        Some(plumb) => integrations::run(root, plumb),
        None => Ok(Tally::one(false)),
    };
    let guests = || match plumb_of_guests(built)? {
        Some((plumb, _directory)) => guest::test(&plumb),
        None => Ok(Tally::one(false)),
    };
    std::thread::scope(|scope| {
        let integrations = scope.spawn(|| timed("integrations", integrations));
        let guests = scope.spawn(|| timed("guests", guests));
        let mut ran = programs::run(built.programs.clone())?;
        for beside in [integrations, guests] {
            ran.push(beside.join().expect("neither panics")?);
        }
        Ok(ran)
    })
}

fn timed(name: &str, run: impl FnOnce() -> Result<Tally>) -> Result<ProgramResult> {
    let began = Instant::now();
    let tally = run()?;
    Ok(ProgramResult { name: name.to_owned(), tally, taken: began.elapsed(), failures: String::new() })
}

/// Returns a copy of plumb for the guests, without its symbols to unpack faster at each boot, and the
/// directory that holds it; `None` if it could not be made.
fn plumb_of_guests(built: &Built) -> Result<Option<(PathBuf, TempDir)>> {
    let Some(plumb) = &built.plumb else { return Ok(None) };
    let directory = tempfile::tempdir().context("making a directory for the plumb of the guests")?;
    let stripped = directory.path().join("plumb");
    let status =
        Command::new("strip").arg("-o").args([&stripped, plumb]).status().context("starting strip")?;
    Ok(status.success().then_some((stripped, directory)))
}

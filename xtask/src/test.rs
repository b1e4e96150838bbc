//! `cargo xtask test`: everything that must pass, on a fresh machine, with one command.
//!
//! It installs what the tests need (Debian packages, as root, told aloud), then lints, runs every test of the
//! workspace, and boots the guests. It ends with one line that counts what passed, failed and was skipped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::packages::{self, Outcome, Program};
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

/// The variable by which tests say what they skipped; `plumb_testkit::SKIPPED`.
const SKIPPED: &str = "PLUMB_SKIPPED";

/// Runs all of it, also after a failure, so that one run shows everything.
pub(crate) fn main() -> Result<ExitCode> {
    let root = lint::workspace_root()?;
    if let Outcome::Unavailable(reason) = packages::ensure_installed(&PROGRAMS)? {
        eprintln!("test: {reason}; tests that need it will say that they were skipped");
    }
    let mut total = Tally::default();
    total.add(Tally::one(lint::main()? == ExitCode::SUCCESS));
    total.add(workspace(&root)?);
    total.add(guests(&root)?);
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every test of the workspace.
fn workspace(root: &Path) -> Result<Tally> {
    let skipped = tempfile::NamedTempFile::new().context("making the list of skipped tests")?;
    let mut child = Command::new("cargo")
        .args(["test", "--workspace", "--all-features", "--no-fail-fast"])
        .current_dir(root)
        .env(SKIPPED, skipped.path())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut tally = Tally::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("reading from cargo test")?;
        println!("{line}");
        tally.add(tally_of(&line).unwrap_or_default());
    }
    let status = child.wait().context("waiting for cargo test")?;
    if !status.success() && tally.failed == 0 {
        // It did not compile, or a test program died.
        tally.failed = 1;
    }
    let skips = fs::read_to_string(skipped.path()).context("reading the list of skipped tests")?;
    for skip in skips.lines() {
        println!("skipped {skip}");
        tally.passed = tally.passed.saturating_sub(1);
        tally.skipped += 1;
    }
    Ok(tally)
}

/// What one line of libtest says: `test result: ok. 10 passed; 0 failed; 1 ignored; ...`.
fn tally_of(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        counts.split("; ").find_map(|part| part.strip_suffix(word)?.trim().parse::<usize>().ok()).unwrap_or(0)
    };
    Some(Tally { passed: count("passed"), failed: count("failed"), skipped: count("ignored") })
}

/// Real kernels on emulated drives, with the plumb of this tree inside: the one that the tests have just run, so that
/// nothing is built twice, without its symbols, since all of it is unpacked at each boot.
fn guests(root: &Path) -> Result<Tally> {
    let build = ["build", "--quiet", "--workspace", "--all-features", "--bin", "plumb"];
    let built =
        Command::new("cargo").args(build).current_dir(root).status().context("starting cargo build")?;
    let directory = tempfile::tempdir().context("making a directory for the plumb of the guests")?;
    let plumb = directory.path().join("plumb");
    let stripped = built.success()
        && Command::new("strip")
            .arg("-o")
            .args([&plumb, &crate::target_directory(root)?.join("debug/plumb")])
            .status()
            .context("starting strip")?
            .success();
    if stripped { guest::test(&plumb) } else { Ok(Tally::one(false)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_of_libtest_are_counted() {
        let line = "test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.09s";
        assert_eq!(tally_of(line), Some(Tally { passed: 10, failed: 2, skipped: 1 }));
        assert_eq!(tally_of("running 3 tests"), None);
    }
}

//! Test programs, run in parallel on all processors, the longest first. The output of each is stored until it
//! has ended, and printed if a test failed.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::build::TestProgram;
use crate::tally::Tally;
use crate::{packages, process};

/// Variable with the file to which tests write their skips; `plumb_testkit::SKIPPED`.
const SKIPPED: &str = "PLUMB_SKIPPED";

/// Programs with long durations, the longest first. They start before the others, so that none runs alone at
/// the end.
const LONGEST: [&str; 6] = [
    "plumb/all",
    "plumb-prove/all",
    "plumb-report/all",
    "plumb-cache/all",
    "plumb-serve/all",
    "plumb-compare/all",
];

/// Program whose tests mostly wait for other programs.
const WAITING: &str = "plumb/all";

/// Result of a program.
#[derive(Debug)]
pub(super) struct ProgramResult {
    /// Name of the program.
    pub(super) name: String,
    /// Tally of its tests.
    pub(super) tally: Tally,
    /// Duration.
    pub(super) taken: Duration,
    /// Report of the failed tests, repeated at the end of the output. Empty if none failed.
    pub(super) failures: String,
}

/// Runs all programs. The results are in the order of their ends.
///
/// # Errors
/// If one cannot be started.
pub(super) fn run(mut programs: Vec<TestProgram>) -> Result<Vec<ProgramResult>> {
    let rank = |program: &TestProgram| LONGEST.iter().position(|name| *name == program.name);
    programs.sort_by_key(|program| rank(program).unwrap_or(LONGEST.len()));
    let waiting = Mutex::new(VecDeque::from(programs));
    let ran = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..processors() {
            scope.spawn(|| {
                while let Some(program) = next() {
                    let done = run_one(&program);
                    ran.lock().unwrap_or_else(PoisonError::into_inner).push(done);
                }
            });
        }
    });
    ran.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
}

/// Returns the command of the program, as root in its own mount namespace with shared propagation, as systemd
/// sets it up. Otherwise, in a container, mounts of one program would stay in use by the copy that another
/// one has made meanwhile.
fn among_mounts_of_its_own(path: &Path) -> Result<Command> {
    if !packages::is_root()? {
        return Ok(Command::new(path));
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "shared", "--"]).arg(path);
    Ok(command)
}

/// Returns the number of processors; 1 if unknown.
fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn run_one(program: &TestProgram) -> Result<ProgramResult> {
    let TestProgram { name, path, directory } = program;
    let skipped = tempfile::NamedTempFile::new().context("making the list of skipped tests")?;
    let began = Instant::now();
    let threads = processors() * if name == WAITING { 2 } else { 1 };
    let mut command = among_mounts_of_its_own(path)?;
    command
        // Variable of libtest.
        .env("RUST_TEST_THREADS", threads.to_string())
        .current_dir(directory)
        // Cargo sets this variable too; a program started by a test may look for its files there.
        .env("CARGO_MANIFEST_DIR", directory)
        .env(SKIPPED, skipped.path());
    let (status, said) = process::run_unless_it_hangs(command)?;
    let taken = began.elapsed();
    let mut tally = said.lines().filter_map(tally_of).fold(Tally::default(), |mut sum, tally| {
        sum.add(tally);
        sum
    });
    let mut failures = String::new();
    if !status.success() {
        // A program that died has not counted its failed test.
        tally.failed = tally.failed.max(1);
        println!("{name}: {status}\n{said}");
        failures = format!("{name}: {status}\n{}", failures_of(&said));
        let unended = unended(&said);
        if !unended.is_empty() {
            writeln!(failures, "not ended: {}", unended.join(", "))?;
        }
    }
    for skip in skips(skipped.path())? {
        println!("skipped {name} {skip}");
        tally.passed = tally.passed.saturating_sub(1);
        tally.skipped += 1;
    }
    let Tally { passed, failed, skipped } = tally;
    println!("{name}: {passed} passed, {failed} failed, {skipped} skipped in {:.1} s", taken.as_secs_f64());
    Ok(ProgramResult { name: name.clone(), tally, taken, failures })
}

/// Returns the part of libtest's output that explains failures; empty without one.
fn failures_of(said: &str) -> &str {
    said.find("\nfailures:\n").map_or("", |at| &said[at + 1..])
}

/// Returns the tests that libtest reported as slow and not as ended.
fn unended(said: &str) -> Vec<&str> {
    said.lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" has been running for over "))
        .map(|(name, _)| name)
        .filter(|name| !said.contains(&format!("test {name} ... ")))
        .collect()
}

/// Returns the tests that reported that they cannot run here, with their reasons.
fn skips(list: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(list).context("reading the list of skipped tests")?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Reads the tally from one line of libtest: `test result: ok. 10 passed; 0 failed; 1 ignored; ...`.
fn tally_of(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        counts.split("; ").find_map(|part| part.strip_suffix(word)?.trim().parse::<usize>().ok()).unwrap_or(0)
    };
    Some(Tally { passed: count("passed"), failed: count("failed"), skipped: count("ignored") })
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

    #[test]
    fn tests_that_have_not_ended_are_named() {
        let said = "test a has been running for over 60 seconds\n\
                    test b has been running for over 60 seconds\ntest a ... ok\n";
        assert_eq!(unended(said), ["b"]);
    }

    #[test]
    fn a_program_that_dies_has_failed() {
        let program =
            |path: &str| TestProgram { name: path.into(), path: path.into(), directory: "/".into() };
        let ran = run(vec![program("/bin/false"), program("/bin/true")]).unwrap();
        let failed: Vec<_> = ran.iter().filter(|ran| ran.tally.failed > 0).map(|ran| &ran.name).collect();
        assert_eq!(failed, ["/bin/false"]);
        assert_eq!(
            failures_of("test a ... FAILED\n\nfailures:\n\n---- a stdout ----\n"),
            "failures:\n\n---- a stdout ----\n"
        );
    }
}

//! Tests of `integrations/`, in Python like most of their subjects. They skip parts whose programs are
//! missing.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::tally::Tally;

/// Runs the tests with this plumb.
///
/// # Errors
/// If Python cannot be started.
pub(super) fn run(root: &Path, plumb: &Path) -> Result<Tally> {
    let mut command = Command::new("python3");
    command
        .args(["-m", "unittest", "discover", "--verbose", "--start-directory", "integrations/tests"])
        .env("PLUMB", plumb)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(root);
    let (status, said) = process::run_unless_it_hangs(command)?;
    let tally = tally_of(&said);
    if !status.success() || tally.failed > 0 {
        println!("integrations: {status}\n{said}");
    }
    for line in said.lines().filter(|line| line.contains(" ... skipped ")) {
        println!("skipped integrations {line}");
    }
    // Tests that never began are not in the tally.
    let failed = tally.failed.max(usize::from(!status.success()));
    Ok(Tally { failed, ..tally })
}

/// Reads the tally from the last lines of unittest: `Ran 9 tests in 1.2s`,
/// `FAILED (failures=1, errors=1, skipped=2)`.
fn tally_of(said: &str) -> Tally {
    let number = |text: &str| text.parse::<usize>().unwrap_or(0);
    let ran = said.lines().rev().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next().map(number));
    let ended = said.lines().rev().find(|line| line.starts_with("OK") || line.starts_with("FAILED"));
    let counts = ended.and_then(|line| line.split_once('(')).map_or("", |(_, counts)| counts);
    let count = |word: &str| -> usize {
        let each = counts.trim_end_matches(')').split(", ").filter_map(|count| count.split_once('='));
        each.filter(|(name, _)| *name == word).map(|(_, count)| number(count)).sum()
    };
    let (failed, skipped) = (count("failures") + count("errors"), count("skipped"));
    Tally { passed: ran.unwrap_or(0).saturating_sub(failed + skipped), failed, skipped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_of_unittest_are_counted() {
        let count = |text: &str| {
            let Tally { passed, failed, skipped } = tally_of(text);
            (passed, failed, skipped)
        };
        assert_eq!(count("a ... ok\n\nRan 9 tests in 1.2s\n\nOK (skipped=2)\n"), (7, 0, 2));
        assert_eq!(count("Ran 9 tests in 1.2s\n\nFAILED (failures=1, errors=2, skipped=1)\n"), (5, 3, 1));
        assert_eq!(count("Ran 1 test in 1.2s\n\nOK\n"), (1, 0, 0));
        assert_eq!(count("Traceback"), (0, 0, 0));
    }
}

//! Results of the kit.

use std::fmt;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The device kept its contract as far as this check tests it.
    Passed,
    /// The rig cannot stage an event that the check needs, or the device lacks a feature.
    Skipped {
        /// Reason.
        because: String,
    },
    /// The device broke its contract.
    Failed {
        /// The observation, the allowed results, and the seeds that reproduce it.
        why: String,
    },
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The name of the check, in words joined by hyphens.
    pub name: String,
    /// Result of the check.
    pub verdict: Verdict,
}

/// All checks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Description of the rig.
    pub rig: String,
    /// The seed of the kit.
    pub seed: u64,
    /// Results in the order in which the checks ran.
    pub checks: Vec<CheckReport>,
}

impl Report {
    /// Returns the checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CheckReport> {
        self.checks.iter().filter(|check| matches!(check.verdict, Verdict::Failed { .. }))
    }

    /// Returns the names of the checks that were skipped.
    pub fn skipped(&self) -> impl Iterator<Item = &str> {
        let skipped = self.checks.iter().filter(|check| matches!(check.verdict, Verdict::Skipped { .. }));
        skipped.map(|check| check.name.as_str())
    }

    /// Prints the report, skipped checks with their reasons, and ends the test if a check failed.
    ///
    /// # Panics
    /// If a check failed, or if none passed.
    pub fn assert_conforms(&self) {
        eprintln!("{self}");
        assert!(self.failed().next().is_none(), "the device breaks the contract of the waist:\n{self}");
        assert!(
            self.checks.iter().any(|check| check.verdict == Verdict::Passed),
            "no check could be run:\n{self}"
        );
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "conformance of {} (seed {})", self.rig, self.seed)?;
        for check in &self.checks {
            match &check.verdict {
                Verdict::Passed => writeln!(f, "  passed   {}", check.name)?,
                Verdict::Skipped { because } => writeln!(f, "  SKIPPED  {}: {because}", check.name)?,
                Verdict::Failed { why } => writeln!(f, "  FAILED   {}: {why}", check.name)?,
            }
        }
        Ok(())
    }
}

//! Counts of test results, to which every task adds.

/// Number of tests by result.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Ran and passed.
    pub(crate) passed: usize,
    /// Ran and failed.
    pub(crate) failed: usize,
    /// Could not run on this machine.
    pub(crate) skipped: usize,
}

impl Tally {
    /// Adds the counts of another step.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Counts one test.
    pub(crate) fn one(passed: bool) -> Self {
        Self { passed: usize::from(passed), failed: usize::from(!passed), skipped: 0 }
    }
}

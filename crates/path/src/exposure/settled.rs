//! Upper bound of the data written but not yet durable, from two counters that only grow: bytes written, and
//! completed operations (flushes, commits) that each make durable everything written before they began.

use std::collections::VecDeque;

/// Maximum number of samples kept. Dropping samples loosens the bound but keeps it correct.
const SAMPLES_MAX: usize = 4096;

/// Counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Bytes written so far.
    pub(crate) written: u64,
    /// Operations completed so far.
    pub(crate) completed: u64,
}

/// History of both counters.
#[derive(Debug, Clone)]
pub(crate) struct SettledData {
    /// Maximum number of concurrent operations.
    at_once: u64,
    samples: VecDeque<Progress>,
}

impl SettledData {
    pub(crate) fn new(at_once: u64) -> Self {
        Self { at_once, samples: VecDeque::new() }
    }

    /// Adds a sample. Returns an upper bound of the bytes that are not durable at its time; `None` until one
    /// is known.
    ///
    /// At most `at_once` operations were in progress at an earlier sample. If one more has completed since,
    /// at least one of them began after that sample, and everything written by then is durable.
    pub(crate) fn take(&mut self, now: Progress) -> Option<u64> {
        if self.samples.back() != Some(&now) {
            self.samples.push_back(now);
        }
        let is_past = |sample: &Progress| now.completed.saturating_sub(sample.completed) > self.at_once;
        // Keep the latest settled sample, which gives the bound until the next one is settled.
        while self.samples.get(1).is_some_and(is_past) {
            self.samples.pop_front();
        }
        if self.samples.len() > SAMPLES_MAX {
            self.samples.remove(1);
        }
        let settled = self.samples.front().filter(|sample| is_past(sample))?;
        Some(now.written.saturating_sub(settled.written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(at_once: u64, samples: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut settled = SettledData::new(at_once);
        let take = |(written, completed): &(u64, u64)| {
            settled.take(Progress { written: *written, completed: *completed })
        };
        samples.iter().map(take).collect()
    }

    #[test]
    fn one_completion_may_be_of_an_operation_that_began_before() {
        assert_eq!(after(1, &[(100, 7), (150, 8), (180, 9), (200, 9)]), [None, None, Some(80), Some(100)]);
        assert_eq!(after(2, &[(100, 7), (150, 8), (180, 9), (200, 10)]), [None, None, None, Some(100)]);
    }

    #[test]
    fn the_latest_settled_sample_bounds() {
        assert_eq!(
            after(1, &[(0, 0), (10, 0), (20, 1), (30, 2), (40, 2), (50, 4)])[3..],
            [Some(20), Some(30), Some(10)]
        );
        assert_eq!(after(1, &[(0, 0), (10, 5)]), [None, Some(10)]);
    }
}

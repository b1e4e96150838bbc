//! Time that a thread ran on a processor and waited for one: /proc/PID/task/TID/schedstat
//! (Documentation/scheduler/sched-stats.rst).

use std::path::Path;

use plumb_block::Nanos;
use serde::{Deserialize, Serialize};

/// The scheduler's statistics of one thread since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnThread {
    /// Time on a processor, in user and kernel mode together.
    pub running: Nanos,
    /// Time spent ready to run, waiting for a processor.
    pub waiting: Nanos,
}

impl OwnThread {
    /// Parses a schedstat file; `None` if it does not start with two numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace().map(|field| field.parse().ok().map(Nanos));
        Some(Self { running: fields.next()??, waiting: fields.next()?? })
    }

    /// Returns the difference from `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self { running: self.running.since(earlier.running), waiting: self.waiting.since(earlier.waiting) }
    }

    /// Returns the sum of two windows of a thread.
    pub fn plus(self, other: Self) -> Self {
        Self { running: self.running + other.running, waiting: self.waiting + other.waiting }
    }

    /// Reads the values of the calling thread from `root/thread-self/schedstat`; `root` is `/proc`. Returns
    /// `None` if the kernel does not keep them.
    pub fn read(root: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(root.join("thread-self/schedstat")).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_of_running_and_waiting() {
        let parsed = OwnThread::parse("1203344 99 17\n");
        assert_eq!(parsed, Some(OwnThread { running: Nanos(1_203_344), waiting: Nanos(99) }));
        for text in ["", "12", "a b c", "-1 2 3"] {
            assert_eq!(OwnThread::parse(text), None, "{text:?}");
        }
    }
}

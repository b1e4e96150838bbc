//! Memory and processor time of the machine (proc(5)).

use super::Tree;
use super::process::field;

const STAT: &str = "/proc/stat";

/// Processor ticks since boot, by use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorTimes {
    /// Time in programs, including niced ones.
    pub user: u64,
    /// Time in the kernel, including interrupts.
    pub system: u64,
    /// Idle time without outstanding I/O.
    pub idle: u64,
    /// Idle time with outstanding I/O.
    pub io_wait: u64,
    /// Time in which the hypervisor ran something else although a task was ready.
    pub steal: u64,
}

impl ProcessorTimes {
    /// Reads the sum of all processors; `None` without a `cpu` line of at least five fields. Later fields
    /// that the kernel does not report are zero.
    pub fn read(tree: &dyn Tree) -> Option<Self> {
        Self::parse_line(tree.text(STAT).ok()?.lines().find(|line| line.starts_with("cpu "))?)
    }

    /// Reads the times of each processor, by number; empty if /proc is hidden.
    pub fn read_each(tree: &dyn Tree) -> Vec<(u32, Self)> {
        let numbered = |line: &str| {
            let number = line.strip_prefix("cpu")?.split_ascii_whitespace().next()?.parse().ok()?;
            Some((number, Self::parse_line(line)?))
        };
        tree.text(STAT).unwrap_or_default().lines().filter_map(numbered).collect()
    }

    fn parse_line(line: &str) -> Option<Self> {
        let fields: Vec<u64> =
            line.split_ascii_whitespace().skip(1).map(str::parse).collect::<Result<_, _>>().ok()?;
        let field = |index: usize| fields.get(index).copied().unwrap_or(0);
        // Guest time (fields 9 and 10) is included in user and nice.
        (fields.len() >= 5).then(|| Self {
            user: field(0) + field(1),
            system: field(2) + field(5) + field(6),
            idle: field(3),
            io_wait: field(4),
            steal: field(7),
        })
    }

    /// Returns the share (0 to 1) of processor time that the hypervisor took since `earlier`; `None` if no
    /// tick passed.
    pub fn steal_since(&self, earlier: &Self) -> Option<f64> {
        let total = self.total().checked_sub(earlier.total()).filter(|ticks| *ticks > 0)?;
        Some(self.steal.saturating_sub(earlier.steal) as f64 / total as f64)
    }

    fn total(&self) -> u64 {
        self.user + self.system + self.idle + self.io_wait + self.steal
    }
}

/// Returns the machine's memory in bytes.
pub fn memory_bytes(tree: &dyn Tree) -> Option<u64> {
    Some(field::<u64>(&tree.text("/proc/meminfo").ok()?, "MemTotal:")? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::RecordedTree;

    fn read(text: &str) -> Option<ProcessorTimes> {
        let mut tree = RecordedTree::new();
        tree.put_text(STAT, text);
        ProcessorTimes::read(&tree)
    }

    #[test]
    fn steal_is_a_share_of_all_time() {
        let text = |user, steal| {
            format!("cpu  {user} 10 50 800 20 3 7 {steal} 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 9\n")
        };
        let before = read(&text(100, 10)).unwrap();
        assert_eq!(before, ProcessorTimes { user: 110, system: 60, idle: 800, io_wait: 20, steal: 10 });
        let after = read(&text(175, 35)).unwrap();
        assert_eq!(after.steal_since(&before), Some(0.25));
        assert_eq!(before.steal_since(&before), None);
    }

    #[test]
    fn old_and_broken_texts() {
        let old = read("cpu 1 2 3 4 5\n").unwrap();
        assert_eq!(old.steal, 0);
        for text in ["", "cpu\n", "cpu 1 2 3 4\n", "cpu 1 2 x 4 5 6\n", "cpu0 1 2 3 4 5 6 7 8\n"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}

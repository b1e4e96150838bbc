//! Processes and threads by their numbers, from proc(5). One that has ended has no name and no values.

use std::fmt::Display;
use std::str::FromStr;

use plumb_block::Nanos;

use super::Tree;

/// Length of a tick in /proc: USER_HZ is 100 on all architectures that plumb supports
/// (include/asm-generic/param.h).
pub const TICK: Nanos = Nanos::millis(10);

/// Returns the numeric names in a directory in ascending order: processes, threads or descriptors.
pub fn numbers(tree: &dyn Tree, directory: &str) -> Vec<u32> {
    let names = tree.list(directory).unwrap_or_default();
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Returns the first word after `key`, which stands at the beginning of a line, followed by a colon.
pub fn field<T: FromStr>(text: &str, key: &str) -> Option<T> {
    let value = |line: &str| line.strip_prefix(key)?.split_ascii_whitespace().next()?.parse().ok();
    text.lines().find_map(value)
}

/// Returns a field of `/proc/TASK/status`.
pub fn status<T: FromStr>(tree: &dyn Tree, task: u32, key: &str) -> Option<T> {
    field(&tree.text(&format!("/proc/{task}/status")).ok()?, key)
}

/// Returns the name of a process; empty if it has ended.
pub fn name(tree: &dyn Tree, process: impl Display) -> String {
    tree.text(&format!("/proc/{process}/comm")).unwrap_or_default()
}

/// Fields of proc_pid_stat(5) in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    /// Name of the program.
    pub name: String,
    /// State letter: `t` while a tracer has stopped it, `Z` once it has ended.
    pub state: char,
    /// Number of its process group.
    pub group: u32,
    /// The kernel's flags (`PF_*` of include/linux/sched.h).
    pub flags: u64,
    /// Processor time in programs.
    pub user: Nanos,
    /// Processor time in the kernel.
    pub system: Nanos,
}

impl ProcessStat {
    /// Reads the stat line of a process or thread, by its number or `self`.
    pub fn read(tree: &dyn Tree, task: impl Display) -> Option<Self> {
        let line = tree.text(&format!("/proc/{task}/stat")).ok()?;
        // The name may hold spaces and parentheses; what follows it does not.
        let (name, rest) = line.split_once('(')?.1.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            name: name.to_owned(),
            state: rest.chars().next()?,
            group: number(2)? as u32,
            flags: number(6)?,
            user: TICK * number(11)?,
            system: TICK * number(12)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::RecordedTree;

    #[test]
    fn a_program_may_be_called_like_the_rest_of_its_line() {
        let mut tree = RecordedTree::new();
        let line = "12 (a) t 1 (b) S 1 34 34 0 -1 2097216 7 0 0 0 250 3 0 0 20 0 1 0\n";
        tree.put_text("/proc/12/stat", line);
        tree.put_text("/proc/12/comm", "a) t 1 (b\n");
        tree.put_text("/proc/12/status", "Name:\ta) t 1 (b\nTgid:\t12\nTracerPid:\t3\n");
        tree.put_text("/proc/7/comm", "init\n");
        let name = "a) t 1 (b".to_owned();
        assert_eq!(super::name(&tree, 12), name);
        let (user, system) = (Nanos::millis(2_500), Nanos::millis(30));
        let read = ProcessStat { name, state: 'S', group: 34, flags: 0x0020_0040, user, system };
        assert_eq!(ProcessStat::read(&tree, 12), Some(read));
        assert_eq!(status(&tree, 12, "TracerPid:"), Some(3));
        assert_eq!(numbers(&tree, "/proc"), [7, 12]);
        assert_eq!((ProcessStat::read(&tree, 13), super::name(&tree, 13)), (None, String::new()));
    }
}

//! State of threads and processes under strace(1), from proc(5).

use std::fs;

/// Line of proc_pid_stat(5), as far as it is used.
pub(super) struct State {
    pub(super) name: String,
    letter: char,
    pub(super) group: u32,
}

impl State {
    /// Reads the state of a thread; `None` if there is no such thread.
    pub(super) fn read(thread: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        let mut words = rest.split(' ');
        let letter = words.next()?.chars().next()?;
        Some(Self { name: name.to_owned(), letter, group: words.nth(1)?.parse().ok()? })
    }
}

/// Returns true if a tracer holds the thread: state `t` of proc(5).
pub(crate) fn is_held(thread: u32) -> bool {
    State::read(thread).is_some_and(|state| state.letter == 't')
}

/// Returns true if the thread has ended, as it does when it is killed while it is held.
pub(super) fn is_gone(thread: u32) -> bool {
    State::read(thread).is_none_or(|state| matches!(state.letter, 'Z' | 'X'))
}

/// Returns the process that traces a thread: 0 if none does, `None` if there is no such thread.
pub(crate) fn tracer(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse().ok()
}

/// Returns the processes that a process traces.
pub(crate) fn traced_by(process: u32) -> Vec<u32> {
    numbers("/proc").into_iter().filter(|found| tracer(*found) == Some(process)).collect()
}

/// Returns the entries of a directory of proc(5) that are numbers.
pub(crate) fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

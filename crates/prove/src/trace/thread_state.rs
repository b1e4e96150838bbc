//! State of threads and processes under strace(1), from proc(5).

use plumb_linux::tree::LiveTree;
use plumb_linux::tree::process::{ProcessStat, numbers, status};

/// Returns true if a tracer holds the thread (state `t` of proc(5)).
pub(crate) fn is_held(thread: u32) -> bool {
    ProcessStat::read(&LiveTree, thread).is_some_and(|stat| stat.state == 't')
}

/// Returns true if the thread has ended, for example if it was killed while held.
pub(super) fn is_gone(thread: u32) -> bool {
    ProcessStat::read(&LiveTree, thread).is_none_or(|stat| matches!(stat.state, 'Z' | 'X'))
}

/// Returns the process that traces a thread; 0 if there is none, `None` if the thread does not exist.
pub(crate) fn tracer(thread: u32) -> Option<u32> {
    status(&LiveTree, thread, "TracerPid:")
}

/// Returns the processes that a process traces.
pub(crate) fn traced_by(process: u32) -> Vec<u32> {
    numbers(&LiveTree, "/proc").into_iter().filter(|found| tracer(*found) == Some(process)).collect()
}

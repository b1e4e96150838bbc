//! State of a thread under strace(1), from proc(5).

use std::fs;

/// Returns true if a tracer holds the thread: state `t` of proc(5).
pub(crate) fn is_held(thread: u32) -> bool {
    state(thread) == Some('t')
}

/// Returns true if the thread has ended, as it does when it is killed while it is held.
pub(super) fn is_gone(thread: u32) -> bool {
    matches!(state(thread), None | Some('Z' | 'X'))
}

/// Returns the state of a thread in proc(5); `None` if there is no such thread.
fn state(thread: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

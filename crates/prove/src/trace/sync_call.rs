//! Sync calls of a program, by their places in its trace, so that another run can be made without them.

use std::fmt;
use std::path::{Path, PathBuf};

use plumb_block::Nanos;

use super::strace::kind;
use super::{Call, TracedCalls};

/// A sync call that a program made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncCall {
    /// Number among the sync calls of the work, from 1.
    pub number: u64,
    /// Name of the system call.
    pub name: String,
    /// File or directory that it syncs, beneath the root; empty for the root and for all that there is.
    pub path: PathBuf,
    /// Number among the calls of this name of its thread, from 1, if no other thread makes so many: strace(1)
    /// counts so.
    pub occurrence: Option<u64>,
    /// When it began, by the clock of the calls.
    pub at: Nanos,
    /// Time that it took.
    pub took: Nanos,
}

impl SyncCall {
    /// Returns true if another run made the same call at this place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.number, &self.name, &self.path) == (other.number, &other.name, &other.path)
    }
}

impl fmt::Display for SyncCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path == Path::new("") { Path::new(".") } else { &self.path };
        write!(f, "{}({}), sync call {}", self.name, path.display(), self.number)
    }
}

/// Returns the sync calls of a program that succeeded or failed, in the order in which they returned.
pub(crate) fn sync_calls(traced: &TracedCalls) -> Vec<SyncCall> {
    let (mut found, mut number) = (Vec::new(), 0);
    for (place, call) in traced.calls.iter().enumerate() {
        let Some(path) = call.synced(&traced.root) else { continue };
        number += 1;
        let is_alike = |other: &&Call| other.name == call.name && kind(other) == kind(call);
        let of_thread = |thread: u32, calls: &[Call]| {
            calls.iter().filter(is_alike).filter(|other| other.thread == thread).count()
        };
        let own = of_thread(call.thread, &traced.calls[..=place]);
        let is_alone = traced
            .calls
            .iter()
            .filter(is_alike)
            .all(|other| other.thread == call.thread || of_thread(other.thread, &traced.calls) < own);
        found.push(SyncCall {
            number,
            name: call.name.clone(),
            path: path.strip_prefix(&traced.root).unwrap_or(&path).to_owned(),
            occurrence: is_alone.then_some(own as u64),
            at: call.at,
            took: call.took,
        });
    }
    found
}

/// Returns what strace(1) is told so that these calls are not made, and succeed: `None` if it cannot be.
pub(super) fn injected(calls: &[SyncCall]) -> Option<Vec<String>> {
    let mut names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let expression = |name: &str| {
        let of_name = calls.iter().filter(|call| call.name == name);
        let mut numbers = of_name.map(|call| call.occurrence).collect::<Option<Vec<u64>>>()?;
        numbers.sort_unstable();
        let step = numbers.get(1).map_or(1, |second| second - numbers[0]);
        // One progression is all that an expression can hold.
        if numbers.windows(2).any(|pair| pair[1] - pair[0] != step) {
            return None;
        }
        let (first, last) = (numbers.first()?, numbers.last()?);
        Some(format!("inject={name}:retval=0:when={first}..{last}+{step}"))
    };
    names.into_iter().map(expression).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Lines;

    #[test]
    fn calls_of_one_thread_are_left_out_by_their_numbers_and_those_of_several_are_not() {
        let trace = "1 1.0 fsync(4</m/a>) = 0\n1 2.0 fsync(9</elsewhere>) = 0\n1 3.0 fsync(4</m/a>) = 0\n\
                     2 4.0 fdatasync(4</m/b>) = 0\n3 5.0 fdatasync(4</m/b>) = 0\n";
        let mut lines = Lines::default();
        let calls = trace.lines().filter_map(|line| lines.parse(line)).collect();
        let calls = sync_calls(&TracedCalls { calls, root: "/m".into(), ..TracedCalls::default() });
        let places: Vec<_> = calls.iter().map(|call| (call.number, call.occurrence)).collect();
        assert_eq!(places, [(1, Some(1)), (2, Some(3)), (3, None), (4, None)]);
        assert_eq!(injected(&calls[..2]), Some(vec!["inject=fsync:retval=0:when=1..3+2".to_owned()]));
        assert_eq!(injected(&calls[2..3]), None);
        assert_eq!(calls[1].to_string(), "fsync(a), sync call 2");
    }
}

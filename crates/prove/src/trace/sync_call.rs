//! Sync calls of a program, identified by their positions in the trace, so that another run can skip them.

use std::fmt;
use std::path::{Path, PathBuf};

use plumb_block::Nanos;

use super::strace::kind;
use super::{Call, TracedCalls};

/// Sync call of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncCall {
    /// Number among the sync calls of the work, from 1.
    pub number: u64,
    /// Name of the system call.
    pub name: String,
    /// File or directory that the call syncs, relative to the root; empty for the root and for everything.
    pub path: PathBuf,
    /// Number among the calls of this name of its thread, from 1, which is how strace(1) counts; `None` if
    /// another thread makes as many.
    pub occurrence: Option<u64>,
    /// Start of the call, by the clock of the calls.
    pub at: Nanos,
    /// Duration of the call.
    pub took: Nanos,
}

impl SyncCall {
    /// Returns true if it is the same call in another run.
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

/// Returns the sync calls of a program, successful or not, in the order of their returns.
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

/// Returns the options of strace(1) that skip these calls and report success; `None` if that is impossible.
pub(super) fn injected(calls: &[SyncCall]) -> Option<Vec<String>> {
    let mut names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let expression = |name: &str| {
        let of_name = calls.iter().filter(|call| call.name == name);
        let mut numbers = of_name.map(|call| call.occurrence).collect::<Option<Vec<u64>>>()?;
        numbers.sort_unstable();
        let step = numbers.get(1).map_or(1, |second| second - numbers[0]);
        // An expression can hold only one progression.
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

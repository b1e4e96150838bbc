//! Sync calls that a program lacks, as changes to try: the call, and the system calls after which it is made.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use plumb_block::Nanos;

use super::{Audit, Finding, Lapse, TracedCalls};

/// Maximum number of names in one directory that a change names individually.
const NAMES_MAX: usize = 3;

/// Object to sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sync {
    /// File that the call wrote to, or named last.
    File,
    /// Directory that contains the name of the file.
    Directory,
}

/// Sync call made after every matching system call, before the calling thread continues.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Injection {
    /// Kind of system call, by its plainest name: `unlink` also covers unlinkat(2), `write` all calls that
    /// write through a descriptor.
    pub after: &'static str,
    /// File that the call named last or wrote to, relative to the root. In the name `#` matches any number,
    /// and `*` any name.
    pub path: PathBuf,
    /// Object that is synced.
    pub sync: Sync,
}

impl Injection {
    /// Returns true if it applies to a call of this kind with this path relative to the root.
    pub(super) fn matches(&self, after: &str, path: &Path) -> bool {
        let (own, other) = (self.path.file_name(), path.file_name());
        self.after == after
            && self.path.parent() == path.parent()
            && (own == other
                || own == Some(OsStr::new("*"))
                || own == Some(OsStr::new(&without_numbers(path))))
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.sync {
            Sync::File => "file",
            Sync::Directory => "directory",
        };
        write!(f, "fsync of the {what} after {}({})", self.after, self.path.display())
    }
}

/// Returns the name of a file with `#` for each number.
fn without_numbers(path: &Path) -> String {
    let mut name = String::new();
    for letter in path.file_name().unwrap_or_default().to_string_lossy().chars() {
        match letter {
            '0'..='9' if name.ends_with('#') => {}
            '0'..='9' => name.push('#'),
            letter => name.push(letter),
        }
    }
    name
}

/// Returns the rank of a lapse by the probability that it loses something: 0 is the highest. Returns `None`
/// if no sync call remedies it.
fn rank(lapse: &Lapse) -> Option<u8> {
    match lapse {
        Lapse::DirectoryNotSynced("unlink" | "rename") => Some(0),
        Lapse::RenamedBeforeSync => Some(1),
        Lapse::DataNotSynced { .. } => Some(2),
        Lapse::DirectoryNotSynced("open") => Some(3),
        Lapse::DirectoryNotSynced(_) => Some(4),
        Lapse::FailedSyncIgnored { .. } | Lapse::FailedSyncRetried { .. } => None,
    }
}

/// Returns the sync calls that may remedy the unsynced operations of a program, the most probable first. Only
/// operations unsynced at one of the times in `acknowledged` count, which must increase and be of the clock
/// of the calls.
pub fn candidates(traced: &TracedCalls, acknowledged: &[Nanos]) -> Vec<Injection> {
    let mut audit = Audit::beneath(&traced.root, &traced.names);
    let mut rest = traced.calls.iter().peekable();
    let mut found: BTreeMap<_, BTreeMap<String, Vec<PathBuf>>> = BTreeMap::new();
    for until in acknowledged {
        while let Some(call) = rest.next_if(|call| call.at < *until) {
            audit.observe(call);
        }
        for finding in audit.findings() {
            let Some((rank, after, sync, path)) = missing_sync_call(&audit, traced, &finding) else {
                continue;
            };
            let directory = path.parent().unwrap_or(Path::new("")).to_owned();
            let names = found.entry((rank, after, sync, directory)).or_default();
            let alike = names.entry(without_numbers(&path)).or_default();
            if !alike.contains(&path) && alike.len() < 2 {
                alike.push(path);
            }
        }
    }
    let mut all: Vec<Injection> = Vec::new();
    let mut add = |injection| {
        if !all.contains(&injection) {
            all.push(injection);
        }
    };
    for ((_, after, sync, directory), names) in found {
        if names.len() > NAMES_MAX {
            add(Injection { after, path: directory.join("*"), sync });
            continue;
        }
        for (pattern, mut alike) in names {
            let only = alike.pop().filter(|_| alike.is_empty());
            let path = only.unwrap_or_else(|| directory.join(pattern));
            add(Injection { after, path, sync });
        }
    }
    all
}

/// Returns the sync call that would remedy a finding, with its rank.
fn missing_sync_call(
    audit: &Audit,
    traced: &TracedCalls,
    finding: &Finding,
) -> Option<(u8, &'static str, Sync, PathBuf)> {
    let rank = rank(&finding.lapse)?;
    let call = traced.calls.get(finding.call)?;
    let (after, sync, path) = match finding.lapse {
        Lapse::DirectoryNotSynced(_) => (audit.changed(call)?.0, Sync::Directory, finding.path.clone()),
        // The file must be synced before it replaces the other.
        Lapse::RenamedBeforeSync => ("write", Sync::File, audit.path_at(call, 0)?),
        _ => {
            let (after, path) = audit.changed(call)?;
            (after, Sync::File, path)
        }
    };
    Some((rank, after, sync, path.strip_prefix(&traced.root).ok()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Lines;

    fn injections_for(trace: &str, acknowledged: &[u64]) -> Vec<String> {
        let mut lines = Lines::default();
        let calls = trace.lines().filter_map(|line| lines.parse(line)).collect();
        let traced = TracedCalls { calls, root: "/m".into(), ..TracedCalls::default() };
        let acknowledged: Vec<Nanos> =
            acknowledged.iter().map(|second| Nanos(second * 1_000_000_000)).collect();
        candidates(&traced, &acknowledged).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_stood_open_at_an_acknowledgement_is_mended() {
        let trace =
            "1 1.0 unlink(\"/m/t.db-journal\") = 0\n1 3.0 fsync(4</m>) = 0\n1 5.0 unlink(\"/m/late\") = 0\n";
        assert_eq!(injections_for(trace, &[2, 4]), ["fsync of the directory after unlink(t.db-journal)"]);
        assert_eq!(injections_for(trace, &[4]), Vec::<String>::new());
        assert_eq!(injections_for(trace, &[]), Vec::<String>::new());
    }

    #[test]
    fn data_comes_before_the_rename_and_names_that_differ_in_numbers_are_one() {
        let trace = "1 1.0 write(3</m/d/7.tmp>, \"\"..., 5) = 5\n1 1.1 rename(\"/m/d/7.tmp\", \"/m/d/7\") = 0\n\
                     1 2.0 write(3</m/d/12.tmp>, \"\"..., 5) = 5\n1 2.1 rename(\"/m/d/12.tmp\", \"/m/d/12\") = 0\n";
        assert_eq!(
            injections_for(trace, &[3]),
            ["fsync of the directory after rename(d/#)", "fsync of the file after write(d/#.tmp)"]
        );
        let injection = Injection { after: "rename", path: "d/#".into(), sync: Sync::Directory };
        assert!(injection.matches("rename", Path::new("d/305")));
        assert!(
            !injection.matches("rename", Path::new("d/x5")) && !injection.matches("unlink", Path::new("d/5"))
        );
    }
}

//! Audit of which files a program syncs, and of what it leaves to luck.
//!
//! POSIX promises for fsync(2) of a file its data, and for fsync(2) of a directory its entries. Linux file
//! systems often do more (ext4, xfs and btrfs keep the name of a new file whose fsync returned); what rests
//! on that is left to luck here. After an fsync that failed Linux marks the pages as clean, so that another
//! fsync which succeeds proves nothing (Rebello et al., "Can Applications Recover from fsync Failures?",
//! USENIX ATC 2020).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_block::Nanos;

use super::strace::{Argument, Call, kind};

/// Lapse by which a program leaves something to luck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lapse {
    /// Data was written and never made durable.
    DataNotSynced {
        /// How many bytes since the last sync.
        bytes: u64,
    },
    /// A name was changed by a call of this kind (`open`, `mkdir`, `link`, `rename`, `unlink`), and the
    /// directory never synced afterwards.
    DirectoryNotSynced(&'static str),
    /// A file took the place of another before its data was synced.
    RenamedBeforeSync,
    /// An fsync failed, and the program went on.
    FailedSyncIgnored {
        /// The error.
        error: String,
    },
    /// An fsync failed, and another one was believed.
    FailedSyncRetried {
        /// The error.
        error: String,
    },
}

/// Something that is left to luck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Kind of the lapse.
    pub lapse: Lapse,
    /// File that the lapse concerns.
    pub path: PathBuf,
    /// The call after which something is missing, from 0.
    pub call: usize,
    /// When that was.
    pub at: Nanos,
}

/// State of the audit of a program, from its calls so far.
#[derive(Debug, Default)]
pub struct Audit {
    /// Only what is beneath counts.
    beneath: PathBuf,
    /// Where each thread works, which is where the program began unless something else was seen.
    working: BTreeMap<u32, PathBuf>,
    calls: usize,
    /// Findings that stand unless something follows, by file: data, names, and syncs that failed.
    unsynced: BTreeMap<PathBuf, Finding>,
    entries: BTreeMap<PathBuf, Finding>,
    failed: BTreeMap<PathBuf, Finding>,
    /// Findings that stand whatever follows.
    found: Vec<Finding>,
    synced: BTreeMap<PathBuf, u64>,
    not_seen: BTreeMap<&'static str, u64>,
    /// Files opened so that each write is durable.
    sync_writes: BTreeMap<PathBuf, bool>,
}

impl Audit {
    /// Creates an audit of the files beneath this directory, an absolute path, where the program begins to
    /// work.
    pub fn beneath(directory: &Path) -> Self {
        Self { beneath: directory.to_owned(), ..Self::default() }
    }

    /// How often each file was synced with success.
    pub const fn synced(&self) -> &BTreeMap<PathBuf, u64> {
        &self.synced
    }

    /// Ways to write that calls do not tell of, with how often they were set up: what goes through them is
    /// not judged.
    pub const fn not_seen(&self) -> &BTreeMap<&'static str, u64> {
        &self.not_seen
    }

    /// Returns what is left to luck if the program has made all of its calls.
    pub fn findings(&self) -> Vec<Finding> {
        let open = [&self.unsynced, &self.entries, &self.failed].into_iter().flat_map(BTreeMap::values);
        let mut all: Vec<Finding> = self.found.iter().chain(open).cloned().collect();
        all.sort_by(|a, b| (a.call, &a.path).cmp(&(b.call, &b.path)));
        all
    }

    /// Takes the next call.
    pub fn take(&mut self, call: &Call) {
        self.see_working_directory(call);
        match (kind(call), call.result.is_ok()) {
            ("write", _) => self.wrote(call),
            ("fsync", _) => self.sync_of(call),
            ("sync", _) | ("syncfs", true) => {
                self.unsynced.clear();
                self.entries.clear();
            }
            ("open", true) => self.opened(call),
            ("rename", true) => self.renamed(call),
            ("link", true) => self.entry(call, "link", 1),
            ("mkdir", true) => self.entry(call, "mkdir", 0),
            ("unlink" | "rmdir", true) => self.entry(call, "unlink", 0),
            (way @ ("io_uring" | "aio"), true) => *self.not_seen.entry(way).or_default() += 1,
            ("mmap", true) if is_shared_writable(call) => *self.not_seen.entry("mmap").or_default() += 1,
            _ => {}
        }
        self.calls += 1;
    }

    /// Something that this call leaves to luck.
    fn finding(&self, lapse: Lapse, path: &Path, call: &Call) -> Finding {
        Finding { lapse, path: path.to_owned(), call: self.calls, at: call.at }
    }

    /// Returns what a call changes: the plainest name of a call of its kind, and the last path that it was
    /// given, or wrote to. `None` if it changes nothing beneath the directory of this audit. Its result does
    /// not matter.
    pub(super) fn changed(&self, call: &Call) -> Option<(&'static str, PathBuf)> {
        let kind = kind(call);
        let path = match kind {
            "open" if may_create(call) => self.path_at(call, 0),
            "rename" | "link" => self.path_at(call, 1),
            "mkdir" | "unlink" | "rmdir" => self.path_at(call, 0),
            "write" => written_to(call).map(Path::to_owned),
            _ => None,
        };
        Some((kind, path.filter(|path| self.counts(path))?))
    }

    /// The path that a file had before the call renamed it.
    pub(super) fn renamed_from(&self, call: &Call) -> Option<PathBuf> {
        self.path_at(call, 0)
    }

    fn see_working_directory(&mut self, call: &Call) {
        let named = call.arguments.iter().find_map(|argument| match argument {
            Argument::Descriptor(-100, path) => Some(path.clone()),
            _ => None,
        });
        let changed = match call.name.as_str() {
            "chdir" if call.result.is_ok() => self.path_at(call, 0),
            "fchdir" if call.result.is_ok() => descriptor(call, 0).map(Path::to_owned),
            _ => named,
        };
        if let Some(directory) = changed {
            self.working.insert(call.thread, directory);
        }
    }

    /// The path with this number that a call was given, from 0, made absolute.
    fn path_at(&self, call: &Call, number: usize) -> Option<PathBuf> {
        let mut texts = call.arguments.iter().enumerate().filter_map(|(place, argument)| match argument {
            Argument::Text(path) => Some((place, path)),
            Argument::Descriptor(..) | Argument::Word(_) => None,
        });
        let (place, path) = texts.nth(number)?;
        let directory = place.checked_sub(1).and_then(|before| descriptor(call, before));
        let working = self.working.get(&call.thread).unwrap_or(&self.beneath);
        Some(directory.unwrap_or(working).join(path))
    }

    fn counts(&self, path: &Path) -> bool {
        path.starts_with(&self.beneath) && path != self.beneath
    }

    fn wrote(&mut self, call: &Call) {
        let Some(path) = written_to(call).filter(|path| self.counts(path)) else { return };
        let Ok(written) = call.result else { return };
        let is_durable = self.sync_writes.get(path) == Some(&true) && call.name != "ftruncate";
        if is_durable || has_flag(call, "RWF_DSYNC") || has_flag(call, "RWF_SYNC") {
            return;
        }
        let before = match self.unsynced.get(path) {
            Some(Finding { lapse: Lapse::DataNotSynced { bytes }, .. }) => *bytes,
            _ => 0,
        };
        let lapse = Lapse::DataNotSynced { bytes: before + written.unsigned_abs() };
        self.unsynced.insert(path.to_owned(), self.finding(lapse, path, call));
    }

    fn sync_of(&mut self, call: &Call) {
        let Some(path) = descriptor(call, 0) else { return };
        if !self.counts(path) && path != self.beneath {
            return;
        }
        if let Err(error) = &call.result {
            let lapse = Lapse::FailedSyncIgnored { error: error.clone() };
            self.failed.insert(path.to_owned(), self.finding(lapse, path, call));
            return;
        }
        if let Some(failed) = self.failed.remove(path)
            && let Lapse::FailedSyncIgnored { error } = failed.lapse
        {
            self.found.push(Finding { lapse: Lapse::FailedSyncRetried { error }, ..failed });
        }
        self.unsynced.remove(path);
        self.entries.retain(|name, _| name.parent() != Some(path));
        *self.synced.entry(path.to_owned()).or_default() += 1;
    }

    fn opened(&mut self, call: &Call) {
        let Some(path) = call.opened.as_ref().filter(|path| self.counts(path)) else { return };
        self.sync_writes.insert(path.clone(), has_flag(call, "O_SYNC") || has_flag(call, "O_DSYNC"));
        // The trace does not tell if the file existed before the call; a file that was opened or synced
        // before did.
        let is_known = self.synced.contains_key(path) || self.unsynced.contains_key(path);
        if may_create(call) && !is_known && !self.entries.contains_key(path) {
            let finding = self.finding(Lapse::DirectoryNotSynced("open"), path, call);
            self.entries.insert(path.clone(), finding);
        }
    }

    fn renamed(&mut self, call: &Call) {
        let (Some(from), Some(to)) = (self.path_at(call, 0), self.path_at(call, 1)) else { return };
        if !self.counts(&to) {
            return;
        }
        if let Some(unsynced) = self.unsynced.remove(&from) {
            self.found.push(self.finding(Lapse::RenamedBeforeSync, &to, call));
            self.unsynced.insert(to.clone(), Finding { path: to.clone(), ..unsynced });
        }
        self.entries.remove(&from);
        self.entry(call, "rename", 1);
    }

    fn entry(&mut self, call: &Call, change: &'static str, place: usize) {
        let Some(path) = self.path_at(call, place).filter(|path| self.counts(path)) else { return };
        if change == "unlink" {
            self.unsynced.remove(&path);
            // One that was made since the directory was synced need not be remembered.
            let made = Lapse::DirectoryNotSynced("open");
            if self.entries.get(&path).is_some_and(|finding| finding.lapse == made) {
                self.entries.remove(&path);
                return;
            }
        }
        let finding = self.finding(Lapse::DirectoryNotSynced(change), &path, call);
        self.entries.insert(path, finding);
    }
}

/// The path behind the descriptor at this place.
fn descriptor(call: &Call, place: usize) -> Option<&Path> {
    match call.arguments.get(place)? {
        Argument::Descriptor(_, path) => Some(path),
        Argument::Text(_) | Argument::Word(_) => None,
    }
}

/// The file that a call writes to: its first descriptor, or the second of those that copy.
fn written_to(call: &Call) -> Option<&Path> {
    match call.name.as_str() {
        "copy_file_range" | "splice" => descriptor(call, 2),
        _ => descriptor(call, 0),
    }
}

/// Returns true if a call was given a flag.
pub(crate) fn has_flag(call: &Call, flag: &str) -> bool {
    // The flags of openat2(2) are in a structure.
    let is_flag = |word: &str| word.split(['|', '=', ',']).any(|word| word == flag);
    call.arguments.iter().any(|one| matches!(one, Argument::Word(word) if is_flag(word)))
}

/// Returns true if opening it may give a new file its name.
pub(crate) fn may_create(call: &Call) -> bool {
    (has_flag(call, "O_CREAT") || call.name == "creat") && !has_flag(call, "O_TMPFILE")
}

fn is_shared_writable(call: &Call) -> bool {
    let is_file = call.arguments.iter().any(|one| matches!(one, Argument::Descriptor(..)));
    is_file && has_flag(call, "MAP_SHARED") && has_flag(call, "PROT_WRITE")
}

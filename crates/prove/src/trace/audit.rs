//! Which files a program syncs, and what it leaves to luck.
//!
//! POSIX promises for fsync(2) of a file its data, and for fsync(2) of a directory its entries. Linux file systems often do more
//! (ext4, xfs and btrfs keep the name of a new file whose fsync returned); what rests on that is left to luck here. After an
//! fsync that failed Linux marks the pages as clean, so that another fsync which succeeds proves nothing (Rebello et al., "Can
//! Applications Recover from fsync Failures?", USENIX ATC 2020).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_block::Nanos;

use super::strace::{Argument, Call};

/// A change of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A file was made.
    Created,
    /// A directory was made.
    DirectoryMade,
    /// A name was given to a file that has another one.
    Linked,
    /// A file came by another name.
    Renamed,
    /// A name was taken away.
    Removed,
}

/// What is left to luck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lapse {
    /// Data was written and never made durable.
    DataNotSynced {
        /// How many bytes since the last sync.
        bytes: u64,
    },
    /// A name was changed, and the directory never synced afterwards.
    DirectoryNotSynced(Change),
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
    /// What.
    pub lapse: Lapse,
    /// Of which file.
    pub path: PathBuf,
    /// The call after which something is missing, from 0.
    pub call: usize,
    /// When that was.
    pub at: Nanos,
}

/// Calls that write to the file behind a descriptor.
const WRITES: [&str; 10] = [
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "sendfile",
    "copy_file_range",
    "splice",
    "fallocate",
    "ftruncate",
];

/// What is known of a program from its calls so far.
#[derive(Debug, Default)]
pub struct Audit {
    /// Only what is beneath counts.
    beneath: PathBuf,
    /// Where each thread works, which is where the program began unless something else was seen.
    working: BTreeMap<u32, PathBuf>,
    calls: usize,
    unsynced: BTreeMap<PathBuf, (u64, usize, Nanos)>,
    entries: BTreeMap<PathBuf, (Change, usize, Nanos)>,
    failed: BTreeMap<PathBuf, (String, usize, Nanos)>,
    found: Vec<Finding>,
    synced: BTreeMap<PathBuf, u64>,
    not_seen: BTreeMap<&'static str, u64>,
    /// Files opened so that each write is durable.
    sync_writes: BTreeMap<PathBuf, bool>,
}

impl Audit {
    /// Of files beneath this directory, an absolute path, where the program begins to work.
    pub fn beneath(directory: &Path) -> Self {
        Self { beneath: directory.to_owned(), ..Self::default() }
    }

    /// How often each file was synced with success.
    pub const fn synced(&self) -> &BTreeMap<PathBuf, u64> {
        &self.synced
    }

    /// Ways to write that calls do not tell of, with how often they were set up: what goes through them is not judged.
    pub const fn not_seen(&self) -> &BTreeMap<&'static str, u64> {
        &self.not_seen
    }

    /// What is left to luck if the program has made all of its calls.
    pub fn findings(&self) -> Vec<Finding> {
        let mut all = self.found.clone();
        all.extend(self.unsynced.iter().map(|(path, (bytes, call, at))| Finding {
            lapse: Lapse::DataNotSynced { bytes: *bytes },
            path: path.clone(),
            call: *call,
            at: *at,
        }));
        all.extend(self.entries.iter().map(|(path, (change, call, at))| Finding {
            lapse: Lapse::DirectoryNotSynced(*change),
            path: path.clone(),
            call: *call,
            at: *at,
        }));
        all.extend(self.failed.iter().map(|(path, (error, call, at))| Finding {
            lapse: Lapse::FailedSyncIgnored { error: error.clone() },
            path: path.clone(),
            call: *call,
            at: *at,
        }));
        all.sort_by(|a, b| (a.call, &a.path).cmp(&(b.call, &b.path)));
        all
    }

    /// Takes the next call.
    pub fn take(&mut self, call: &Call) {
        let number = self.calls;
        self.calls += 1;
        self.see_working_directory(call);
        match call.name.as_str() {
            name if WRITES.contains(&name) => self.wrote(call, number),
            "fsync" | "fdatasync" => self.sync_of(call, number),
            "sync" => self.synced_all(),
            "syncfs" if call.result.is_ok() => self.synced_all(),
            "open" | "openat" | "openat2" | "creat" => self.opened(call, number),
            "rename" | "renameat" | "renameat2" => self.renamed(call, number),
            "link" | "linkat" | "symlink" | "symlinkat" => self.entry(call, number, Change::Linked, 1),
            "mkdir" | "mkdirat" => self.entry(call, number, Change::DirectoryMade, 0),
            "unlink" | "unlinkat" | "rmdir" => self.entry(call, number, Change::Removed, 0),
            "io_uring_setup" if call.result.is_ok() => *self.not_seen.entry("io_uring").or_default() += 1,
            "io_setup" if call.result.is_ok() => *self.not_seen.entry("aio").or_default() += 1,
            "mmap" if is_shared_writable(call) => *self.not_seen.entry("mmap").or_default() += 1,
            _ => {}
        }
    }

    /// What a call changes: the plainest name of a call of its kind, and the last path that it was given, or wrote to. None if it
    /// changes nothing beneath the directory of this audit. Its result does not matter.
    pub(super) fn changed(&self, call: &Call) -> Option<(&'static str, PathBuf)> {
        let (kind, path) = match call.name.as_str() {
            "open" | "openat" | "openat2" | "creat" if may_create(call) => ("open", self.path_at(call, 0)),
            "rename" | "renameat" | "renameat2" => ("rename", self.path_at(call, 1)),
            "link" | "linkat" | "symlink" | "symlinkat" => ("link", self.path_at(call, 1)),
            "mkdir" | "mkdirat" => ("mkdir", self.path_at(call, 0)),
            "unlink" | "unlinkat" => ("unlink", self.path_at(call, 0)),
            "rmdir" => ("rmdir", self.path_at(call, 0)),
            name if WRITES.contains(&name) => ("write", written_to(call).map(Path::to_owned)),
            _ => return None,
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

    fn wrote(&mut self, call: &Call, number: usize) {
        let Some(path) = written_to(call).filter(|path| self.counts(path)) else { return };
        let Ok(bytes) = call.result else { return };
        if self.sync_writes.get(path) == Some(&true) && call.name != "ftruncate" {
            return;
        }
        let flags = call.arguments.last();
        if matches!(flags, Some(Argument::Word(flags)) if flags.contains("RWF_DSYNC") || flags.contains("RWF_SYNC"))
        {
            return;
        }
        let unsynced = self.unsynced.entry(path.to_owned()).or_insert((0, number, call.at));
        *unsynced = (unsynced.0 + bytes.unsigned_abs(), number, call.at);
    }

    fn sync_of(&mut self, call: &Call, number: usize) {
        let Some(path) = descriptor(call, 0) else { return };
        let path = path.to_owned();
        if !self.counts(&path) && path != self.beneath {
            return;
        }
        match &call.result {
            Err(error) => {
                self.failed.insert(path, (error.clone(), number, call.at));
            }
            Ok(_) => {
                if let Some((error, call, at)) = self.failed.remove(&path) {
                    let lapse = Lapse::FailedSyncRetried { error };
                    self.found.push(Finding { lapse, path: path.clone(), call, at });
                }
                self.unsynced.remove(&path);
                self.entries.retain(|name, _| name.parent() != Some(&path));
                *self.synced.entry(path).or_default() += 1;
            }
        }
    }

    fn synced_all(&mut self) {
        self.unsynced.clear();
        self.entries.clear();
    }

    fn opened(&mut self, call: &Call, number: usize) {
        let (Ok(_), Some(path)) = (&call.result, &call.opened) else { return };
        if !self.counts(path) {
            return;
        }
        self.sync_writes.insert(path.clone(), has_flag(call, "O_SYNC") || has_flag(call, "O_DSYNC"));
        // Whether it was there already is not told; one that was opened or synced before was.
        let is_known = self.synced.contains_key(path) || self.unsynced.contains_key(path);
        if may_create(call) && !is_known {
            self.entries.entry(path.clone()).or_insert((Change::Created, number, call.at));
        }
    }

    fn renamed(&mut self, call: &Call, number: usize) {
        let (Some(from), Some(to)) = (self.path_at(call, 0), self.path_at(call, 1)) else { return };
        if call.result.is_err() || !self.counts(&to) {
            return;
        }
        if let Some(unsynced) = self.unsynced.remove(&from) {
            let lapse = Lapse::RenamedBeforeSync;
            self.found.push(Finding { lapse, path: to.clone(), call: number, at: call.at });
            self.unsynced.insert(to.clone(), unsynced);
        }
        self.entries.remove(&from);
        self.entries.insert(to, (Change::Renamed, number, call.at));
    }

    fn entry(&mut self, call: &Call, number: usize, change: Change, place: usize) {
        let Some(path) = self.path_at(call, place).filter(|path| self.counts(path)) else { return };
        if call.result.is_err() {
            return;
        }
        if change == Change::Removed {
            self.unsynced.remove(&path);
            // One that was made since the directory was synced need not be remembered.
            if self.entries.get(&path).is_some_and(|(change, ..)| *change == Change::Created) {
                self.entries.remove(&path);
                return;
            }
        }
        self.entries.insert(path, (change, number, call.at));
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

fn has_flag(call: &Call, flag: &str) -> bool {
    // Those of openat2(2) stand in a structure.
    let is_flag = |word: &str| word.split(['|', '=', ',']).any(|word| word == flag);
    call.arguments.iter().any(|one| matches!(one, Argument::Word(word) if is_flag(word)))
}

/// Whether opening it may give a new file its name.
fn may_create(call: &Call) -> bool {
    (has_flag(call, "O_CREAT") || call.name == "creat") && !has_flag(call, "O_TMPFILE")
}

fn is_shared_writable(call: &Call) -> bool {
    let has = |flag: &str| {
        call.arguments.iter().any(|one| matches!(one, Argument::Word(word) if word.contains(flag)))
    };
    let is_file = call.arguments.iter().any(|one| matches!(one, Argument::Descriptor(..)));
    call.result.is_ok() && is_file && has("MAP_SHARED") && has("PROT_WRITE")
}

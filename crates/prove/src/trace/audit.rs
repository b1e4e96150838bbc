//! Audit of the files that a program syncs, and of those that it leaves unsynced.
//!
//! POSIX guarantees the data after fsync(2) of a file, and the entries after fsync(2) of a directory. Linux
//! file systems often do more (ext4, xfs and btrfs keep the name of a new file whose fsync returned); relying
//! on that counts as unsynced here. After a failed fsync Linux marks the pages as clean, so a later
//! successful fsync proves nothing (Rebello et al., "Can Applications Recover from fsync Failures?", USENIX
//! ATC 2020).

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use plumb_block::Nanos;

use super::names::{FileNames, beneath, is_removed, rebased};
use super::strace::{Argument, Call, kind, number};

/// Kind of a missing or failed sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lapse {
    /// Data was written, or a size changed, and not made durable.
    DataNotSynced {
        /// Bytes written since the last sync; of a mapped file all bytes given to msync(2).
        bytes: u64,
    },
    /// A name was changed by a call of this kind (`open`, `mkdir`, `link`, `rename`, `unlink`), and the
    /// directory was not synced afterwards.
    DirectoryNotSynced(&'static str),
    /// A file replaced another before its data was synced.
    RenamedBeforeSync,
    /// An fsync failed, and the program continued.
    FailedSyncIgnored {
        /// Error of the fsync.
        error: String,
    },
    /// An fsync failed, and the program relied on another one.
    FailedSyncRetried {
        /// Error of the first fsync.
        error: String,
    },
}

/// Operation left unsynced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Kind of the lapse.
    pub lapse: Lapse,
    /// File that the lapse concerns.
    pub path: PathBuf,
    /// Index of the call that lacks a sync, from 0.
    pub call: usize,
    /// Time of that call.
    pub at: Nanos,
}

/// State of the audit of a program, from its calls so far.
#[derive(Debug, Default)]
pub struct Audit {
    /// Directory below which files count.
    beneath: PathBuf,
    /// Working directory of each thread: that of the start, unless a change was seen.
    working: BTreeMap<u32, PathBuf>,
    calls: usize,
    /// Findings that a later call may resolve, by file: data, names, and failed syncs.
    unsynced: BTreeMap<PathBuf, Finding>,
    entries: BTreeMap<PathBuf, Entry>,
    failed: BTreeMap<PathBuf, Finding>,
    /// Final findings.
    found: Vec<Finding>,
    synced: BTreeMap<PathBuf, u64>,
    not_seen: BTreeMap<&'static str, u64>,
    /// By file, thread and descriptor: true if each write through the descriptor is durable (O_SYNC,
    /// O_DSYNC).
    opened: BTreeMap<PathBuf, BTreeMap<(u32, i64), bool>>,
    names: FileNames,
    /// Writable mappings, the latest last.
    mappings: Vec<Mapping>,
}

/// Change of a name that is not durable yet.
#[derive(Debug)]
struct Entry {
    finding: Finding,
    /// True if a power cut may restore the previous object of the name, or the object renamed to it.
    was_there: bool,
}

/// File mapped for writing.
#[derive(Debug)]
struct Mapping {
    addresses: Range<u64>,
    /// True if the file is mapped from its first byte.
    is_from_start: bool,
    path: PathBuf,
}

impl Audit {
    /// Creates an audit of the files below an absolute directory, in which the program starts. `names` exist
    /// before the program does.
    pub fn beneath(directory: &Path, names: &FileNames) -> Self {
        Self { beneath: directory.to_owned(), names: names.clone(), ..Self::default() }
    }

    /// Returns the number of successful syncs of each file.
    pub const fn synced(&self) -> &BTreeMap<PathBuf, u64> {
        &self.synced
    }

    /// Returns the interfaces whose writes are not visible in calls, with the number of uses. Writes through
    /// them are not judged.
    pub const fn not_seen(&self) -> &BTreeMap<&'static str, u64> {
        &self.not_seen
    }

    /// Returns the findings, assuming that the program makes no further calls.
    pub fn findings(&self) -> Vec<Finding> {
        let entries = self.entries.iter().map(|(path, entry)| (path, &entry.finding));
        let open = self.unsynced.iter().chain(entries).chain(&self.failed);
        // A file without a name does not outlive the program.
        let open = open.filter(|(path, _)| self.counts(path) && !is_removed(path));
        let open = open.map(|(path, finding)| Finding { path: path.clone(), ..finding.clone() });
        let mut all: Vec<Finding> = self.found.iter().cloned().chain(open).collect();
        all.sort_by(|a, b| (a.call, &a.path).cmp(&(b.call, &b.path)));
        all
    }

    /// Updates the state of the files by the next call.
    pub fn observe(&mut self, call: &Call) {
        self.see_working_directory(call);
        match (kind(call), call.result.is_ok()) {
            ("write", _) => self.wrote(call),
            ("truncate", true) => self.truncated(call),
            ("fsync", _) => self.sync_of(call),
            ("sync", _) | ("syncfs", true) => {
                self.unsynced.clear();
                self.entries.clear();
            }
            ("open", true) => self.opened(call),
            ("rename", true) => self.renamed(call),
            ("link", true) => self.linked(call),
            ("mkdir", true) => self.made(call),
            ("unlink" | "rmdir", true) => self.unlinked(call),
            (way @ ("io_uring" | "aio"), true) => *self.not_seen.entry(way).or_default() += 1,
            ("mmap", true) => self.mapped(call),
            ("msync", true) => self.msynced(call),
            _ => {}
        }
        self.calls += 1;
    }

    /// Returns the finding on an operation that this call leaves unsynced.
    fn finding(&self, lapse: Lapse, path: &Path, call: &Call) -> Finding {
        Finding { lapse, path: path.to_owned(), call: self.calls, at: call.at }
    }

    /// Returns the change by a call: the plainest name of its kind of call, and the last path that it names,
    /// or writes to. `None` if it changes nothing below the audited directory. The result of the call does
    /// not matter.
    pub(super) fn changed(&self, call: &Call) -> Option<(&'static str, PathBuf)> {
        let kind = kind(call);
        let path = match kind {
            "open" if may_create(call) || empties(call) => self.path_at(call, 0),
            "rename" | "link" => self.path_at(call, 1),
            "mkdir" | "unlink" | "rmdir" | "truncate" => self.path_at(call, 0),
            "write" => written_through(call).map(|(_, path)| self.names.current(path)),
            "msync" => self.mapping(call).map(|mapping| self.names.current(&mapping.path)),
            _ => None,
        };
        Some((kind, path.filter(|path| self.counts(path))?))
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

    /// Returns path argument `number` of a call, from 0, as an absolute path.
    pub(super) fn path_at(&self, call: &Call, number: usize) -> Option<PathBuf> {
        let (place, path) = call.text(number)?;
        let directory = place.checked_sub(1).and_then(|before| descriptor(call, before));
        let working = self.working.get(&call.thread).unwrap_or(&self.beneath);
        Some(without_parents(&directory.unwrap_or(working).join(path)))
    }

    fn counts(&self, path: &Path) -> bool {
        path.starts_with(&self.beneath) && path != self.beneath
    }

    fn wrote(&mut self, call: &Call) {
        let Some((number, path)) = written_through(call).filter(|(_, path)| self.counts(path)) else {
            return;
        };
        let Ok(written) = call.result else { return };
        let (opened, path) = (path, self.names.current(path));
        if !self.is_changed(&path, call) {
            return;
        }
        let is_durable = self.is_durable_at_once(call.thread, number, opened) && call.name != "ftruncate";
        if !is_durable && !has_flag(call, "RWF_DSYNC") && !has_flag(call, "RWF_SYNC") {
            self.changed_data(&path, written.unsigned_abs(), call);
        }
    }

    /// Notes whether a file is empty after this call. Returns true if the call may have changed its data or
    /// its size.
    fn is_changed(&mut self, path: &Path, call: &Call) -> bool {
        let is_sized = matches!(call.name.as_str(), "truncate" | "ftruncate" | "fallocate");
        if empties(call) || (is_sized && number_at(call, 1) == Some(0) && call.name != "fallocate") {
            return self.names.empty(path);
        }
        let is_changed = is_sized || call.result != Ok(0);
        if is_changed {
            self.names.fill(path);
        }
        is_changed
    }

    /// Notes a change of a file's data that is not durable yet.
    fn changed_data(&mut self, path: &Path, bytes: u64, call: &Call) {
        let names = std::iter::once(path).chain(self.names.all(path));
        let earlier =
            names.filter_map(|name| self.unsynced.get(name)).find_map(|finding| match finding.lapse {
                Lapse::DataNotSynced { bytes } => Some((finding.path.clone(), bytes)),
                _ => None,
            });
        let (path, before) = earlier.unwrap_or_else(|| (path.to_owned(), 0));
        let lapse = Lapse::DataNotSynced { bytes: before + bytes };
        let finding = self.finding(lapse, &path, call);
        self.unsynced.insert(path, finding);
    }

    fn truncated(&mut self, call: &Call) {
        let path = self.path_at(call, 0).filter(|path| self.counts(path));
        if let Some(path) = path.filter(|path| self.is_changed(path, call)) {
            self.changed_data(&path, 0, call);
        }
    }

    /// Returns true if writes through this descriptor are durable on return. A descriptor that the thread did
    /// not open itself belongs to another thread or an earlier process; a copy may have any number.
    fn is_durable_at_once(&self, thread: u32, number: i64, path: &Path) -> bool {
        let Some(opened) = self.opened.get(path) else { return false };
        if let Some(own) = opened.get(&(thread, number)) {
            return *own;
        }
        let has_number = opened.keys().any(|(_, other)| *other == number);
        opened.iter().all(|((_, other), is_durable)| *is_durable || (has_number && *other != number))
    }

    fn mapped(&mut self, call: &Call) {
        let (Some(path), Ok(address)) = (descriptor(call, 4), &call.result) else { return };
        if !self.counts(path) || !is_shared_writable(call) {
            return;
        }
        *self.not_seen.entry("mmap").or_default() += 1;
        let start = address.cast_unsigned();
        let addresses = start..start.saturating_add(number_at(call, 1).unwrap_or(0));
        let is_from_start = number_at(call, 5) == Some(0);
        self.mappings.push(Mapping { addresses, is_from_start, path: path.to_owned() });
    }

    /// Returns the mapping that an msync(2) covers.
    fn mapping(&self, call: &Call) -> Option<&Mapping> {
        let address = number_at(call, 0)?;
        self.mappings.iter().rfind(|mapping| mapping.addresses.contains(&address))
    }

    /// Handles an msync(2). It makes the file durable if it covers the whole file, as far as known. With
    /// `MS_ASYNC` it has done nothing since Linux 2.6.19.
    fn msynced(&mut self, call: &Call) {
        let (Some(mapping), Some(length)) = (self.mapping(call), number_at(call, 1)) else { return };
        let path = self.names.current(&mapping.path);
        let is_whole = mapping.is_from_start && length >= mapping.addresses.end - mapping.addresses.start;
        if !has_flag(call, "MS_SYNC") {
            self.changed_data(&path, length, call);
        } else if is_whole {
            self.data_synced(&path);
        }
    }

    /// Notes that the data of a file is durable.
    fn data_synced(&mut self, path: &Path) {
        self.unsynced.remove(path);
        for name in self.names.all(path) {
            self.unsynced.remove(name);
        }
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
        self.data_synced(path);
        self.entries.retain(|name, _| name.parent() != Some(path));
        if !is_removed(path) {
            *self.synced.entry(path.to_owned()).or_default() += 1;
        }
    }

    fn opened(&mut self, call: &Call) {
        let Some(path) = call.opened.as_ref().filter(|path| self.counts(path)) else { return };
        let is_durable = has_flag(call, "O_SYNC") || has_flag(call, "O_DSYNC");
        let number = call.result.clone().unwrap_or(-1);
        self.opened.entry(path.clone()).or_default().insert((call.thread, number), is_durable);
        if may_create(call) && !self.names.exists(path) {
            self.names.add(path);
            self.entry(call, "open", path, false);
        } else if empties(call) && self.is_changed(path, call) {
            self.changed_data(path, 0, call);
        }
    }

    fn made(&mut self, call: &Call) {
        if let Some(path) = self.path_at(call, 0).filter(|path| self.counts(path)) {
            self.names.add(&path);
            self.entry(call, "mkdir", &path, false);
        }
    }

    fn renamed(&mut self, call: &Call) {
        let (Some(from), Some(to)) = (self.path_at(call, 0), self.path_at(call, 1)) else { return };
        // rename(2) does nothing if both names belong to one file.
        if self.names.is_same_file(&from, &to) || !(self.counts(&from) || self.counts(&to)) {
            return;
        }
        let was_there = self.was_there(&from, true) || self.was_there(&to, self.names.exists(&to));
        if has_flag(call, "RENAME_EXCHANGE") {
            let aside = to.join("exchanged");
            self.shift(&from, &aside);
            self.shift(&to, &from);
            self.shift(&rebased(&aside, &to, &from), &to);
        } else {
            self.shift(&from, &to);
        }
        if !self.counts(&to) {
            return;
        }
        if self.unsynced.contains_key(&to) {
            self.found.push(self.finding(Lapse::RenamedBeforeSync, &to, call));
        }
        self.entries.remove(&to);
        self.entry(call, "rename", &to, was_there);
    }

    /// Notes the rename of `from`, and of everything below it, to `to`.
    fn shift(&mut self, from: &Path, to: &Path) {
        self.names.rename(from, to);
        shift_in(&mut self.unsynced, from, to);
        shift_in(&mut self.entries, from, to);
        shift_in(&mut self.opened, from, to);
        for mapping in &mut self.mappings {
            mapping.path = rebased(&mapping.path, from, to);
        }
    }

    fn linked(&mut self, call: &Call) {
        let Some(to) = self.path_at(call, 1).filter(|path| self.counts(path)) else { return };
        match self.linked_from(call) {
            Some(from) if !call.name.starts_with("symlink") => {
                self.names.link(&from, &to);
                if is_removed(&from)
                    && let Some(finding) = self.unsynced.remove(&from)
                {
                    self.unsynced.insert(to.clone(), finding);
                }
            }
            _ => self.names.add(&to),
        }
        self.entry(call, "link", &to, false);
    }

    /// Returns the path of the file to which a call adds a name; for a file without a name, the path of its
    /// descriptor.
    fn linked_from(&self, call: &Call) -> Option<PathBuf> {
        let path = self.path_at(call, 0)?;
        let number = path.strip_prefix("/proc/self/fd").ok().and_then(|number| number.to_str()?.parse().ok());
        let has_it = |opened: &BTreeMap<(u32, i64), bool>| {
            number.is_some_and(|number| opened.contains_key(&(call.thread, number)))
        };
        let opened = self.opened.iter().filter(|(_, opened)| has_it(opened)).map(|(path, _)| path.clone());
        opened.max_by_key(|path| is_removed(path)).or(Some(path)).filter(|path| self.counts(path))
    }

    fn unlinked(&mut self, call: &Call) {
        let Some(path) = self.path_at(call, 0).filter(|path| self.counts(path)) else { return };
        // Data of a file that is not durable is not durable under another name either.
        let left = self.names.others(&path).next().map(Path::to_owned);
        if let (Some(finding), Some(left)) = (self.unsynced.remove(&path), left) {
            self.unsynced.insert(left, finding);
        }
        self.names.remove(&path);
        // Changes in a removed directory do not matter.
        for within in beneath(&self.entries, &path).into_iter().filter(|within| *within != path) {
            self.entries.remove(&within);
        }
        // Removing a name created since the last sync of the directory need not be durable.
        if self.was_there(&path, true) {
            self.entry(call, "unlink", &path, true);
        } else {
            self.entries.remove(&path);
        }
    }

    /// Notes the change of a name. It existed before according to `was_there`, unless the directory was not
    /// synced since an earlier change.
    fn entry(&mut self, call: &Call, change: &'static str, path: &Path, was_there: bool) {
        let was_there = self.was_there(path, was_there);
        let finding = self.finding(Lapse::DirectoryNotSynced(change), path, call);
        self.entries.insert(path.to_owned(), Entry { finding, was_there });
    }

    /// Returns true if a name existed before its first change that is not durable; `now` without such a
    /// change.
    fn was_there(&self, path: &Path, now: bool) -> bool {
        self.entries.get(path).map_or(now, |entry| entry.was_there)
    }
}

/// Moves all entries at or below `from` to their paths after a rename, replacing existing ones.
fn shift_in<V>(map: &mut BTreeMap<PathBuf, V>, from: &Path, to: &Path) {
    for replaced in beneath(map, to) {
        map.remove(&replaced);
    }
    for path in beneath(map, from) {
        if let Some(value) = map.remove(&path) {
            map.insert(rebased(&path, from, to), value);
        }
    }
}

/// Returns a path in which `..` removes the name before it, which is correct unless that is a symbolic link.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            component => plain.push(component),
        }
    }
    plain
}

/// Returns the path behind the descriptor argument at this index.
fn descriptor(call: &Call, place: usize) -> Option<&Path> {
    match call.arguments.get(place)? {
        Argument::Descriptor(_, path) => Some(path),
        Argument::Text(_) | Argument::Word(_) => None,
    }
}

/// Returns the descriptor that a call writes through, and its path: the first one, or the second for calls
/// that copy.
fn written_through(call: &Call) -> Option<(i64, &Path)> {
    let place = if matches!(call.name.as_str(), "copy_file_range" | "splice") { 2 } else { 0 };
    match call.arguments.get(place)? {
        Argument::Descriptor(number, path) => Some((*number, path)),
        Argument::Text(_) | Argument::Word(_) => None,
    }
}

/// Returns the number at this index.
fn number_at(call: &Call, place: usize) -> Option<u64> {
    match call.arguments.get(place)? {
        Argument::Word(word) => number(word).map(i64::cast_unsigned),
        Argument::Descriptor(..) | Argument::Text(_) => None,
    }
}

/// Returns true if the call has the flag.
pub(crate) fn has_flag(call: &Call, flag: &str) -> bool {
    // The flags of openat2(2) are in a structure.
    let is_flag = |word: &str| word.split(['|', '=', ',']).any(|word| word == flag);
    call.arguments.iter().any(|one| matches!(one, Argument::Word(word) if is_flag(word)))
}

/// Returns true if opening may create the file.
pub(crate) fn may_create(call: &Call) -> bool {
    (has_flag(call, "O_CREAT") || call.name == "creat") && !has_flag(call, "O_TMPFILE")
}

/// Returns true if opening truncates the file.
fn empties(call: &Call) -> bool {
    has_flag(call, "O_TRUNC") || call.name == "creat"
}

fn is_shared_writable(call: &Call) -> bool {
    let is_file = call.arguments.iter().any(|one| matches!(one, Argument::Descriptor(..)));
    is_file && has_flag(call, "MAP_SHARED") && has_flag(call, "PROT_WRITE")
}

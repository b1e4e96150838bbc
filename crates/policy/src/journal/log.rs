//! A journal being written, or reopened.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::error::JournalError;
use super::record::{Entry, Phase, Record};
use super::snapshot::Snapshot;
use super::store::{DirectoryStore, JournalStore};
use crate::file;
use crate::time_text::now_text;
use plumb_state::digest::sha256_hex;
use plumb_state::sealed_lines::{decode, encode};

const SNAPSHOT: &str = "snapshot.json";
const LOG: &str = "journal.log";

/// The journal of one apply.
pub struct Journal {
    store: Box<dyn JournalStore>,
    snapshot: Snapshot,
    entries: Vec<Entry>,
    /// Lines not yet written.
    noted: Vec<u8>,
    latched: bool,
}

impl Journal {
    /// Writes the snapshot and the first record. Both are durable on return, and changes may follow.
    ///
    /// # Errors
    /// If one of them could not be made durable; then nothing may be changed.
    pub fn begin(mut store: Box<dyn JournalStore>, snapshot: Snapshot) -> Result<Self, JournalError> {
        let place = store.place();
        let bytes = serde_json::to_vec_pretty(&snapshot)
            .map_err(|source| JournalError::Encode { path: place, source })?;
        store.replace(SNAPSHOT, &bytes)?;
        let begun = Record::Begun { plan: snapshot.plan.hash.clone(), snapshot: sha256_hex(&bytes) };
        let mut journal = Self { store, snapshot, entries: Vec::new(), noted: Vec::new(), latched: false };
        journal.record(begun)?;
        Ok(journal)
    }

    /// Reopens a journal. A torn tail is durably removed, so that new records follow complete ones.
    ///
    /// # Errors
    /// [`JournalError::NotBegun`] if it changed nothing, [`JournalError::Corrupt`] if it is damaged.
    pub fn reopen(mut store: Box<dyn JournalStore>) -> Result<Self, JournalError> {
        let place = store.place();
        let not_begun = || JournalError::NotBegun { path: place.clone() };
        let snapshot_bytes = store.read(SNAPSHOT)?.ok_or_else(not_begun)?;
        let log = store.read(LOG)?.ok_or_else(not_begun)?;
        let decoded = decode(&log, in_place).map_err(|damage| JournalError::Corrupt {
            path: place.join(LOG),
            line: damage.line,
            offset: damage.offset,
            what: damage.what,
        })?;
        let snapshot = match decoded.records.first().map(|entry| &entry.record) {
            None => return Err(not_begun()),
            Some(Record::Begun { snapshot, .. }) => read_snapshot(&place, &snapshot_bytes, snapshot)?,
            Some(_) => return Err(corrupt(&place.join(LOG), "it does not begin with `begun`".to_owned())),
        };
        if decoded.whole_bytes < log.len() {
            store.replace(LOG, &log[..decoded.whole_bytes])?;
        }
        Ok(Self { store, snapshot, entries: decoded.records, noted: Vec::new(), latched: false })
    }

    /// Opens the journal in `directory`.
    ///
    /// # Errors
    /// Fails as [`Journal::reopen`] does.
    pub fn open(directory: &Path) -> Result<Self, JournalError> {
        Self::reopen(Box::new(DirectoryStore::open(directory)?))
    }

    /// Returns the directory of the journal.
    pub fn place(&self) -> PathBuf {
        self.store.place()
    }

    /// Returns the state before the change.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns all records so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds a record that becomes durable with the next [`Journal::record`] at the latest, for facts not
    /// needed before the next action. If a power cut loses it, the fact is determined from the disk.
    ///
    /// # Errors
    /// If an earlier record could not be made durable.
    pub fn note(&mut self, record: Record) -> Result<(), JournalError> {
        if self.latched {
            return Err(JournalError::Latched { path: self.place() });
        }
        let entry = Entry { n: self.entries.len() as u64, at: now_text(), record };
        let line = encode(&entry).map_err(|source| JournalError::Encode { path: self.place(), source })?;
        self.noted.extend(line);
        self.entries.push(entry);
        Ok(())
    }

    /// Adds a record, which is durable on return, as are all before it.
    ///
    /// # Errors
    /// If it could not be made durable; every later call then fails, too.
    pub fn record(&mut self, record: Record) -> Result<(), JournalError> {
        self.note(record)?;
        // The kernel reports a failed sync once and then forgets it, so a retry would prove nothing.
        self.latched = true;
        self.store.append(LOG, &self.noted)?;
        self.latched = false;
        self.noted.clear();
        Ok(())
    }
}

/// Checks the number of a record; numbers start at 0, so that a missing one is noticed.
fn in_place(index: usize, entry: &Entry) -> Result<(), String> {
    let is_next = entry.n == index as u64;
    is_next
        .then_some(())
        .ok_or_else(|| format!("record {} stands where record {index} was expected", entry.n))
}

fn read_snapshot(place: &Path, bytes: &[u8], sum: &str) -> Result<Snapshot, JournalError> {
    let path = place.join(SNAPSHOT);
    if sha256_hex(bytes) != sum {
        return Err(corrupt(&path, "it does not match the sum in the journal".to_owned()));
    }
    serde_json::from_slice(bytes).map_err(|error| corrupt(&path, error.to_string()))
}

fn corrupt(path: &Path, what: String) -> JournalError {
    JournalError::Corrupt { path: path.to_owned(), line: 1, offset: 0, what }
}

impl Journal {
    /// Returns the disks for which an apply step was about to be executed.
    pub fn begun(&self) -> HashSet<String> {
        let names = self.entries.iter().filter_map(|entry| match &entry.record {
            Record::Intent { phase: Phase::Apply, disk, .. } => Some(disk.clone()),
            _ => None,
        });
        names.collect()
    }
}

/// Returns the snapshot of the journal in `directory` without locking: another process may be writing the
/// journal.
///
/// # Errors
/// [`JournalError::NotBegun`] if there is none, [`JournalError::Corrupt`] if it is damaged.
pub fn snapshot_of(directory: &Path) -> Result<Snapshot, JournalError> {
    let path = directory.join(SNAPSHOT);
    let not_begun = || JournalError::NotBegun { path: directory.to_owned() };
    let bytes = file::read(&path)?.ok_or_else(not_begun)?;
    let snapshot: Snapshot =
        serde_json::from_slice(&bytes).map_err(|error| corrupt(&path, error.to_string()))?;
    if snapshot.plan.hash_now() != snapshot.plan.hash {
        return Err(corrupt(&path, "the plan in it was altered".to_owned()));
    }
    Ok(snapshot)
}

/// Returns the journals below `root`, oldest first.
///
/// # Errors
/// If the directory cannot be read. A missing one has none.
pub fn list(root: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let mut found = file::list(root)?;
    found.retain(|path| path.join(SNAPSHOT).is_file());
    found.sort();
    Ok(found)
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("place", &self.place()).field("records", &self.entries.len()).finish()
    }
}

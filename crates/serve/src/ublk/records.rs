//! Records of exported devices: the knowledge that a later process needs about the device of a killed server.
//!
//! ```text
//! /run/plumb/ublk/       0700; locked while devices come and go
//!   N                    one UblkRecord for /dev/ublkbN, locked by its server while the server lives
//! ```
//! A reboot empties the directory, and removes the kernel's devices.

use std::io;
use std::path::{Path, PathBuf};

use plumb_state::places::UBLK_RECORDS;
use plumb_state::{DirectoryLock, LockedRecord, Owner, UblkRecord};

use super::risk::State;
use crate::error::{ExportError, Result, at};
use crate::records::PrivateDirectory;

/// Directory of all records.
#[derive(Debug, Clone)]
pub(super) struct Base(PrivateDirectory);

impl Base {
    /// Opens `wanted` or the default directory, creating it if needed.
    pub(super) fn open(wanted: Option<&Path>) -> Result<Self> {
        PrivateDirectory::open(wanted.unwrap_or(Path::new(UBLK_RECORDS))).map(Self)
    }

    /// Opens the default directory, if it exists.
    pub(super) fn open_default() -> Result<Option<Self>> {
        Path::new(UBLK_RECORDS).is_dir().then(|| Self::open(None)).transpose()
    }

    /// Locks the directory against changes by others; waits for the lock.
    pub(super) fn lock(&self) -> Result<DirectoryLock> {
        self.0.lock()
    }

    /// Locks the directory against changes by others; `None` if it is locked already.
    pub(super) fn try_lock(&self) -> Result<Option<DirectoryLock>> {
        self.0.try_lock()
    }

    /// Returns the numbers of all records, including those of living servers.
    pub(super) fn numbers(&self) -> Result<Vec<u32>> {
        let mut numbers: Vec<u32> = self.0.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Writes the record of a new device. An existing one belongs to a device that is gone, because the
    /// number is free.
    pub(super) fn create(
        &self,
        number: u32,
        name: &str,
        identity: &str,
        locked: &DirectoryLock,
    ) -> Result<Record> {
        if let Owner::Dead(left) = self.find(number, locked)? {
            left.remove()?;
        }
        let (path, state) = (self.path(number), State::Clean);
        let text = UblkRecord { state: state.letter(), name: name.to_owned(), identity: identity.to_owned() };
        let taken = || at::<io::Error>("make", &path)(io::ErrorKind::AlreadyExists.into());
        let file = LockedRecord::create(&path)?.ok_or_else(taken)?;
        file.write_start(text.text().as_bytes())?;
        Ok(Record { file, name: text.name, identity: text.identity, state })
    }

    /// Finds the record of device `number`, and takes it over if its server is dead.
    pub(super) fn find(&self, number: u32, _locked: &DirectoryLock) -> Result<Owner<Record>> {
        let file = match LockedRecord::take_over(&self.path(number))? {
            Owner::None => return Ok(Owner::None),
            Owner::Alive => return Ok(Owner::Alive),
            Owner::Dead(file) => file,
        };
        let found = UblkRecord::parse(&String::from_utf8_lossy(&file.read()?));
        let state = found.as_ref().and_then(|found| State::from_letter(found.state)).unwrap_or(State::Failed);
        let (name, identity) = found.map(|found| (found.name, found.identity)).unwrap_or_default();
        Ok(Owner::Dead(Record { file, name, identity, state }))
    }

    fn path(&self, number: u32) -> PathBuf {
        self.0.path().join(number.to_string())
    }
}

/// Locked record of one device.
#[derive(Debug)]
pub(super) struct Record {
    file: LockedRecord,
    pub(super) name: String,
    pub(super) identity: String,
    /// State when it was opened.
    pub(super) state: State,
}

impl Record {
    /// Records the risk from now on.
    pub(super) fn mark(&self, state: State) -> io::Result<()> {
        self.file.write_start(&[state.letter() as u8]).map_err(|error| error.source)
    }

    /// Appends a line.
    pub(super) fn append(&self, line: &str) -> Result<()> {
        Ok(self.file.append(line.as_bytes())?)
    }

    /// Removes the record.
    pub(super) fn remove(&self) -> Result<()> {
        Ok(self.file.remove()?)
    }
}

impl ExportError {
    /// Creates the error that device `number` cannot be taken over.
    pub(super) fn not_recoverable(number: u32, why: impl Into<String>) -> Self {
        Self::NotRecoverable { number, why: why.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_belongs_to_its_server_until_that_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let base = Base::open(Some(&directory.path().join("ublk"))).unwrap();
        let locked = base.lock().unwrap();
        assert!(matches!(base.find(3, &locked).unwrap(), Owner::None));
        let record = base.create(3, "a\ndrive", "the disk", &locked).unwrap();
        assert!(matches!(base.find(3, &locked).unwrap(), Owner::Alive));
        record.mark(State::Dirty).unwrap();
        drop(record);
        let Owner::Dead(found) = base.find(3, &locked).unwrap() else { panic!("its server is gone") };
        assert_eq!((found.name.as_str(), found.identity.as_str()), ("a drive", "the disk"));
        assert_eq!(found.state, State::Dirty);
        assert_eq!(base.numbers().unwrap(), [3]);
        drop(found);
        drop(base.create(3, "another", "another disk", &locked).unwrap());
        let Owner::Dead(found) = base.find(3, &locked).unwrap() else { panic!("it is there") };
        assert_eq!((found.identity.as_str(), found.state), ("another disk", State::Clean));
        found.remove().unwrap();
        assert!(base.numbers().unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_read_counts_as_lost() {
        let directory = tempfile::tempdir().unwrap();
        let base = Base::open(Some(&directory.path().join("ublk"))).unwrap();
        let locked = base.lock().unwrap();
        for text in
            ["", "c", "c\nplumb-ublk 2\na\nb\n", "x\nplumb-ublk 1\na\nb\n", "cc\nplumb-ublk 1\na\nb\n"]
        {
            std::fs::write(base.path(1), text).unwrap();
            let Owner::Dead(found) = base.find(1, &locked).unwrap() else { panic!("it is there") };
            assert_eq!(found.state, State::Failed, "{text:?}");
        }
    }
}

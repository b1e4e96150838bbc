//! The records of exported devices: what a later process must know of a device whose server was killed.
//!
//! ```text
//! /run/plumb/ublk/       0700; locked while devices come and go
//!   N                    one file for /dev/ublkbN, locked by its server for as long as that lives
//!     c | d | f          what is at risk, see `risk`; one byte that is overwritten
//!     plumb-ublk 1       the format
//!     NAME               what the device was exported as
//!     IDENTITY           what the contents are
//! ```
//! The directory is emptied by a reboot, as are the kernel's devices.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::risk::State;
use crate::error::{ExportError, Result, at};
use crate::records::{Found, Lock, PrivateDirectory, remove_if_there};

const DEFAULT: &str = "/run/plumb/ublk";
const FORMAT: &str = "plumb-ublk 1";

/// The directory of all records.
#[derive(Debug, Clone)]
pub(super) struct Base(PrivateDirectory);

impl Base {
    /// `wanted`, or the default, made if it is not there.
    pub(super) fn open(wanted: Option<&Path>) -> Result<Self> {
        PrivateDirectory::open(wanted.unwrap_or(Path::new(DEFAULT))).map(Self)
    }

    /// Waits until nobody else changes anything here.
    pub(super) fn lock(&self) -> Result<Lock> {
        self.0.lock()
    }

    /// The numbers of all records, of living servers too.
    pub(super) fn numbers(&self) -> Result<Vec<u32>> {
        let mut numbers: Vec<u32> = self.0.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Writes the record of a new device. One that is there is of a device that is gone, for the number is free.
    pub(super) fn create(&self, number: u32, name: &str, identity: &str, locked: &Lock) -> Result<Record> {
        if let Found::Dead(left) = self.find(number, locked)? {
            left.remove()?;
        }
        let [name, identity] = [name, identity].map(|text| text.replace('\n', " "));
        let (path, state) = (self.path(number), State::Clean);
        let lock = Lock::new_record(&path, &format!("{}\n{FORMAT}\n{name}\n{identity}\n", state.letter()))?;
        Ok(Record { lock, path, name, identity, state })
    }

    /// The record of device `number`.
    pub(super) fn find(&self, number: u32, _locked: &Lock) -> Result<Found<Record>> {
        let path = self.path(number);
        let lock = match Lock::found_record(&path)? {
            Found::None => return Ok(Found::None),
            Found::Served => return Ok(Found::Served),
            Found::Dead(lock) => lock,
        };
        let text = lock.read().map_err(at("read", &path))?;
        let mut lines = text.lines();
        let (state, format) = (lines.next().and_then(State::of), lines.next());
        // What was cut off while it was written belongs to a device that was never started.
        let state = state.filter(|_| format == Some(FORMAT)).unwrap_or(State::Failed);
        let [name, identity] = [lines.next(), lines.next()].map(|line| line.unwrap_or_default().to_owned());
        Ok(Found::Dead(Record { lock, path, name, identity, state }))
    }

    fn path(&self, number: u32) -> PathBuf {
        self.0.path().join(number.to_string())
    }
}

/// The record of one device, locked.
#[derive(Debug)]
pub(super) struct Record {
    lock: Lock,
    path: PathBuf,
    pub(super) name: String,
    pub(super) identity: String,
    /// As it was found.
    pub(super) state: State,
}

impl Record {
    /// Writes down what is at risk from now on.
    pub(super) fn mark(&self, state: State) -> io::Result<()> {
        self.lock.write(state.letter())
    }

    /// Takes it away.
    pub(super) fn remove(&self) -> Result<()> {
        remove_if_there(&self.path, |path| fs::remove_file(path))
    }
}

impl ExportError {
    /// That device `number` cannot be taken over.
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
        assert!(matches!(base.find(3, &locked).unwrap(), Found::None));
        let record = base.create(3, "a\ndrive", "the disk", &locked).unwrap();
        assert!(matches!(base.find(3, &locked).unwrap(), Found::Served));
        record.mark(State::Dirty).unwrap();
        drop(record);
        let Found::Dead(found) = base.find(3, &locked).unwrap() else { panic!("its server is gone") };
        assert_eq!((found.name.as_str(), found.identity.as_str()), ("a drive", "the disk"));
        assert_eq!(found.state, State::Dirty);
        assert_eq!(base.numbers().unwrap(), [3]);
        drop(found);
        drop(base.create(3, "another", "another disk", &locked).unwrap());
        let Found::Dead(found) = base.find(3, &locked).unwrap() else { panic!("it is there") };
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
            fs::write(base.path(1), text).unwrap();
            let Found::Dead(found) = base.find(1, &locked).unwrap() else { panic!("it is there") };
            assert_eq!(found.state, State::Failed, "{text:?}");
        }
    }
}

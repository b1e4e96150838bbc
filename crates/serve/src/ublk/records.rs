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
//! The kernel lets go of a lock when its holder dies, so a record that can be locked has no server. The directory is
//! emptied by a reboot, as are the kernel's devices.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as Os;

use super::risk::State;
use crate::error::{ExportError, Result, at};
use crate::lock::Lock;

const DEFAULT: &str = "/run/plumb/ublk";
const FORMAT: &str = "plumb-ublk 1";

/// The directory of all records.
#[derive(Debug, Clone)]
pub(super) struct Base(PathBuf);

impl Base {
    /// `wanted`, or the default, made if it is not there.
    pub(super) fn open(wanted: Option<&Path>) -> Result<Self> {
        let path = wanted.unwrap_or(Path::new(DEFAULT));
        DirBuilder::new().mode(0o700).recursive(true).create(path).map_err(at("make", path))?;
        let found = fs::symlink_metadata(path).map_err(at("look at", path))?;
        let is_private =
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
        if !is_private {
            let why = "only its owner, who must be this user, may be able to write there";
            return Err(at("use", path)(io::Error::new(io::ErrorKind::PermissionDenied, why)));
        }
        Ok(Self(path.to_owned()))
    }

    /// Waits until nobody else changes anything here.
    pub(super) fn lock(&self) -> Result<Lock> {
        Lock::directory(&self.0).map_err(at("lock", &self.0))
    }

    /// The numbers of all records, of living servers too.
    pub(super) fn numbers(&self) -> Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(at("list", &self.0))? {
            let entry = entry.map_err(at("list", &self.0))?;
            numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Writes the record of a new device. One that is there is of a device that is gone, for the number is free.
    pub(super) fn create(&self, number: u32, name: &str, identity: &str, locked: &Lock) -> Result<Record> {
        if let Found::Dead(left) = self.find(number, locked)? {
            left.remove()?;
        }
        let path = self.path(number);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(at("make", &path))?;
        let taken = || at::<io::Error>("lock", &path)(io::ErrorKind::WouldBlock.into());
        let lock = Lock::unless_taken(file.into()).map_err(at("lock", &path))?.ok_or_else(taken)?;
        let one_line = |text: &str| text.replace('\n', " ");
        let text =
            format!("{}\n{FORMAT}\n{}\n{}\n", State::Clean.letter(), one_line(name), one_line(identity));
        lock.file().write_all_at(text.as_bytes(), 0).map_err(at("write", &path))?;
        Ok(Record { lock, path, name: one_line(name), identity: one_line(identity), state: State::Clean })
    }

    /// The record of device `number`.
    pub(super) fn find(&self, number: u32, _locked: &Lock) -> Result<Found> {
        let path = self.path(number);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Os::NOENT) => return Ok(Found::None),
            opened => File::from(opened.map_err(at("open", &path))?),
        };
        let Some(lock) = Lock::unless_taken(file).map_err(at("lock", &path))? else {
            return Ok(Found::Served);
        };
        let text = io::read_to_string(lock.file()).map_err(at("read", &path))?;
        let mut lines = text.lines();
        let (state, format) = (lines.next().and_then(State::of), lines.next());
        let (name, identity) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        // What was cut off while it was written belongs to a device that was never started.
        let state = state.filter(|_| format == Some(FORMAT)).unwrap_or(State::Failed);
        let (name, identity) = (name.to_owned(), identity.to_owned());
        Ok(Found::Dead(Record { lock, path, name, identity, state }))
    }

    fn path(&self, number: u32) -> PathBuf {
        self.0.join(number.to_string())
    }
}

/// What is known of a device.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing.
    None,
    /// Its server lives.
    Served,
    /// Its server is dead; the record is ours now.
    Dead(Record),
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
        self.lock.file().write_all_at(state.letter().as_bytes(), 0)
    }

    /// Takes it away.
    pub(super) fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at("remove", &self.path)(error)),
            _ => Ok(()),
        }
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

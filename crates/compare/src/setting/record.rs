//! What is to be put back, on stable storage before it is changed. The file is locked for as long as its process lives, so one that
//! can be locked is of a process that was killed.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_linux::sealed_lines;
use plumb_state::whole_file::{self, FileError};
use plumb_trial::TrialError;
use rustix::fs::{FlockOperation, flock};

use super::undo::{Machine, Undo};
use super::{failed, refused};

/// Records of one process at most: one for each setting.
const RECORDS_MAX: u32 = 1000;

/// What was changed, and what puts it back.
pub struct Changes {
    machine: Arc<Machine>,
    record: Option<Record>,
    promised: Vec<Undo>,
    /// The locks of the devices that are changed.
    held: Vec<File>,
}

impl Changes {
    /// Nothing was changed yet.
    pub fn new(machine: Arc<Machine>) -> Self {
        Self { machine, record: None, promised: Vec::new(), held: Vec::new() }
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// Keeps other experiments from these devices until all is put back: they would take a level of this one for what was there before.
    ///
    /// # Errors
    /// If one is held already, or the locks cannot be written.
    pub fn hold(&mut self, devices: &[String]) -> Result<(), TrialError> {
        if !self.held.is_empty() {
            return Ok(());
        }
        let directory = self.machine.records.with_file_name("held");
        whole_file::make_directory(&directory, 0o700).map_err(|error| failed(&error))?;
        let mut held = Vec::new();
        for device in devices {
            let file = File::create(directory.join(device)).map_err(|error| failed(&error))?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                let problem = format!("{device} is changed by another comparison: wait for its end");
                return Err(refused(problem));
            }
            held.push(file);
        }
        self.held = held;
        Ok(())
    }

    /// Writes down durably what puts back what is changed next, unless an earlier promise covers it.
    ///
    /// # Errors
    /// The file system's: nothing may be changed then.
    pub fn promise(&mut self, undo: Undo) -> Result<(), TrialError> {
        if self.promised.iter().any(|earlier| earlier.covers(&undo)) {
            return Ok(());
        }
        let mut record = match self.record.take() {
            Some(record) => record,
            None => Record::begin(&self.machine.records).map_err(|error| failed(&error))?,
        };
        let added = record.add(&undo);
        self.record = Some(record);
        self.promised.push(undo);
        added.map_err(|error| failed(&error))
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// What could not be put back. It stays written down.
    pub fn restore(&mut self) -> Result<(), TrialError> {
        self.machine.undo_all(&self.promised)?;
        self.promised.clear();
        self.held.clear();
        self.record.take().map_or(Ok(()), |record| record.close().map_err(|error| failed(&error)))
    }
}

/// Puts back what killed processes have left changed, and says so, a line each.
///
/// # Errors
/// If the records cannot be read.
pub fn restore_left_behind(machine: &Machine, say: &mut dyn FnMut(&str)) -> Result<(), FileError> {
    for path in whole_file::list(&machine.records)? {
        let left = match Record::take_over(&path) {
            Ok(Some(left)) => left,
            Ok(None) => continue,
            // The others can be put back nevertheless.
            Err(error) => {
                say(&format!(
                    "what a killed comparison has changed cannot be read: {}; put it back by hand, and remove the file",
                    plumb_block::in_one_line(&error)
                ));
                continue;
            }
        };
        let all = left.1.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match machine.undo_all(&left.1) {
            Ok(()) => {
                left.0.close()?;
                if !all.is_empty() {
                    say(&format!("a comparison was killed; put back as it was: {all}"));
                }
            }
            Err(error) => say(&format!(
                "a comparison was killed, and {}; end what still uses it: the next plumb command tries again",
                plumb_block::in_one_line(&error)
            )),
        }
    }
    Ok(())
}

struct Record {
    path: PathBuf,
    file: File,
}

impl Record {
    fn begin(directory: &Path) -> Result<Self, FileError> {
        whole_file::make_directory(directory, 0o700)?;
        for number in 0..RECORDS_MAX {
            let path = directory.join(format!("{}-{number}", std::process::id()));
            let made = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
            let file = match made {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(whole_file::failed("make", &path)(error)),
            };
            let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            // Before it was locked another process may have taken it for a left one.
            if is_locked && path.exists() {
                whole_file::sync_directory(directory)?;
                return Ok(Self { path, file });
            }
        }
        Err(whole_file::failed("make", directory)(std::io::ErrorKind::AlreadyExists.into()))
    }

    fn add(&mut self, undo: &Undo) -> Result<(), FileError> {
        let line = sealed_lines::encode(undo).map_err(std::io::Error::from);
        let written = line.and_then(|line| self.file.write_all(&line)).and_then(|()| self.file.sync_data());
        written.map_err(whole_file::failed("write", &self.path))
    }

    fn close(self) -> Result<(), FileError> {
        whole_file::remove(&self.path).map(drop)
    }

    /// What a killed process has written down; `None` if its process lives, or another one has taken it over.
    fn take_over(path: &Path) -> Result<Option<(Self, Vec<Undo>)>, FileError> {
        let opened = OpenOptions::new().read(true).append(true).open(path);
        let mut file = match opened {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(whole_file::failed("open", path))?,
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() || !path.exists() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(whole_file::failed("read", path))?;
        let damaged = |damage| whole_file::failed("read", path)(std::io::Error::other(damage));
        let decoded = sealed_lines::decode(&bytes, |_, _: &Undo| Ok(())).map_err(damaged)?;
        Ok(Some((Self { path: path.to_owned(), file }, decoded.records)))
    }
}

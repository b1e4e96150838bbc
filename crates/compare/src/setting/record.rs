//! Records of what is to be put back, on stable storage before anything is changed: one file a process,
//! locked while the process lives.

use std::path::Path;
use std::sync::Arc;

use plumb_state::sealed_lines;
use plumb_state::whole_file::{self, FileError};
use plumb_state::{LockedRecord, Owner};
use plumb_trial::TrialError;

use super::undo::{Machine, Undo};
use super::{failed, refused};

/// Records of one process at most: one for each setting.
const RECORDS_MAX: u32 = 1000;

/// Changes that were made, and what puts them back.
pub struct Changes {
    machine: Arc<Machine>,
    record: Option<LockedRecord>,
    promised: Vec<Undo>,
    /// The locks of the devices that are changed.
    held: Vec<LockedRecord>,
}

impl Changes {
    /// Creates a record in which nothing was changed yet.
    pub fn new(machine: Arc<Machine>) -> Self {
        Self { machine, record: None, promised: Vec::new(), held: Vec::new() }
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// Keeps other experiments from these devices until all is put back: they would take a level of this one
    /// for what was there before.
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
            let lock = LockedRecord::hold(&directory.join(device)).map_err(|error| failed(&error))?;
            let problem = || refused(format!("another comparison is changing {device}: wait until it ends"));
            held.push(lock.ok_or_else(problem)?);
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
        let record = match self.record.take() {
            Some(record) => record,
            None => begin(&self.machine.records).map_err(|error| failed(&error))?,
        };
        let added = add(&record, &undo);
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
        self.record.take().map_or(Ok(()), |record| record.remove().map_err(|error| failed(&error)))
    }
}

/// Settings that a killed comparison left changed, as its record says.
pub struct LeftChanges {
    record: LockedRecord,
    list: Vec<Undo>,
}

impl LeftChanges {
    /// Returns the changes in words.
    pub fn words(&self) -> String {
        if self.list.is_empty() {
            return format!("no setting (the record {} is empty)", self.record.path().display());
        }
        self.list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Puts everything back, and removes the record. What cannot be put back stays recorded.
    ///
    /// # Errors
    /// Names each setting that could not be put back, and why.
    pub fn put_back(self, machine: &Machine) -> Result<(), TrialError> {
        machine.undo_all(&self.list)?;
        self.record.remove().map_err(|error| failed(&error))
    }
}

/// Returns what killed comparisons left changed, by the records in `directory`, in the order of their names;
/// a record that cannot be read as its error. What a living process changed is not among it.
///
/// # Errors
/// Fails as readdir(3).
pub fn left_changes(directory: &Path) -> Result<Vec<Result<LeftChanges, FileError>>, FileError> {
    let mut paths = whole_file::list(directory)?;
    paths.sort();
    Ok(paths.iter().filter_map(|path| read_left(path).transpose()).collect())
}

fn read_left(path: &Path) -> Result<Option<LeftChanges>, FileError> {
    let Owner::Dead(record) = LockedRecord::take_over(path)? else { return Ok(None) };
    let damaged = |damage| whole_file::failed("read", path)(std::io::Error::other(damage));
    let list = sealed_lines::decode(&record.read()?, |_, _: &Undo| Ok(())).map_err(damaged)?.records;
    Ok(Some(LeftChanges { record, list }))
}

/// Creates the record of a comparison in `directory`, durably.
fn begin(directory: &Path) -> Result<LockedRecord, FileError> {
    whole_file::make_directory(directory, 0o700)?;
    for number in 0..RECORDS_MAX {
        let path = directory.join(format!("{}-{number}", std::process::id()));
        if let Some(record) = LockedRecord::create(&path)? {
            whole_file::sync_directory(directory)?;
            return Ok(record);
        }
    }
    Err(whole_file::failed("make", directory)(std::io::ErrorKind::AlreadyExists.into()))
}

fn add(record: &LockedRecord, undo: &Undo) -> Result<(), FileError> {
    let line = sealed_lines::encode(undo).map_err(std::io::Error::from);
    record.append(&line.map_err(whole_file::failed("write", record.path()))?)
}

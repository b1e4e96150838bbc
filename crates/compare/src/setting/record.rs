//! Records of the settings to restore, on stable storage before anything is changed: files that a process
//! keeps locked while it lives.

use std::path::Path;
use std::sync::Arc;

use plumb_state::sealed_lines;
use plumb_state::whole_file::{self, FileError};
use plumb_state::{LockedRecord, Owner};
use plumb_trial::TrialError;

use super::undo::{Machine, Undo};
use super::{failed, refused};

/// Maximum number of records of one process, which has one for each setting.
const RECORDS_MAX: u32 = 1000;

/// Changes that were made, and the actions that undo them.
pub struct Changes {
    machine: Arc<Machine>,
    record: Option<LockedRecord>,
    promised: Vec<Undo>,
    /// Locks of the changed devices.
    held: Vec<LockedRecord>,
}

impl Changes {
    /// Creates an empty list of changes.
    pub fn new(machine: Arc<Machine>) -> Self {
        Self { machine, record: None, promised: Vec::new(), held: Vec::new() }
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// Locks these devices against other experiments until everything is restored: another experiment would
    /// take a level of this one for the original state.
    ///
    /// # Errors
    /// If a device is locked already, or the locks cannot be written.
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

    /// Records durably how to undo the next change, unless an earlier promise covers it.
    ///
    /// # Errors
    /// Fails as the file system does; then nothing may be changed.
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

    /// Restores everything.
    ///
    /// # Errors
    /// If something could not be restored; it stays recorded.
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

    /// Restores everything, and removes the record. A setting that cannot be restored stays recorded.
    ///
    /// # Errors
    /// Fails with each setting that could not be restored, and the reason.
    pub fn put_back(self, machine: &Machine) -> Result<(), TrialError> {
        machine.undo_all(&self.list)?;
        self.record.remove().map_err(|error| failed(&error))
    }
}

/// Returns the changes that killed comparisons left, from the records in `directory`, in the order of their
/// names; for an unreadable record its error. Changes of living processes are not included.
///
/// # Errors
/// Fails as readdir(3) does.
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

//! Where a check works: in a directory of this machine, or on a simulated drive of its own.

use std::sync::Arc;

use plumb_block::{Bytes, Clock, RealClock, in_one_line};
use plumb_linux::space::space_at;

use crate::error::CheckError;
use crate::place::Place;
use crate::plan::{DRIVE_PHASES, FREE_UNSIZED, PHASES, Phase, SizeError, drive_size, file_size};
use crate::request::{Drive, Subject};
use crate::storage::Storage;
use crate::survey::{self, Surveyed};

/// Where a check works.
#[derive(Debug)]
pub(crate) enum Site<'a> {
    /// A directory in which a test file can be made.
    Directory(Place),
    /// A drive that nobody else uses.
    Drive(&'a Drive),
}

impl<'a> Site<'a> {
    /// The site that `subject` names.
    ///
    /// # Errors
    /// As [`Place::of`].
    pub(crate) fn of(subject: &'a Subject) -> Result<Self, CheckError> {
        match subject {
            Subject::Directory(path) => Ok(Self::Directory(Place::of(path)?)),
            Subject::Drive(drive) => Ok(Self::Drive(drive)),
        }
    }

    /// What the user should know of it.
    pub(crate) fn remark(&self) -> Option<&str> {
        match self {
            Self::Directory(place) => place.remark.as_deref(),
            Self::Drive(_) => None,
        }
    }

    /// The write path of it.
    pub(crate) fn survey(&self) -> Result<Surveyed, CheckError> {
        match self {
            Self::Directory(place) => Ok(survey::beneath(&place.directory)?),
            Self::Drive(drive) => Ok(Surveyed { path: drive.path.clone(), kernel: None }),
        }
    }

    /// The clock that the check goes by.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Directory(_) => Arc::new(RealClock::start()),
            Self::Drive(drive) => drive.clock.clone(),
        }
    }

    /// The counters beneath it.
    pub(crate) fn storage(&self, surveyed: &Surveyed, clock: Arc<dyn Clock>) -> Storage {
        match self {
            Self::Directory(_) => Storage::beneath(surveyed.path.block_devices(), clock),
            Self::Drive(drive) => Storage::of(Arc::clone(&drive.counters)),
        }
    }

    /// What is done there, in this order.
    pub(crate) fn phases(&self) -> &'static [Phase] {
        match self {
            Self::Directory(_) => &PHASES,
            Self::Drive(_) => &DRIVE_PHASES,
        }
    }

    /// The size of the test file, or of the part of the drive; the inner error is why nothing can be measured there.
    pub(crate) fn size(&self, asked: Option<Bytes>) -> Result<Result<Bytes, String>, CheckError> {
        match self {
            Self::Directory(place) => size_in(place, asked),
            Self::Drive(drive) => match drive_size(asked, drive.device.info().size) {
                Ok(size) => Ok(Ok(size)),
                Err(source) => Err(CheckError::Size { place: drive.name.clone(), source }),
            },
        }
    }
}

fn size_in(directory: &Place, asked: Option<Bytes>) -> Result<Result<Bytes, String>, CheckError> {
    let space = space_at(&directory.directory)?;
    let place = directory.directory.display().to_string();
    if space.read_only {
        return Ok(Err(format!(
            "cannot measure in {place}: its file system is mounted read-only; check a directory that can be written"
        )));
    }
    let free = if space.total == Bytes(0) { FREE_UNSIZED } else { space.free };
    match file_size(asked, free) {
        Ok(size) => Ok(Ok(size)),
        Err(source @ SizeError::NoSpace { .. }) => Ok(Err(in_one_line(&CheckError::Size { place, source }))),
        Err(source) => Err(CheckError::Size { place, source }),
    }
}

//! Locks of files. The kernel lets go of one when its holder dies, however that happens, so a lock on the record of
//! something served says that its server lives: no number of a process, which is another's some day, is needed.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// A file that is locked against all others, in this process too, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Locks a directory, as soon as nobody else does.
    pub(crate) fn directory(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                outcome => return outcome.map(|()| Self(file)).map_err(io::Error::from),
            }
        }
    }

    /// Locks `file`; `None` if another has locked it.
    pub(crate) fn unless_taken(file: File) -> io::Result<Option<Self>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    /// What is locked.
    pub(crate) fn file(&self) -> &File {
        &self.0
    }
}

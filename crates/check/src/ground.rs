//! What the loads of a check go to: the test file, or the part of a simulated drive.

use std::path::PathBuf;
use std::sync::Arc;

use plumb_block::{Bytes, Clock, Device};
use plumb_linux::{Engine, FileOptions, TestFile, pagecache};

use crate::ended::Mishap;

/// What the loads go to.
pub(crate) enum Ground {
    /// A file of the check's own.
    File {
        file: TestFile,
        /// Where another can be made.
        directory: PathBuf,
    },
    /// A drive of the check's own.
    Drive {
        device: Arc<dyn Device>,
        /// The part of it, from its start, that is used.
        size: Bytes,
    },
}

impl Ground {
    /// How much of it there is.
    pub(crate) fn size(&self) -> Bytes {
        match self {
            Self::File { file, .. } => file.size(),
            Self::Drive { size, .. } => *size,
        }
    }

    /// It as a device, and how requests reach it. There is but one way to a drive, whatever `options` say.
    pub(crate) fn open(
        &self,
        options: FileOptions,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Arc<dyn Device>, Option<Engine>), Mishap> {
        match self {
            Self::File { file, .. } => {
                let device = file.open(options, Arc::clone(clock))?;
                let engine = device.engine().clone();
                Ok((Arc::new(device), Some(engine)))
            }
            Self::Drive { device, .. } => Ok((Arc::clone(device), None)),
        }
    }

    /// Takes a test file out of the page cache, so that every phase begins alike. Cached pages would cost each direct
    /// request an invalidation, and each buffered write a walk through the large folio that a read had made.
    pub(crate) fn forget(&self) -> Result<(), Mishap> {
        match self {
            Self::File { file, .. } => Ok(pagecache::drop_clean(file, Bytes(0), file.size(), &file.place())?),
            Self::Drive { .. } => Ok(()),
        }
    }

    /// How much of a test file is dirty in the page cache, if that can be told.
    pub(crate) fn dirty(&self) -> Option<Bytes> {
        match self {
            Self::File { file, .. } => {
                pagecache::residency(file, Bytes(0), file.size(), &file.place()).ok()?.dirty
            }
            Self::Drive { .. } => None,
        }
    }
}

//! The parameters by which the states of a recording are judged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Clock, Nanos};

use crate::error::{Error, ErrorKind, Result};
use crate::explore::{Explorer, Limits};
use crate::file_system::FileSystem;
use crate::profile::DriveProfile;
use crate::session::RecordedWork;
use crate::subject::Subject;

/// Recording to judge, the checker, and how.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// Recorded work. No cut happens before it begins, or after it has ended.
    pub recorded: &'a RecordedWork,
    /// Drive profile that says what a cut may leave.
    pub profile: &'a DriveProfile,
    /// Bounds of the exploration.
    pub limits: Limits,
    /// Seed of all random choices.
    pub seed: u64,
    /// Subject with the checker. It runs on threads with descriptors of their own: a subject keeps no file
    /// open between calls.
    pub subject: &'a Arc<dyn Subject>,
    /// File system that was recorded; without one the checker gets the block device.
    pub file_system: FileSystem,
    /// Number of states that are checked at a time; 0 for two a processor, since mounting waits more than it
    /// works.
    pub workers: usize,
    /// Directory for mount points and sockets.
    pub directory: &'a Path,
    /// Time limit of a check. A check that exceeds it by some seconds is given up, and judging ends.
    pub timeout: Nanos,
    /// Flag that ends judging when it is set.
    pub stop: &'a AtomicBool,
    /// Clock of time limits. Programs and the kernel go by the machine's own.
    pub clock: &'a dyn Clock,
    /// Time at which judging ends, and a minimal case is small enough; `Nanos(u64::MAX)` for no limit.
    pub until: Nanos,
    /// True if this kernel, which may crash, mounts file systems that a drive has damaged against its
    /// contract.
    pub mount_here: bool,
    /// File of results. Checks whose results it already holds are not repeated.
    pub results: Option<&'a Path>,
}

impl Judge<'_> {
    /// Returns true once its time is used up.
    pub(crate) fn is_late(&self) -> bool {
        self.clock.now() >= self.until
    }

    /// Returns the explorer of the recording.
    pub(crate) fn explorer(&self) -> Explorer<'_> {
        let Self { recorded: RecordedWork { recording, from, until, .. }, profile, limits, seed, .. } = *self;
        let DriveProfile { promise, further, .. } = profile;
        Explorer { recording, from: *from, until: *until, promise: *promise, further, limits, seed }
    }

    /// Returns the error for a choice that this recording does not have.
    pub(super) fn no_such_state(&self) -> Error {
        let what = format!(
            "no power cut of this recording leaves this state on a `{}` drive, or the state no longer fails in the same way: it was found \
             with another recording, profile or checker",
            self.profile.name
        );
        Error::new(ErrorKind::NoSuchState, what)
    }

    /// Refuses what this kernel must not mount, unless that was allowed.
    pub(super) fn may_mount(&self) -> Result<()> {
        if self.mount_here { Ok(()) } else { self.profile.may_be_mounted(self.file_system) }
    }
}

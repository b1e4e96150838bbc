//! Parameters for judging the states of a recording.

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

/// Recording to judge, its checker, and options.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// Recorded work. Cuts happen between its beginning and its end.
    pub recorded: &'a RecordedWork,
    /// Drive profile, which defines what a cut may leave.
    pub profile: &'a DriveProfile,
    /// Limits of the exploration.
    pub limits: Limits,
    /// Seed of all random choices.
    pub seed: u64,
    /// Subject with the checker. Checks run on threads with descriptors of their own, so a subject keeps no
    /// file open between calls.
    pub subject: &'a Arc<dyn Subject>,
    /// File system of the recording. Without one the checker gets the block device.
    pub file_system: FileSystem,
    /// Number of states checked in parallel; 0 for two per processor, since mounting mostly waits.
    pub workers: usize,
    /// Directory for mount points and sockets.
    pub directory: &'a Path,
    /// Time limit of a check. A check that exceeds it by some seconds is abandoned, and judging ends.
    pub timeout: Nanos,
    /// Flag that ends judging.
    pub stop: &'a AtomicBool,
    /// Clock of the time limits. Programs and the kernel use the clock of the machine.
    pub clock: &'a dyn Clock,
    /// Time at which judging and the reduction of minimal cases end; `Nanos(u64::MAX)` for no limit.
    pub until: Nanos,
    /// True to let this kernel mount file systems that a drive has damaged in breach of its contract, which
    /// may crash it.
    pub mount_here: bool,
    /// File with results. Checks with a result in the file are not repeated.
    pub results: Option<&'a Path>,
}

impl Judge<'_> {
    /// Returns true once the time limit has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.clock.now() >= self.until
    }

    /// Returns the explorer of the recording.
    pub(crate) fn explorer(&self) -> Explorer<'_> {
        let Self { recorded: RecordedWork { recording, from, until, .. }, profile, limits, seed, .. } = *self;
        let DriveProfile { promise, further, .. } = profile;
        Explorer { recording, from: *from, until: *until, promise: *promise, further, limits, seed }
    }

    /// Returns the error for a choice that does not belong to this recording.
    pub(super) fn no_such_state(&self) -> Error {
        let what = format!(
            "no power cut of this recording leaves this state on a `{}` drive, or the state no longer fails in the same way: it was found \
             with another recording, profile or checker",
            self.profile.name
        );
        Error::new(ErrorKind::NoSuchState, what)
    }

    /// Refuses states that this kernel must not mount, unless the user permits it.
    pub(super) fn may_mount(&self) -> Result<()> {
        if self.mount_here { Ok(()) } else { self.profile.may_be_mounted(self.file_system) }
    }
}

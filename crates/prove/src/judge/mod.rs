//! Each state that a cut may leave, put before a checker.
//!
//! ```text
//!   Explorer ─► state ─► Observed ── known by what earlier checks have read ─► its result
//!                           │ not known
//!                           └─► worker: StateDevice, attached once ─► mount ─► check ─► unmount ─► what was read, result
//! ```
//!
//! Invariant: what comes out does not depend on how many workers there are. What a check has read becomes known when a fixed
//! number of later checks was given out, never as soon as it is there.

mod attached;
mod results;
mod run;
mod workers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_report::document::proof::{FailureClass, StateCounts};
use plumb_serve::ExportError;

pub use self::attached::Held;

use self::attached::Attached;
use self::run::{Single, judged};
use crate::explore::{Choice, Explorer, Limits, WindowCoverage};
use crate::file_system::{FileSystem, FileSystemError};
use crate::profile::DriveProfile;
use crate::recording::Recording;
use crate::subject::{CheckPlace, Outcome, Subject};

/// What is judged, and by what.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// The recording.
    pub recording: &'a Arc<Recording>,
    /// The event at which the work begins: no cut happens before it.
    pub from: usize,
    /// The event at which it ends: no cut happens after it.
    pub until: usize,
    /// The drive.
    pub profile: &'a DriveProfile,
    /// How far to explore.
    pub limits: Limits,
    /// Of all random choices.
    pub seed: u64,
    /// Whose check it is. It runs on threads with descriptors of their own: a subject keeps no file open between calls.
    pub subject: &'a Arc<dyn Subject>,
    /// The file system that was recorded; without one the check gets the block device.
    pub file_system: FileSystem,
    /// How many states are checked at a time; 0: two for each processor, since mounting waits more than it works.
    pub workers: usize,
    /// Where mount points and sockets may be made.
    pub directory: &'a Path,
    /// How long a check may take. One that takes longer by some seconds is given up, and all ends.
    pub timeout: Duration,
    /// Says that enough was judged.
    pub stop: &'a AtomicBool,
    /// Whether file systems that a drive has damaged against its contract are mounted by this kernel, which may crash.
    pub mount_here: bool,
    /// A file that keeps the results of checks. Those that are in it already are not made again.
    pub results: Option<&'a Path>,
}

/// What was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// How many states.
    pub counts: StateCounts,
    /// Each window, with how many of its states fail.
    pub windows: Vec<(WindowCoverage, u64)>,
    /// What fails.
    pub failing: BTreeMap<FailureClass, FailingStates>,
    /// Why not all was judged that should have been; what is here is true all the same.
    pub incomplete_because: Option<String>,
    /// What is worth saying beside.
    pub notes: Vec<String>,
}

/// The states that fail in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingStates {
    /// How many.
    pub count: u64,
    /// The one of them that has lost the fewest commands, of these the fewest blocks, of these the first.
    pub example: Choice,
    /// What the checker said of it.
    pub words: String,
    /// What it had to find.
    pub required: Option<u64>,
}

/// How far judging is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Distinct states that were judged.
    pub distinct: u64,
    /// For how many of them the checker ran.
    pub checked: u64,
    /// How many fail.
    pub failing: u64,
}

/// Nothing could be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The kernel of this machine might crash.
    #[error(
        "a `{profile}` drive breaks its contract, and a kernel may crash when it mounts the {file_system} on it: use \
         --fs none, or give --mount-here on a machine that may crash"
    )]
    NeedsGuest {
        /// The drive profile.
        profile: String,
        /// The file system.
        file_system: FileSystem,
    },
    /// States could not be attached as block devices.
    #[error("cannot attach a state of the recording: {0}")]
    Attach(#[from] ExportError),
    /// A state could not be mounted.
    #[error(transparent)]
    FileSystem(#[from] FileSystemError),
    /// A file or directory.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// The results of checks that were kept are others.
    #[error("{} {why}; give another file with --resume, or remove it", path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// No cut of this recording leaves that state, or it does not fail in that way.
    #[error(
        "no power cut leaves this state of this recording on a `{profile}` drive, or it does not fail as it did: it was found with \
         another recording, profile or checker"
    )]
    NoSuchState {
        /// The drive profile.
        profile: String,
    },
    /// A state could not be checked.
    #[error("{0}")]
    Check(String),
}

impl Judge<'_> {
    /// Judges all states. `progress` is told now and then.
    ///
    /// # Errors
    /// If it could not begin. What ends it later is in [`Judged::incomplete_because`].
    pub fn judge(&self, progress: &mut dyn FnMut(Progress)) -> Result<Judged, JudgeError> {
        self.may_check()?;
        judged(self, progress)
    }

    /// What the checker says of one state.
    ///
    /// # Errors
    /// If there is no such state, or it cannot be checked.
    pub fn outcome(&self, choice: &Choice) -> Result<Outcome, JudgeError> {
        let mut single = Single::new(self)?;
        let outcome = self.explorer().show(choice, &mut |state| single.check(state));
        single.end()?;
        outcome.unwrap_or_else(|| Err(self.no_such_state()))
    }

    /// Takes away from what the cut took whatever is not needed for a failure of this class.
    ///
    /// # Errors
    /// If there is no such state, it does not fail in this way, or a state cannot be checked.
    pub fn minimise(&self, choice: &Choice, class: FailureClass) -> Result<Choice, JudgeError> {
        let mut single = Single::new(self)?;
        let mut ended = None;
        let minimal = self.explorer().minimise(choice, &mut |state| {
            if ended.is_some() {
                return false;
            }
            match single.check(state) {
                Ok(outcome) => outcome.class() == Some(class),
                Err(error) => {
                    ended = Some(error);
                    false
                }
            }
        });
        single.end()?;
        match ended {
            Some(error) => Err(error),
            None => minimal.ok_or_else(|| self.no_such_state()),
        }
    }

    /// A state, mounted for a look until it is released.
    ///
    /// # Errors
    /// If there is no such state, or it cannot be mounted.
    pub fn hold(&self, choice: &Choice) -> Result<Held, JudgeError> {
        self.may_mount()?;
        let state = self.explorer().show(choice, &mut |state| state.to_owned());
        let state = state.ok_or_else(|| self.no_such_state())?;
        Attached::new(self)?.hold(state)
    }

    /// The explorer of the recording.
    pub(crate) fn explorer(&self) -> Explorer<'_> {
        let Self { recording, from, until, limits, seed, .. } = *self;
        Explorer { recording, from, until, promise: self.profile.promise, limits, seed }
    }

    fn no_such_state(&self) -> JudgeError {
        JudgeError::NoSuchState { profile: self.profile.name.clone() }
    }

    fn may_check(&self) -> Result<(), JudgeError> {
        if self.subject.check_place() == CheckPlace::Device { Ok(()) } else { self.may_mount() }
    }

    fn may_mount(&self) -> Result<(), JudgeError> {
        let Self { file_system, mount_here, profile, .. } = *self;
        if profile.breaks_contract && !mount_here && file_system != FileSystem::None {
            return Err(JudgeError::NeedsGuest { profile: profile.name.clone(), file_system });
        }
        Ok(())
    }
}

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
mod switched;
mod workers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_report::document::proof::{FailureClass, StateCounts};

pub use self::attached::Held;

use self::attached::Attached;
use self::run::{Single, judged};
use crate::error::{Error, ErrorKind, Result};
use crate::explore::{Choice, Explorer, Limits, WindowCoverage};
use crate::file_system::FileSystem;
use crate::profile::DriveProfile;
use crate::session::Recorded;
use crate::subject::{Outcome, Subject};

/// What is judged, and by what.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// What was recorded. No cut happens before the work begins, or after it has ended.
    pub recorded: &'a Recorded,
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
}

impl Judge<'_> {
    /// Judges all states. `progress` is told now and then.
    ///
    /// # Errors
    /// If it could not begin. What ends it later is in [`Judged::incomplete_because`].
    pub fn judge(&self, progress: &mut dyn FnMut(StateCounts)) -> Result<Judged> {
        self.may_mount()?;
        judged(self, progress)
    }

    /// What the checker says of one state.
    ///
    /// # Errors
    /// If there is no such state, or it cannot be checked.
    pub fn outcome(&self, choice: &Choice) -> Result<Outcome> {
        let mut single = Single::new(self)?;
        let outcome = self.explorer().show(choice, &mut |state| single.check(state));
        single.end()?;
        outcome.unwrap_or_else(|| Err(self.no_such_state()))
    }

    /// Takes away from what the cut took whatever is not needed for a failure of this class.
    ///
    /// # Errors
    /// If there is no such state, it does not fail in this way, or a state cannot be checked.
    pub fn minimise(&self, choice: &Choice, class: FailureClass) -> Result<Choice> {
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
    pub fn hold(&self, choice: &Choice) -> Result<Held> {
        self.may_mount()?;
        let state = self.explorer().show(choice, &mut |state| state.to_owned());
        let state = state.ok_or_else(|| self.no_such_state())?;
        Attached::new(self)?.hold(state)
    }

    /// The explorer of the recording.
    pub(crate) fn explorer(&self) -> Explorer<'_> {
        let Self { recorded: Recorded { recording, from, until, .. }, profile, limits, seed, .. } = *self;
        Explorer { recording, from: *from, until: *until, promise: profile.promise, limits, seed }
    }

    fn no_such_state(&self) -> Error {
        let what = format!(
            "no power cut leaves this state of this recording on a `{}` drive, or it does not fail as it did: it was found with \
             another recording, profile or checker",
            self.profile.name
        );
        Error::new(ErrorKind::NoSuchState, what)
    }

    fn may_mount(&self) -> Result<()> {
        if self.mount_here { Ok(()) } else { self.profile.may_be_mounted(self.file_system) }
    }
}

//! Request for a proof, and the exploration of a recording within its budget.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_report::document::Environment;
use plumb_report::document::proof::{RecordingFacts, StateCounts};

use super::kept::KeptRecording;
use super::run::ProofRun;
use crate::error::Result;
use crate::explore::{Explorer, Limits};
use crate::judge::{Judge, JudgeResult};
use crate::profile::DriveProfile;
use crate::session::{RecordOptions, RecordedWork};
use crate::subject::Program;
use crate::trace::Writeback;

/// Reason why a stopped proof is not complete.
pub(super) const INTERRUPTED: &str = "interrupted";

/// Recording to prove, the drive profiles, and the limits.
#[derive(Clone)]
pub struct Request<'a> {
    /// Parameters of judging under the first profile.
    pub judge: Judge<'a>,
    /// Drive profiles, at least one. Windows and failures are reported for the first; for the others only
    /// whether states fail.
    pub profiles: &'a [DriveProfile],
    /// Part of the work to which the cuts are confined, in words such as `in ack:1..ack:2`; `None` for all of
    /// it.
    pub target: Option<String>,
    /// Time limit of each exploration of the first recording, and, three times as long, of all further ones.
    /// The states most likely to fail come first; the coverage says what was not reached.
    pub budget: Option<Duration>,
    /// Program and options for recording the work again with a sync call that it lacks; `None` if it must not
    /// run again.
    pub again: Option<&'a Again>,
    /// Largest number of further recordings, with writeback chosen; `None` for all that belong to the
    /// program, and a few mixtures. They need `again`.
    pub further: Option<u64>,
    /// Number of cuts, one during the check of what the one before has left: 1 for none during checks.
    pub recovery_depth: u32,
    /// True to look for sync calls that can go, where no state fails.
    pub needless_syncs: bool,
    /// True to look for changes that remove the failures.
    pub change: bool,
    /// Environment for the document.
    pub environment: Environment,
    /// Run directory, which keeps what is found.
    pub run: &'a ProofRun,
}

/// Program and options for recording the work again.
#[derive(Debug, Clone)]
pub struct Again {
    /// Options of the first recording.
    pub options: RecordOptions,
    /// Program that does the work in a process of its own, which can be traced. It acknowledges through the
    /// control file.
    pub program: Program,
    /// Choice of writeback; `None` if the kernel chooses.
    pub writeback: Option<Writeback>,
}

impl Again {
    /// Returns how the work of a recording that was kept can be recorded again; `None` if it cannot be.
    pub fn new(kept: &KeptRecording, options: RecordOptions) -> Option<Self> {
        let KeptRecording { subject, recorded, .. } = kept;
        // Another run would not be cut at the same place.
        let is_repeatable = !recorded.is_cut && recorded.facts.attached_by != RecordingFacts::BY_LOG_WRITES;
        let program = subject.program().filter(|_| is_repeatable)?;
        let options = RecordOptions { cache: recorded.cache, power: None, ..options };
        Some(Self { options, program, writeback: None })
    }
}

/// Progress of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExploreProgress {
    /// States counted so far.
    pub progress: StateCounts,
    /// Number of distinct states to judge.
    pub of: u64,
    /// Time since the exploration began.
    pub elapsed: Duration,
    /// Estimated time left at the present pace, at most the rest of the budget; `None` before the first
    /// state.
    pub left: Option<Duration>,
}

/// Callback that receives the current step in words, and its progress if known.
pub type Watch<'w> = &'w mut dyn FnMut(&str, Option<ExploreProgress>);

impl Request<'_> {
    /// Returns the profile whose windows and failures are reported.
    pub(crate) fn profile(&self) -> &DriveProfile {
        &self.profiles[0]
    }

    /// Returns true once exploration must stop.
    pub(crate) fn is_over(&self) -> bool {
        self.judge.stop.load(Ordering::Acquire)
    }

    /// Judges the states of a recording of the work, this one or a changed one, until the budget is used up.
    pub(crate) fn explore(
        &self,
        recorded: &RecordedWork,
        profile: &DriveProfile,
        limits: Limits,
        doing: &str,
        watch: Watch<'_>,
    ) -> Result<JudgeResult> {
        watch(doing, None);
        let halt = AtomicBool::new(false);
        // The known results are identified by the data read of this recording, so they hold for it alone.
        let is_kept = std::ptr::eq(recorded, self.judge.recorded) && profile == self.profile();
        let results = self.judge.results.filter(|_| is_kept);
        let judge = Judge { recorded, profile, results, limits, stop: &halt, ..self.judge };
        let (began, budget) = (Instant::now(), self.budget.unwrap_or(Duration::MAX));
        let of = self.count(
            &Explorer { limits: Limits { visits: 0, ..limits }, ..judge.explorer() },
            began,
            budget,
        );
        let mut judged = judge.judge(&mut |progress| {
            let elapsed = began.elapsed();
            if self.is_over() || elapsed >= budget {
                halt.store(true, Ordering::Release);
            }
            let rest = of.saturating_sub(progress.distinct) as f64;
            let left = (progress.distinct > 0).then(|| elapsed.mul_f64(rest / progress.distinct as f64));
            let left = left.map(|left| left.min(budget.saturating_sub(elapsed)));
            watch(doing, Some(ExploreProgress { progress, of, elapsed, left }));
        })?;
        if self.is_over() {
            judged.incomplete_because = Some(INTERRUPTED.to_owned());
        } else if halt.into_inner() {
            judged.incomplete_because = None;
            judged.out_of_time = true;
        }
        Ok(judged)
    }

    /// Counts the distinct states, in a fraction of the time that judging them takes; those that were counted
    /// when the budget is used up.
    fn count(&self, explorer: &Explorer<'_>, began: Instant, budget: Duration) -> u64 {
        let mut count = 0;
        explorer.explore(&mut |_| {
            count += 1;
            if self.is_over() || began.elapsed() >= budget {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        count
    }
}

//! Request for a proof, and the exploration of a recording within its budget.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use plumb_block::Nanos;
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
    /// Drive profiles, at least one. Windows and failures are reported for the first. For the others only the
    /// existence of failing states is reported.
    pub profiles: &'a [DriveProfile],
    /// Part of the work to which the cuts are restricted, in words such as `in ack:1..ack:2`; `None` for all
    /// of it.
    pub target: Option<String>,
    /// Time limit of each exploration of the first recording; all further recordings together have three
    /// times as long. The states most likely to fail come first, and the coverage tells what was not reached.
    /// `Nanos(u64::MAX)` for no limit.
    pub budget: Nanos,
    /// Program and options to record the work again with an additional sync call; `None` if it must not run
    /// again.
    pub again: Option<&'a Again>,
    /// Maximum number of further recordings with chosen writeback; `None` for those tried for every program
    /// and a few mixtures. They need `again`.
    pub further: Option<u64>,
    /// Number of successive cuts, each during the check of the state after the previous one: 1 for no cuts
    /// during checks.
    pub recovery_depth: u32,
    /// True to search for sync calls that can be removed, if no state fails.
    pub needless_syncs: bool,
    /// True to search for changes that remove the failures.
    pub change: bool,
    /// Environment for the document.
    pub environment: Environment,
    /// Run directory for the results.
    pub run: &'a ProofRun,
    /// Callback for steps and progress.
    pub watch: Watch<'a>,
}

/// Program and options for recording the work again.
#[derive(Debug, Clone)]
pub struct Again {
    /// Options of the first recording.
    pub options: RecordOptions,
    /// Program that does the work in a separate process, which can be traced. It acknowledges through the
    /// control file.
    pub program: Program,
    /// Choice of writeback; `None` if the kernel chooses.
    pub writeback: Option<Writeback>,
}

impl Again {
    /// Returns the parameters to record the work of a stored recording again; `None` if that is impossible.
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
    pub elapsed: Nanos,
    /// Estimated time left at the present pace, at most the rest of the budget; `None` before the first
    /// state.
    pub left: Option<Nanos>,
}

/// Callback that receives the current step in words, and its progress if known.
pub type Watch<'w> = &'w dyn Fn(&str, Option<ExploreProgress>);

impl Request<'_> {
    /// Returns the profile whose windows and failures are reported.
    pub(crate) fn profile(&self) -> &DriveProfile {
        &self.profiles[0]
    }

    /// Returns true once exploration must stop.
    pub(crate) fn is_over(&self) -> bool {
        self.judge.stop.load(Ordering::Acquire)
    }

    /// Returns true once exploration must stop, or the time is `until`.
    pub(crate) fn is_over_at(&self, until: Nanos) -> bool {
        self.is_over() || self.judge.clock.now() >= until
    }

    /// Returns the time at which a `budget` that begins now is used up.
    pub(crate) fn until(&self, budget: Nanos) -> Nanos {
        self.judge.clock.now().saturating_add(budget)
    }

    /// Reports the beginning of a step.
    pub(crate) fn begin(&self, doing: &str) {
        (self.watch)(doing, None);
    }

    /// Judges the states of a recording of the work, original or changed, until the budget is used up.
    pub(crate) fn explore(
        &self,
        recorded: &RecordedWork,
        profile: &DriveProfile,
        limits: Limits,
        doing: &str,
    ) -> Result<JudgeResult> {
        self.begin(doing);
        // Known results are identified by the reads of this recording, so they hold for it alone.
        let is_kept = std::ptr::eq(recorded, self.judge.recorded) && profile == self.profile();
        let results = self.judge.results.filter(|_| is_kept);
        let (began, until) = (self.judge.clock.now(), self.until(self.budget));
        let judge = Judge { recorded, profile, results, limits, until, ..self.judge };
        let of = self.count(&Explorer { limits: Limits { visits: 0, ..limits }, ..judge.explorer() }, until);
        let mut judged = judge.judge(&mut |progress| {
            let now = self.judge.clock.now();
            let elapsed = now.since(began);
            let rest = of.saturating_sub(progress.distinct) as f64 / progress.distinct as f64;
            let left = (progress.distinct > 0).then(|| Nanos::from_secs_f64(elapsed.as_secs_f64() * rest));
            let left = left.map(|left| left.min(until.since(now)));
            (self.watch)(doing, Some(ExploreProgress { progress, of, elapsed, left }));
        })?;
        if self.is_over() {
            judged.incomplete_because = Some(INTERRUPTED.to_owned());
        }
        Ok(judged)
    }

    /// Counts the distinct states, in a fraction of the time that judging them takes; those that were counted
    /// until then.
    fn count(&self, explorer: &Explorer<'_>, until: Nanos) -> u64 {
        let mut count = 0;
        explorer.explore(&mut |_| {
            count += 1;
            if self.is_over_at(until) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        count
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::ffi::OsStr;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use plumb_block::{Bytes, Clock as _, VirtualClock};

    use super::*;
    use crate::file_system::FileSystem;
    use crate::posix::{Inode, Model, Name, Object, Unwritten};
    use crate::recording::Event;
    use crate::subject::{Outcome, Subject};

    struct Intact;

    impl Subject for Intact {
        fn name(&self) -> String {
            "intact".to_owned()
        }

        fn set_up(&self, _: &Path) -> Result<()> {
            Ok(())
        }

        fn check(&self, _: &Path, _: Option<u64>) -> Result<Outcome> {
            Ok(Outcome::Intact)
        }
    }

    /// Returns the work of making five empty files without a sync.
    fn five_files() -> RecordedWork {
        let mut model = Model::new(Bytes(512), Unwritten::Zeroes);
        for name in ["a", "b", "c", "d", "e"] {
            let file = model.make(Object::File(0o644));
            model.link(file, Name { directory: Inode::ROOT, name: OsStr::new(name) });
        }
        model.happened(Event::Acknowledged(1));
        let layout = Some(model.layout().clone());
        let recording = model.into_recording();
        let until = recording.events.len();
        RecordedWork { layout, ..RecordedWork::new(recording, 0, until) }
    }

    #[test]
    fn a_budget_that_is_used_up_ends_an_exploration_and_whoever_watches_is_told_what_is_left() {
        let (clock, told) = (VirtualClock::new(), Cell::new(0));
        let (subject, recorded): (Arc<dyn Subject>, _) = (Arc::new(Intact), five_files());
        let profile = DriveProfile::parse("volatile", Bytes(512)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let watch = |_: &str, done: Option<ExploreProgress>| {
            let Some(done) = done else { return };
            assert_eq!((done.elapsed, done.progress.distinct), (Nanos::secs(told.get()), told.get() + 1));
            assert!(done.of == 32 && done.left <= Some(Nanos::secs(3 - told.get())), "{done:?}");
            // Each check takes a second.
            clock.advance_to(clock.now() + Nanos::secs(1));
            told.set(told.get() + 1);
        };
        let request = Request {
            judge: Judge {
                recorded: &recorded,
                profile: &profile,
                limits: Limits::default(),
                seed: 1,
                subject: &subject,
                file_system: FileSystem::Posix,
                workers: 1,
                directory: directory.path(),
                timeout: Nanos::secs(60),
                stop: &AtomicBool::new(false),
                clock: &clock,
                until: Nanos(u64::MAX),
                mount_here: false,
                results: None,
            },
            profiles: std::slice::from_ref(&profile),
            target: None,
            budget: Nanos::secs(3),
            again: None,
            further: None,
            recovery_depth: 1,
            needless_syncs: false,
            change: false,
            environment: Environment::default(),
            run: &ProofRun::default(),
            watch: &watch,
        };
        let explore = |request: &Request<'_>| {
            request.explore(&recorded, &profile, Limits::default(), "exploring").unwrap()
        };
        let judged = explore(&request);
        assert_eq!((judged.counts.distinct, judged.out_of_time), (3, true), "{judged:?}");
        assert!(judged.incomplete_because.is_none() && !judged.is_exhaustive());
        let judged = explore(&Request { budget: Nanos(u64::MAX), watch: &|_, _| {}, ..request });
        assert_eq!((judged.counts.distinct, judged.out_of_time), (32, false), "{judged:?}");
    }
}

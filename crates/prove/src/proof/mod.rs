//! A recording judged, and what was found put into one document.
//!
//! ```text
//!   Recorded ─► Judge, once for each drive profile ─► minimal case of each class ─► change ─► ProofDocument
//! ```
//! *Proved* is said of one recording, one drive profile and one checker, and only if nothing could have hidden a failing
//! state: [`words`] lists what may.

mod kept;
mod minimal_case;
mod words;

pub use kept::{Kept, KeptError, SubjectWords};

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{Coverage, Failure, FailureClass, ProfileResult, WindowResult};
use serde::{Deserialize, Serialize};

use crate::change;
use crate::explore::{Choice, Explorer, Limits};
use crate::file_system::FileSystem;
use crate::judge::{FailingStates, Judge, JudgeError, Judged, Progress};
use crate::profile::DriveProfile;
use crate::session::{RecordOptions, Recorded};
use crate::subject::{Outcome, Program, Subject};

const INTERRUPTED: &str = "interrupted";

/// At most so many earlier moments are tried for a minimal case.
const EARLIER_MAX: usize = 32;

/// What to prove of a recording, and how far to go.
pub struct Request<'a> {
    /// What was recorded, and checks.
    pub subject: &'a Arc<dyn Subject>,
    /// The file system it worked on.
    pub file_system: FileSystem,
    /// The drive profiles, at least one. All is told of the first; of the others whether they fail.
    pub profiles: &'a [DriveProfile],
    /// The part of the work to which the cuts are confined, in words; `None`: all of it.
    pub target: Option<String>,
    /// How far to go in each exploration.
    pub limits: Limits,
    /// How long each exploration may take: what finds most for what it costs comes first, and what was not reached is told by
    /// the coverage.
    pub budget: Option<Duration>,
    /// Of what is drawn.
    pub seed: u64,
    /// How many checks run side by side.
    pub workers: usize,
    /// How long a check may take.
    pub timeout: Duration,
    /// Where mount points are made: an existing directory.
    pub directory: &'a Path,
    /// Whether file systems that a drive has damaged against its contract are mounted by this kernel, which may crash.
    pub mount_here: bool,
    /// A file that keeps the results of checks of the first profile, those of an earlier run too.
    pub results: Option<&'a Path>,
    /// How the work is recorded again with a sync call that it lacks; `None` if it is not to be run again.
    pub again: Option<&'a Again>,
    /// Whether to look for changes that remove what fails.
    pub change: bool,
    /// The command that shows the failure of a class again.
    pub replay: &'a dyn Fn(FailureClass) -> String,
    /// Becomes true when it shall end and keep what it has.
    pub stop: &'a AtomicBool,
}

/// How the work is recorded again.
#[derive(Debug, Clone)]
pub struct Again {
    /// As it was.
    pub options: RecordOptions,
    /// What does it in a process of its own, which can be traced. It acknowledges through the control file.
    pub program: Program,
}

/// What is being done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The states under a drive profile are explored.
    Exploring(String),
    /// The failing state of a class is made smaller.
    Minimising(FailureClass),
    /// A change is tried: which.
    Changing(String),
}

/// How far exploring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Until now.
    pub progress: Progress,
    /// How many distinct states there are to judge.
    pub of: u64,
}

/// Whoever is told what is being done, and how far that is if it is known.
pub type Watch<'w> = &'w mut dyn FnMut(&Step, Option<Done>);

/// The result.
#[derive(Debug)]
pub struct Proof {
    /// What is reported. What only the caller knows (environment, run directory) is left empty.
    pub document: ProofDocument,
    /// The minimal case of each failure of the document, in its order.
    pub cases: Vec<Case>,
}

/// What is needed to show a failure again, beside the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The drive profile.
    pub drive: String,
    /// How it fails.
    pub class: FailureClass,
    /// What the checker said.
    pub words: String,
    /// The acknowledgement that had to be found.
    pub required: Option<u64>,
    /// What the cut took.
    pub choice: Choice,
}

/// Proves what can be proved.
///
/// # Errors
/// If states could not be judged at all. A `stop` is no error: what was found until then is kept.
pub fn prove(recorded: &Recorded, request: &Request<'_>, watch: Watch<'_>) -> Result<Proof, JudgeError> {
    let prover = Prover { recorded, request };
    let mut document = words::begun(recorded, request);
    let mut cases = Vec::new();
    for (place, profile) in request.profiles.iter().enumerate() {
        let mut result = ProfileResult { name: profile.name.clone(), ..ProfileResult::default() };
        result.not_judged_because = words::not_judged_because(profile, &recorded.facts);
        if result.not_judged_because.is_none() && prover.is_over() {
            result.not_judged_because = Some(INTERRUPTED.to_owned());
        }
        if result.not_judged_because.is_none() {
            let judged = prover.explore(
                recorded,
                profile,
                request.limits,
                &Step::Exploring(profile.name.clone()),
                watch,
            )?;
            put_result(&mut result, &judged);
            document.incomplete_because = document.incomplete_because.or(result.not_judged_because.clone());
            if place == 0 {
                put_states(&mut document, recorded, &judged);
                document.notes.extend(judged.notes.iter().cloned());
                prover.put_failures(&mut document, &mut cases, &judged, watch)?;
            }
            document.incomplete_because = document.incomplete_because.or(judged.incomplete_because);
        }
        document.profiles.push(result);
    }
    if prover.is_over() {
        document.incomplete_because.get_or_insert_with(|| INTERRUPTED.to_owned());
    } else if request.change {
        change::put_changes(&prover, &mut document, &cases, watch)?;
    }
    words::conclude(&mut document, request);
    Ok(Proof { document, cases })
}

/// What a proof goes by.
pub(crate) struct Prover<'a> {
    pub(crate) recorded: &'a Recorded,
    pub(crate) request: &'a Request<'a>,
}

impl Prover<'_> {
    /// The profile of which all is told.
    pub(crate) fn profile(&self) -> &DriveProfile {
        &self.request.profiles[0]
    }

    /// Whether nothing more shall be explored.
    pub(crate) fn is_over(&self) -> bool {
        self.request.stop.load(Ordering::Acquire)
    }

    /// Judges the states of a recording of the work, this one or another, until the budget is used up.
    pub(crate) fn explore(
        &self,
        recorded: &Recorded,
        profile: &DriveProfile,
        limits: Limits,
        step: &Step,
        watch: Watch<'_>,
    ) -> Result<Judged, JudgeError> {
        watch(step, None);
        let of = self.count(recorded, profile, limits);
        let deadline = self.request.budget.map(|budget| Instant::now() + budget);
        // What was checked is known by what was read of this recording alone.
        let is_kept = std::ptr::eq(recorded, self.recorded) && profile == self.profile();
        let results = self.request.results.filter(|_| is_kept);
        let halt = AtomicBool::new(false);
        let judge = Judge { results, limits, ..self.judge(recorded, profile, &halt) };
        let mut judged = judge.judge(&mut |progress| {
            if self.is_over() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                halt.store(true, Ordering::Release);
            }
            watch(step, Some(Done { progress, of }));
        })?;
        if self.is_over() {
            judged.incomplete_because = Some(INTERRUPTED.to_owned());
        } else if halt.into_inner() {
            judged.incomplete_because = None;
        }
        Ok(judged)
    }

    /// How many distinct states there are. That takes a fraction of the time of judging them.
    fn count(&self, recorded: &Recorded, profile: &DriveProfile, limits: Limits) -> u64 {
        let Recorded { recording, from, until, .. } = recorded;
        let (from, until, promise) = (*from, *until, profile.promise);
        let explorer = Explorer { recording, from, until, promise, limits, ..self.explorer() };
        let mut count = 0;
        explorer.explore(&mut |_| {
            count += 1;
            if self.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        count
    }

    /// The judge of a recording of the work; `stop` ends it.
    pub(crate) fn judge<'j>(
        &'j self,
        recorded: &'j Recorded,
        profile: &'j DriveProfile,
        stop: &'j AtomicBool,
    ) -> Judge<'j> {
        let Request { limits, seed, subject, file_system, workers, directory, timeout, mount_here, .. } =
            *self.request;
        Judge {
            recording: &recorded.recording,
            from: recorded.from,
            until: recorded.until,
            profile,
            limits,
            seed,
            subject,
            file_system,
            workers,
            directory,
            timeout,
            stop,
            mount_here,
            results: None,
        }
    }

    /// Puts down what fails, with its minimal case. A case that could not be made smaller, because it was interrupted, is
    /// put down as it was found.
    fn put_failures(
        &self,
        document: &mut ProofDocument,
        cases: &mut Vec<Case>,
        judged: &Judged,
        watch: Watch<'_>,
    ) -> Result<(), JudgeError> {
        for class in FailureClass::ALL {
            let Some(failing) = judged.failing.get(&class) else { continue };
            watch(&Step::Minimising(class), None);
            let (choice, words) = self.minimal(class, failing, judged)?;
            let minimal = minimal_case::minimal_case(self, &choice);
            let required = minimal_case::required_at(&self.recorded.recording, choice.event);
            document.failures.push(Failure {
                class,
                states: failing.count,
                words: words.clone(),
                required,
                minimal,
                seed: self.request.seed,
                replay: (self.request.replay)(class),
                change: None,
            });
            cases.push(Case { drive: self.profile().name.clone(), class, words, required, choice });
        }
        Ok(())
    }

    /// The fewest commands that have to be lost for a failure of this class, as early as that may be, and what the checker
    /// says then.
    fn minimal(
        &self,
        class: FailureClass,
        failing: &FailingStates,
        judged: &Judged,
    ) -> Result<(Choice, String), JudgeError> {
        let found = (failing.example.clone(), failing.words.clone());
        if self.is_over() {
            return Ok(found);
        }
        let judge = self.judge(self.recorded, self.profile(), self.request.stop);
        let (mut choice, mut words) = (judge.minimise(&failing.example, class)?.choice, found.1);
        let earlier =
            judged.windows.iter().map(|(window, _)| window.event).filter(|event| *event < choice.event);
        let submitted = minimal_case::submitted(&self.recorded.recording, &choice);
        let mut earlier: Vec<usize> = earlier.filter(|event| *event > submitted).collect();
        earlier.truncate(EARLIER_MAX);
        let moved = earlier.into_iter().map(|event| Choice { event, lost: choice.lost.clone() });
        for candidate in moved.chain([choice.clone()]).collect::<Vec<_>>() {
            match judge.outcome(&candidate)? {
                Outcome::Failed { class: found, words: said } if found == class => {
                    (choice, words) = (candidate, said);
                    break;
                }
                Outcome::Failed { .. } | Outcome::Intact => {}
            }
        }
        Ok((choice, words))
    }

    /// The explorer of the recording.
    pub(crate) fn explorer(&self) -> Explorer<'_> {
        Explorer {
            recording: &self.recorded.recording,
            from: self.recorded.from,
            until: self.recorded.until,
            promise: self.profile().promise,
            limits: self.request.limits,
            seed: self.request.seed,
        }
    }
}

/// Whether every window was explored whole, and none was left out.
pub(crate) fn is_exhaustive(judged: &Judged) -> bool {
    judged.incomplete_because.is_none()
        && judged.windows.iter().all(|(window, _)| window.coverage == Coverage::Exhaustive)
}

fn put_result(result: &mut ProfileResult, judged: &Judged) {
    result.explored = judged.counts.distinct;
    // Of nothing that was judged nothing is known.
    let is_judged = judged.counts.distinct > 0 || is_exhaustive(judged);
    result.failing = is_judged.then_some(judged.counts.failing);
    let because = || {
        judged
            .incomplete_because
            .clone()
            .unwrap_or_else(|| "the budget was used up before a state was judged".to_owned())
    };
    result.not_judged_because = (!is_judged).then(because);
    result.classes =
        FailureClass::ALL.into_iter().filter(|class| judged.failing.contains_key(class)).collect();
    result.exhaustive = is_exhaustive(judged);
}

fn put_states(document: &mut ProofDocument, recorded: &Recorded, judged: &Judged) {
    let time = |event| minimal_case::time_of(&recorded.recording, event);
    document.states = judged.counts;
    let mut from = time(recorded.from);
    for (window, failing) in &judged.windows {
        let until = time(window.event);
        document.windows.push(WindowResult {
            from,
            until,
            required: window.required,
            at_risk: window.commands as u64,
            states: window.states,
            failing: *failing,
            coverage: window.coverage,
        });
        from = until;
        let counts = &mut document.coverage;
        counts.windows += 1;
        match window.coverage {
            Coverage::Exhaustive => counts.exhaustive += 1,
            Coverage::Bounded => counts.bounded += 1,
            Coverage::Sampled => counts.sampled += 1,
        }
    }
}

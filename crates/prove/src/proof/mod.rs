//! A recording judged, and what was found put into one document.
//!
//! ```text
//!   Recorded ─► Judge, once for each drive profile ─► minimal case of each class ─► change ─► ProofDocument
//! ```
//! *Proved* is said of one recording, one drive profile and one checker, and only if nothing could have hidden a failing
//! state: [`words`] lists what may.

mod kept;
mod minimal_case;
mod prover;
mod words;

pub use kept::{Kept, SubjectWords};
pub(crate) use prover::is_exhaustive;

use std::time::{Duration, Instant};

use plumb_report::document::proof::{CoverageCounts, FailureClass, ProfileResult, StateCounts, WindowResult};
use plumb_report::document::{Environment, ProofDocument};

use crate::change;
use crate::error::Result;
use crate::judge::{Judge, Judged};
use crate::profile::DriveProfile;
use crate::session::{RecordOptions, Recorded};
use crate::subject::Program;

/// Why a proof is not complete that was stopped.
const INTERRUPTED: &str = "interrupted";
/// Why one is not that has not come to its end yet.
const UNFINISHED: &str = "it had not ended when this was written: plumb was killed, or is still running";
/// How often what was found until now is handed out while states are explored.
const KEEP_EVERY: Duration = Duration::from_secs(5);

/// What to prove of a recording, and how far to go.
pub struct Request<'a> {
    /// How states are judged, under the first of the profiles.
    pub judge: Judge<'a>,
    /// The drive profiles, at least one. All is told of the first; of the others whether they fail.
    pub profiles: &'a [DriveProfile],
    /// The part of the work to which the cuts are confined, in words; `None`: all of it.
    pub target: Option<String>,
    /// How long each exploration may take: what finds most for what it costs comes first, and what was not reached is told by
    /// the coverage.
    pub budget: Option<Duration>,
    /// How the work is recorded again with a sync call that it lacks; `None` if it is not to be run again.
    pub again: Option<&'a Again>,
    /// Whether to look for changes that remove what fails.
    pub change: bool,
    /// Where and how it is made, for the document.
    pub environment: Environment,
    /// Where it is kept, for the document.
    pub run_directory: Option<String>,
    /// Is given what was found until now, now and then.
    pub keep: &'a dyn Fn(&ProofDocument),
}

/// How the work is recorded again.
#[derive(Debug, Clone)]
pub struct Again {
    /// As it was.
    pub options: RecordOptions,
    /// What does it in a process of its own, which can be traced. It acknowledges through the control file.
    pub program: Program,
}

/// How far exploring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Until now.
    pub progress: StateCounts,
    /// How many distinct states there are to judge.
    pub of: u64,
    /// Since it began.
    pub elapsed: Duration,
    /// How long it still takes: at the pace until now, and no longer than it may. `None` if nothing was judged yet.
    pub left: Option<Duration>,
}

/// Whoever is told what is being done, in words, and how far that is if it is known.
pub type Watch<'w> = &'w mut dyn FnMut(&str, Option<Done>);

/// Proves what can be proved.
///
/// # Errors
/// If states could not be judged at all. A stop is no error: what was found until then is kept.
pub fn prove(request: &Request<'_>, watch: Watch<'_>) -> Result<ProofDocument> {
    let recorded = request.judge.recorded;
    let mut document = words::begun(request);
    for (place, profile) in request.profiles.iter().enumerate() {
        let mut result = ProfileResult { name: profile.name.clone(), ..ProfileResult::default() };
        let hidden = words::not_judged_because(profile, &recorded.facts);
        result.not_judged_because = hidden.or_else(|| request.is_over().then(|| INTERRUPTED.to_owned()));
        if result.not_judged_because.is_none() {
            let judged = explored(request, &document, &result, watch)?;
            put_result(&mut result, &judged);
            document.incomplete_because = document.incomplete_because.or(result.not_judged_because.clone());
            if place == 0 {
                put_states(&mut document, recorded, &judged);
                request.put_failures(&mut document, &judged, watch)?;
            }
            document.incomplete_because = document.incomplete_because.or(judged.incomplete_because);
        }
        document.profiles.push(result);
        keep(request, document.clone());
    }
    let changed = match request.change && !request.is_over() {
        true => change::put_changes(request, &mut document, watch),
        false => Ok(()),
    };
    if request.is_over() {
        document.incomplete_because.get_or_insert_with(|| INTERRUPTED.to_owned());
    } else {
        changed?;
    }
    words::conclude(&mut document, request);
    Ok(document)
}

/// What is judged under the profile of `result`. What is found meanwhile is handed out with the rest of the document.
fn explored(
    request: &Request<'_>,
    document: &ProofDocument,
    result: &ProfileResult,
    watch: Watch<'_>,
) -> Result<Judged> {
    let Request { profiles, judge, .. } = request;
    let profile = &profiles[document.profiles.len()];
    let mut kept = Instant::now();
    let doing = format!("exploring what a {} drive may leave", profile.name);
    request.explore(judge.recorded, profile, judge.limits, &doing, &mut |doing, done| {
        watch(doing, done);
        let Some(Done { progress, .. }) = done.filter(|_| kept.elapsed() >= KEEP_EVERY) else { return };
        kept = Instant::now();
        let mut so_far = document.clone();
        let StateCounts { distinct, failing, .. } = progress;
        if so_far.profiles.is_empty() {
            so_far.states = StateCounts { explored: distinct, ..progress };
        }
        so_far.profiles.push(ProfileResult { explored: distinct, failing: Some(failing), ..result.clone() });
        keep(request, so_far);
    })
}

/// Hands out what was found until now.
fn keep(request: &Request<'_>, mut so_far: ProofDocument) {
    so_far.incomplete_because.get_or_insert_with(|| UNFINISHED.to_owned());
    words::conclude(&mut so_far, request);
    (request.keep)(&so_far);
}

fn put_result(result: &mut ProfileResult, judged: &Judged) {
    result.explored = judged.counts.distinct;
    result.classes =
        FailureClass::ALL.into_iter().filter(|class| judged.failing.contains_key(class)).collect();
    result.exhaustive = is_exhaustive(judged);
    // Of nothing that was judged nothing is known.
    if judged.counts.distinct > 0 || result.exhaustive {
        result.failing = Some(judged.counts.failing);
    } else {
        let budget = || "the budget was used up before a state was judged".to_owned();
        result.not_judged_because = Some(judged.incomplete_because.clone().unwrap_or_else(budget));
    }
}

fn put_states(document: &mut ProofDocument, recorded: &Recorded, judged: &Judged) {
    let time = |event| minimal_case::time_of(&recorded.recording, event);
    document.states = judged.counts;
    document.notes.extend(judged.notes.iter().cloned());
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
    }
    document.coverage = CoverageCounts::of(&document.windows);
}

//! The proof: each profile judged, failures reduced, and changes sought.

use std::cell::Cell;

use plumb_block::Nanos;
use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{CoverageCounts, FailureClass, ProfileResult, StateCounts, WindowResult};

use super::minimal_case::time_of;
use super::request::{ExploreProgress, INTERRUPTED, Request};
use super::words::{conclude, initial_document, not_judged_because};
use crate::change::{put_changes, put_needless};
use crate::error::Result;
use crate::explore::Limits;
use crate::judge::JudgeResult;
use crate::session::RecordedWork;

/// Reason why an interim document is not complete.
const UNFINISHED: &str = "it had not ended when this was written: plumb was killed, or is still running";
/// Interval of interim documents during the exploration.
const KEEP_EVERY: Nanos = Nanos::secs(5);

/// Judges the recording under each profile, and searches for changes that remove the failures.
///
/// # Errors
/// If states could not be judged at all. A stop is not an error: the document then holds the results so far.
pub fn prove(request: &Request<'_>) -> Result<ProofDocument> {
    let (recorded, began) = (request.judge.recorded, request.judge.clock.now());
    let mut document = initial_document(request);
    let mut wrote = Vec::new();
    for (place, profile) in request.profiles.iter().enumerate() {
        let mut result = ProfileResult { name: profile.name.clone(), ..ProfileResult::default() };
        let hidden = not_judged_because(profile, &recorded.facts);
        result.not_judged_because = hidden.or_else(|| request.is_over().then(|| INTERRUPTED.to_owned()));
        if result.not_judged_because.is_none() {
            let judged = explore_profile(request, &document, &result)?;
            put_result(&mut result, &judged, request.judge.limits);
            document.incomplete_because = document.incomplete_because.or(result.not_judged_because.clone());
            if place == 0 {
                put_states(&mut document, recorded, &judged);
                request.put_failures(&mut document, &judged)?;
                wrote.clone_from(&judged.wrote);
            }
            document.incomplete_because = document.incomplete_because.or(judged.incomplete_because);
        }
        document.profiles.push(result);
        keep(request, document.clone());
    }
    let fails = document.profiles.iter().any(|profile| profile.failing > Some(0));
    let is_whole = document.incomplete_because.is_none();
    let found = match !fails && is_whole && !request.is_over() {
        true => request.put_recordings(&mut document),
        false => Ok(false),
    };
    let found = match found {
        Err(_) if request.is_over() => true,
        found => found?,
    };
    let changed = match request.change && !found && !request.is_over() {
        true => put_changes(request, &mut document),
        false => Ok(()),
    };
    if !fails && !found && is_whole && !request.is_over() {
        request.put_recovery(&mut document, &wrote)?;
        if request.needless_syncs && document.failures.is_empty() {
            put_needless(request, &mut document)?;
        }
    }
    if request.is_over() {
        document.incomplete_because.get_or_insert_with(|| INTERRUPTED.to_owned());
    } else {
        changed?;
    }
    document.seconds = recorded.facts.seconds + request.judge.clock.now().since(began).as_secs_f64();
    conclude(&mut document, request);
    Ok(document)
}

/// Judges the states under the profile of `result`. Interim documents go to the [kept
/// run](super::ProofRun::keep).
fn explore_profile(
    request: &Request<'_>,
    document: &ProofDocument,
    result: &ProfileResult,
) -> Result<JudgeResult> {
    let Request { profiles, judge, .. } = request;
    let profile = &profiles[document.profiles.len()];
    let kept = Cell::new(judge.clock.now());
    let doing = match judge.file_system.is_posix() {
        true => "exploring what a file system may leave".to_owned(),
        false => format!("exploring what a {} drive may leave", profile.name),
    };
    let watch = |doing: &str, done: Option<ExploreProgress>| {
        (request.watch)(doing, done);
        let now = judge.clock.now();
        let Some(ExploreProgress { progress, .. }) = done.filter(|_| now.since(kept.get()) >= KEEP_EVERY)
        else {
            return;
        };
        kept.set(now);
        let mut interim = document.clone();
        let StateCounts { distinct, failing, .. } = progress;
        if interim.profiles.is_empty() {
            interim.states = StateCounts { explored: distinct, ..progress };
        }
        interim.profiles.push(ProfileResult { explored: distinct, failing: Some(failing), ..result.clone() });
        keep(request, interim);
    };
    let request = Request { watch: &watch, ..request.clone() };
    request.explore(judge.recorded, profile, judge.limits, &doing)
}

/// Passes an interim document to the run.
pub(super) fn keep(request: &Request<'_>, mut interim: ProofDocument) {
    interim.incomplete_because.get_or_insert_with(|| UNFINISHED.to_owned());
    conclude(&mut interim, request);
    request.run.keep(&interim);
}

/// Sets the result of a profile.
pub(super) fn put_result(result: &mut ProfileResult, judged: &JudgeResult, limits: Limits) {
    result.explored = judged.counts.distinct;
    result.classes =
        FailureClass::ALL.into_iter().filter(|class| judged.failing.contains_key(class)).collect();
    result.exhaustive = judged.is_exhaustive();
    result.not_exhaustive_because = judged.not_exhaustive_because(limits);
    // Without a judged state nothing is known.
    if judged.counts.distinct > 0 || result.exhaustive {
        result.failing = Some(judged.counts.failing);
    } else {
        let budget = || "the budget was used up before a state was judged".to_owned();
        result.not_judged_because = Some(judged.incomplete_because.clone().unwrap_or_else(budget));
    }
}

fn put_states(document: &mut ProofDocument, recorded: &RecordedWork, judged: &JudgeResult) {
    document.states = judged.counts;
    document.notes.extend(judged.notes.iter().cloned());
    document.windows = windows_of(recorded, judged);
    document.coverage = CoverageCounts::from_windows(&document.windows);
}

/// Returns the result of each window, in order.
pub(super) fn windows_of(recorded: &RecordedWork, judged: &JudgeResult) -> Vec<WindowResult> {
    let time = |event| time_of(&recorded.recording, event);
    let mut windows = Vec::new();
    let mut from = time(recorded.from);
    for (window, failing) in &judged.windows {
        let until = time(window.event);
        windows.push(WindowResult {
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
    windows
}

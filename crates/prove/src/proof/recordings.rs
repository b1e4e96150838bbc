//! Further recordings of the work, in which plumb chooses what the file system writes back and when, within
//! what the kernel may do.
//!
//! One recording shows one order of writeback; the first has the kernel's own. Then follow recordings in
//! which each change is written back at once, recordings in which nothing is written back before one of the
//! sync calls and each change at once after it, and random mixtures from the seed. The budget ends them, or
//! the first recording with a failing state.

use plumb_block::{Nanos, in_one_line};
use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{CoverageCounts, ProfileResult, RecordingResult, StateCounts, Writeback};

use super::plans::plans;
use super::prover::{keep, put_result, windows_of};
use super::request::{Again, ExploreProgress, Request};
use crate::change::put_changes;
use crate::error::Result;
use crate::explore::Limits;
use crate::judge::{Judge, JudgeResult};
use crate::session::{RecordedWork, Trace, record_traced};

/// Default number of mixtures.
const MIXTURES: u64 = 8;
/// Maximum number of visits in a window of a further recording, so that one window does not take the time of
/// all.
const VISITS_MAX: u64 = 1 << 13;
/// Time limit of all further recordings together, as a multiple of the budget of one exploration.
const BUDGETS: u64 = 3;

impl Request<'_> {
    /// Records the work again with chosen writeback, and adds the results to the document, until the budget
    /// is used up or a state fails. Returns true if a state fails: it is in the document with its change.
    pub(super) fn put_recordings(&self, document: &mut ProofDocument) -> Result<bool> {
        let Some(again) = self.again else { return Ok(false) };
        let Judge { recorded, file_system, seed, clock, .. } = self.judge;
        if !file_system.is_mounted() || recorded.untraced_because.is_some() {
            return Ok(false);
        }
        let (plans, systematic) = plans(file_system, &recorded.syncs, seed);
        let total = self.further.unwrap_or(systematic + MIXTURES);
        document.recordings_left = if total == 0 { 0 } else { systematic };
        let (began, until) = (clock.now(), self.until(self.budget.saturating_mul(BUDGETS)));
        for (number, writeback) in (1..=total).zip(plans) {
            let elapsed = clock.now().since(began);
            if self.is_over_at(until) {
                break;
            }
            let known = self.run.earlier.iter().find(|one| one.writeback == writeback);
            if let Some(known) = known.filter(|known| known.profiles.iter().all(|one| one.failing == Some(0)))
            {
                add(document, known.clone());
                continue;
            }
            let states = self.judge.limits.states.saturating_sub(document.states.distinct);
            if states == 0 {
                break;
            }
            let doing = format!("recording {number} of {total}, {writeback}");
            self.begin(&doing);
            let again = Again { writeback: Some(writeback), ..again.clone() };
            let recorded = match self.recorded_with(number, &again) {
                Ok(recorded) => recorded,
                Err(_) if self.is_over() => break,
                Err(error) => {
                    document.notes.push(format!("{doing}: {}", in_one_line(&error)));
                    break;
                }
            };
            let visits = self.judge.limits.visits.min(VISITS_MAX);
            let limits = Limits { states, visits, ..self.judge.limits };
            let rest = until.since(clock.now());
            // The pace of whole recordings gives a better estimate than that of the states of one.
            let each = elapsed.0.checked_div(number - 1).map(Nanos);
            let left = each.map(|each| each.saturating_mul(total + 1 - number).min(rest));
            let watch = |doing: &str, done: Option<ExploreProgress>| {
                let elapsed = clock.now().since(began);
                let of_all =
                    |done: ExploreProgress| ExploreProgress { elapsed, left: left.or(done.left), ..done };
                (self.watch)(doing, done.map(of_all));
            };
            let one = Request {
                judge: Judge { recorded: &recorded, limits, results: None, ..self.judge },
                budget: rest,
                again: Some(&again),
                recovery_depth: 1,
                needless_syncs: false,
                watch: &watch,
                ..self.clone()
            };
            if one.put_recording(document, result_of(number, writeback), &doing)? {
                return Ok(true);
            }
            keep(self, document.clone());
        }
        Ok(false)
    }

    /// Returns the stored recording with this number, or records the work.
    fn recorded_with(&self, number: u64, again: &Again) -> Result<RecordedWork> {
        if let Some(kept) = self.run.kept_further(number) {
            return Ok(kept);
        }
        let trace = Trace { writeback: again.writeback, ..Trace::new(&again.program) };
        record_traced(&**self.judge.subject, trace, &again.options, self.judge.stop)
            .map(|(recorded, _)| recorded)
    }

    /// Judges this recording under each profile, and adds `result` to the document. Returns true if a state
    /// fails.
    fn put_recording(
        &self,
        document: &mut ProofDocument,
        mut result: RecordingResult,
        doing: &str,
    ) -> Result<bool> {
        let (number, until) = (result.number, self.until(self.budget));
        let mut first: Option<JudgeResult> = None;
        for (profile, known) in self.profiles.iter().zip(&document.profiles) {
            let mut one = ProfileResult { name: profile.name.clone(), ..ProfileResult::default() };
            one.not_judged_because = known.not_judged_because.clone();
            if one.not_judged_because.is_none() {
                let judged = self.explore(self.judge.recorded, profile, self.judge.limits, doing)?;
                put_result(&mut one, &judged, self.judge.limits);
                if let Some(why) = &judged.incomplete_because {
                    document.incomplete_because.get_or_insert_with(|| why.clone());
                }
                if result.profiles.is_empty() {
                    result.states = judged.counts;
                    result.coverage = CoverageCounts::from_windows(&windows_of(self.judge.recorded, &judged));
                    first = Some(judged);
                }
            }
            result.profiles.push(one);
        }
        // A recording whose exploration was ended by the budget does not count.
        let is_cut_short = self.judge.clock.now() >= until;
        let fails = result.profiles.iter().any(|profile| profile.failing > Some(0));
        if is_cut_short && !fails {
            return Ok(false);
        }
        add(document, result);
        if let Some(judged) = first.filter(|_| fails) {
            self.run.keep_further(number, self.judge.recorded);
            self.put_failures(document, &judged)?;
            document.failures.iter_mut().for_each(|failure| failure.recording = number);
            if self.change && !self.is_over() && !document.failures.is_empty() {
                put_changes(self, document)?;
            }
        }
        Ok(fails)
    }
}

/// Returns the result of a recording before its states are judged.
fn result_of(number: u64, writeback: Writeback) -> RecordingResult {
    RecordingResult {
        number,
        writeback,
        states: StateCounts::default(),
        coverage: CoverageCounts::default(),
        profiles: Vec::new(),
    }
}

fn add(document: &mut ProofDocument, result: RecordingResult) {
    document.recordings_left = document.recordings_left.saturating_sub(1);
    for (all, one) in document.profiles.iter_mut().zip(&result.profiles) {
        all.explored += one.explored;
        all.failing = all.failing.zip(one.failing).map(|(all, one)| all + one);
        all.exhaustive &= one.exhaustive;
        if all.not_exhaustive_because.is_none() {
            all.not_exhaustive_because.clone_from(&one.not_exhaustive_because);
        }
        all.classes.extend(
            one.classes.iter().filter(|class| !all.classes.contains(class)).copied().collect::<Vec<_>>(),
        );
        if all.not_judged_because.is_none() {
            all.not_judged_because.clone_from(&one.not_judged_because);
        }
    }
    let (all, one) = (&mut document.states, result.states);
    all.explored += one.explored;
    all.distinct += one.distinct;
    all.checked += one.checked;
    all.failing += one.failing;
    let (all, one) = (&mut document.coverage, result.coverage);
    all.windows += one.windows;
    all.exhaustive += one.exhaustive;
    all.bounded += one.bounded;
    all.sampled += one.sampled;
    document.recordings.push(result);
}

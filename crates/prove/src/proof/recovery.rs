//! Second power cuts, during the recovery from a first one: the check of a state is recorded, cut at every
//! moment, and repeated on the states that the cut may leave.
//!
//! A state is cut again if its check was intact and wrote to the drive. A check that fails after an earlier
//! check without a cut cannot be repeated at all, so it tells nothing about cuts.

use std::collections::{BTreeMap, HashMap};

use plumb_block::{Nanos, in_one_line};
use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{Failure, FailureClass, RecoveryResult};

use super::request::{ExploreProgress, Request};
use crate::error::Result;
use crate::explore::Choice;
use crate::judge::{Judge, JudgeResult};
use crate::session::RecordedWork;

/// Number of the first recording of a check, far above those of the work.
const FIRST_NUMBER: u64 = 1_000_000;

/// Default number of states checked in parallel: a check leads to few states, so attaching more drives takes
/// longer than it saves.
const WORKERS: usize = 2;

/// Divisor of a budget that gives the time for all checks together.
const BUDGET_PART: u64 = 4;

/// Search for a second cut that damages the state after a first one.
struct Search<'r, 'a> {
    request: &'r Request<'a>,
    until: Nanos,
    result: RecoveryResult,
    failure: Option<Failure>,
    /// Reason why checks cannot be cut.
    because: Option<String>,
}

impl Request<'_> {
    /// Cuts the power during the checks of states that wrote, and adds the result to the document. Ends with
    /// the first failure, or when its part of the budget is used up.
    pub(super) fn put_recovery(&self, document: &mut ProofDocument, wrote: &[Choice]) -> Result<()> {
        let Judge { file_system, profile, subject, .. } = self.judge;
        let can_be_cut =
            file_system.is_mounted() && profile.cache.is_none() && !subject.is_checked_unmounted();
        if self.recovery_depth < 2 || !can_be_cut {
            return Ok(());
        }
        let mut search = Search {
            request: self,
            until: self.until(Nanos(self.budget.0 / BUDGET_PART)),
            result: RecoveryResult { depth: self.recovery_depth, ..RecoveryResult::default() },
            failure: None,
            because: None,
        };
        search.cut(self.judge.recorded, &spread(wrote), 2)?;
        if let Some(because) = search.because {
            document.notes.push(format!("the power was not cut during all checks: {because}"));
        }
        document.recovery = Some(search.result);
        document.failures.extend(search.failure);
        Ok(())
    }
}

impl Search<'_, '_> {
    /// Returns true if no further check is cut.
    fn is_over(&self) -> bool {
        self.request.is_over_at(self.until) || self.failure.is_some() || self.because.is_some()
    }

    /// Cuts the power during the checks of these states of a recording; `depth` is the number of the cut.
    fn cut(&mut self, of: &RecordedWork, choices: &[Choice], depth: u32) -> Result<()> {
        for (number, choice) in choices.iter().enumerate() {
            if self.is_over() {
                self.result.states_left += (choices.len() - number) as u64;
                return Ok(());
            }
            let doing = format!("cutting the power during check {} of {}", number + 1, choices.len());
            self.request.begin(&doing);
            let judge = Judge { recorded: of, results: None, ..self.request.judge };
            let state = judge.explorer().show(choice, &mut |state| state.to_owned());
            let Some(state) = state else { continue };
            match judge.recorded_check(state) {
                Ok(Some(check)) => self.explore(&check, depth, &doing)?,
                Ok(None) => {}
                Err(error) => self.because = Some(in_one_line(&error)),
            }
        }
        Ok(())
    }

    /// Explores the states that a cut during a check may leave.
    fn explore(&mut self, check: &RecordedWork, depth: u32, doing: &str) -> Result<()> {
        let outer = self.request.judge;
        let began = outer.clock.now();
        let workers = if outer.workers == 0 { WORKERS } else { outer.workers };
        let judge = Judge { recorded: check, results: None, workers, until: self.until, ..outer };
        let mut judged = judge.judge(&mut |progress| {
            let (of, elapsed) = (progress.distinct, outer.clock.now().since(began));
            (self.request.watch)(doing, Some(ExploreProgress { progress, of, elapsed, left: None }));
        })?;
        let is_cut_short = judged.out_of_time || self.request.is_over();
        self.result.states += u64::from(!is_cut_short);
        self.result.states_left += u64::from(is_cut_short);
        self.result.explored += judged.counts.distinct;
        if let Some(because) = judged.incomplete_because.take().filter(|_| !is_cut_short) {
            self.because = Some(because);
            return Ok(());
        }
        if judged.counts.failing == 0 {
            let wrote = std::mem::take(&mut judged.wrote);
            return if depth < self.request.recovery_depth {
                self.cut(check, &wrote, depth + 1)
            } else {
                Ok(())
            };
        }
        let last = judged.windows.last().map_or(check.until, |(window, _)| window.event);
        let judge = Judge { recorded: check, results: None, ..self.request.judge };
        let repeated = judge.outcome(&Choice { event: last, lost: BTreeMap::new() })?;
        if repeated.class().is_some() {
            let what = "the checker finds something wrong in what it has left itself, without a cut";
            self.because = Some(what.to_owned());
            return Ok(());
        }
        self.result.failing += judged.counts.failing;
        self.failure = self.failure(check, &judged)?;
        Ok(())
    }

    /// Returns the failure that a cut during this check causes, with its minimal case, and stores the
    /// recording of the check.
    fn failure(&self, check: &RecordedWork, judged: &JudgeResult) -> Result<Option<Failure>> {
        let outer = self.request;
        let request = Request {
            judge: Judge { recorded: check, results: None, ..outer.judge },
            target: None,
            budget: self.until.since(outer.judge.clock.now()).max(Nanos::secs(1)),
            again: None,
            further: None,
            recovery_depth: 1,
            needless_syncs: false,
            change: false,
            ..outer.clone()
        };
        let mut found = ProofDocument::default();
        request.put_failures(&mut found, judged)?;
        let Some(mut failure) = found.failures.into_iter().next() else { return Ok(None) };
        outer.run.keep_further(FIRST_NUMBER, check);
        let class = FailureClass::RecoveryNotIdempotent;
        failure.words = format!(
            "after a second cut during the {}, which had found the first state intact: {} ({})",
            if outer.judge.subject.has_recovery() { "recovery before the check" } else { "check" },
            failure.words,
            failure.class.name()
        );
        failure.replay = failure.replay.replace(failure.class.name(), class.name());
        failure.states = judged.failing.values().map(|failing| failing.count).sum();
        failure.recording = FIRST_NUMBER;
        failure.class = class;
        Ok(Some(failure))
    }
}

/// Returns the choices in an order that separates those of one window.
fn spread(choices: &[Choice]) -> Vec<Choice> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    let mut ranked: Vec<(usize, &Choice)> = Vec::new();
    for choice in choices {
        let count = counts.entry(choice.event).or_default();
        ranked.push((*count, choice));
        *count += 1;
    }
    ranked.sort_by_key(|(rank, choice)| (*rank, choice.event));
    ranked.into_iter().map(|(_, choice)| choice.clone()).collect()
}

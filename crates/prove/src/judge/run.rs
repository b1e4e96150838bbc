//! Judging of all states: the result of each state comes from a worker or from earlier checks, and is
//! counted.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use plumb_report::document::proof::{FailureClass, StateCounts};

use super::judged::{FailingStates, JudgeResult};
use super::parameters::Judge;
use super::results::{CheckResult, Key, Results, key};
use super::workers::{STOPPED, Ticket, Workers};
use crate::error::Result;
use crate::explore::{Choice, Coverage, OwnedState, State};
use crate::observed::ObservedResults;
use crate::subject::Outcome;

/// Number of checks submitted before the reads of the first of them become known. It is larger than the
/// number of workers and independent of it, so the number of workers does not affect the result.
const AHEAD: usize = 8;
/// Maximum number of listed states whose checks wrote.
const WROTE_MAX: usize = 4096;
/// Number of results known from earlier checks after which progress is reported.
const TOLD_EVERY: u64 = 4096;

const NOT_DETERMINISTIC: &str = "the checker gave different results for states in which it read the same \
                                 data, so every state was checked; it depends on something other than the \
                                 drive, such as the time";

/// Outcome that is compared by its class: the words may contain a time.
struct Verdict(Outcome);

impl PartialEq for Verdict {
    fn eq(&self, other: &Self) -> bool {
        self.0.class() == other.0.class()
    }
}

/// State that is being checked.
struct Pending {
    key: Key,
    event: usize,
    choice: Choice,
    /// State itself: a choice does not determine the order in which requests in flight together landed.
    state: OwnedState,
    /// Class that the result should have according to the reads of earlier checks.
    expected: Option<Option<FailureClass>>,
    /// Result, if it is known from an earlier run.
    known: std::result::Result<CheckResult, Ticket>,
}

/// Reason why judging ends early.
enum EarlyEnd {
    NotDeterministic,
    OutOfTime,
    Because(String),
}

/// Number of times that a state is checked again if its check gave another result than an earlier check with
/// the same reads.
const AGAIN: usize = 8;

/// Judging in progress.
struct Run<'r, 'a> {
    judge: &'r Judge<'a>,
    progress: &'r mut dyn FnMut(StateCounts),
    workers: &'r Workers,
    results: &'r mut Results,
    /// Results by reads; `None` to check each state.
    observed: Option<ObservedResults<Verdict>>,
    pending: VecDeque<Pending>,
    /// Number of states that needed no check of their own.
    hits: u64,
    /// Number of states shown again.
    again: u64,
    counted: StateCounts,
    failing: BTreeMap<FailureClass, FailingStates>,
    /// Intact states whose checks wrote.
    wrote: Vec<Choice>,
    /// Number of failing states by the event of their window.
    failing_in: BTreeMap<usize, u64>,
    /// Windows of states that were seen but not judged.
    left: Vec<usize>,
    ended: Option<EarlyEnd>,
}

/// Returns the outcome as one word.
fn name(outcome: &Outcome) -> &'static str {
    outcome.class().map_or("intact", FailureClass::name)
}

impl Judge<'_> {
    /// Judges all states, and calls `progress` regularly.
    ///
    /// # Errors
    /// If judging could not begin. [`JudgeResult::incomplete_because`] describes a later end.
    pub fn judge(&self, progress: &mut dyn FnMut(StateCounts)) -> Result<JudgeResult> {
        self.may_mount()?;
        let mut results = Results::open(self)?;
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let count = if self.workers == 0 { 2 * processors() } else { self.workers };
        let workers = Workers::start(self, count.clamp(1, AHEAD))?;
        let mut explore = |observed| {
            let mut run = Run {
                judge: self,
                progress: &mut *progress,
                workers: &workers,
                results: &mut results,
                observed,
                pending: VecDeque::new(),
                hits: 0,
                again: 0,
                counted: StateCounts::default(),
                failing: BTreeMap::new(),
                wrote: Vec::new(),
                failing_in: BTreeMap::new(),
                left: Vec::new(),
                ended: None,
            };
            (run.explore(), run.ended)
        };
        let (mut judged, mut ended) = explore(Some(ObservedResults::default()));
        if matches!(ended, Some(EarlyEnd::NotDeterministic)) {
            (judged, ended) = explore(None);
            judged.notes.push(NOT_DETERMINISTIC.to_owned());
        }
        match ended {
            Some(EarlyEnd::Because(why)) => judged.incomplete_because = Some(why),
            Some(EarlyEnd::OutOfTime) => judged.out_of_time = true,
            Some(EarlyEnd::NotDeterministic) | None => {}
        }
        if let Err(error) = workers.end() {
            judged.notes.push(error.to_string());
        }
        Ok(judged)
    }
}

impl Run<'_, '_> {
    fn explore(&mut self) -> JudgeResult {
        let explorer = self.judge.explorer();
        let mut windows = explorer.explore(&mut |state| self.see(state));
        self.settle_all();
        self.left.extend(self.pending.drain(..).map(|pending| pending.event));
        for event in &self.left {
            if let Some(window) = windows.iter_mut().find(|window| window.event == *event) {
                window.states -= 1;
                window.coverage = Coverage::Sampled;
            }
        }
        self.counted.explored = windows.iter().map(|window| window.enumerated).sum();
        let failing_in = |event: usize| self.failing_in.get(&event).copied().unwrap_or_default();
        JudgeResult {
            counts: self.counted,
            windows: windows.into_iter().map(|window| (window, failing_in(window.event))).collect(),
            failing: std::mem::take(&mut self.failing),
            wrote: std::mem::take(&mut self.wrote),
            incomplete_because: None,
            out_of_time: false,
            notes: Vec::new(),
        }
    }

    fn see(&mut self, state: &State<'_>) -> ControlFlow<()> {
        if self.judge.stop.load(Ordering::Relaxed) {
            self.ended = Some(EarlyEnd::Because(STOPPED.to_owned()));
        }
        if self.pending.len() == AHEAD {
            // Results settle before the lookup of this state, so they do not depend on whether it is looked
            // up.
            self.settle();
        }
        if self.ended.is_some() {
            self.left.push(state.event());
            return ControlFlow::Break(());
        }
        let known = self.known(state);
        if !state.is_new() {
            if known.is_none() {
                self.tell_reads(state, &state.to_owned());
            }
            self.again += 1;
            if self.again.is_multiple_of(TOLD_EVERY) {
                self.tell();
            }
            return ControlFlow::Continue(());
        }
        self.hits += u64::from(known.is_some());
        match known {
            // Some states with a known result are checked as well, to detect a checker that depends on
            // something else.
            Some(outcome) if !self.hits.is_power_of_two() => {
                self.count(state.event(), &outcome, || state.choice());
                if self.hits.is_multiple_of(TOLD_EVERY) {
                    self.tell();
                }
            }
            known => {
                let key = key(state);
                let expected = known.map(|outcome| outcome.class());
                let known = self.results.get(&key).cloned();
                let (event, choice, owned) = (state.event(), state.choice(), state.to_owned());
                let known = known.ok_or_else(|| self.workers.submit(owned.clone()));
                self.pending.push_back(Pending { key, event, choice, state: owned.clone(), expected, known });
                if state.wants_reads() {
                    self.tell_reads(state, &owned);
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the result of a state if it is known from the reads of other checks, and reports these reads
    /// to the state if it needs them.
    fn known(&self, state: &State<'_>) -> Option<Outcome> {
        let (mut read, wants_reads) = (Vec::new(), state.wants_reads());
        let content = |lba: u64| {
            read.extend(wants_reads.then_some(lba));
            state.content(lba)
        };
        let known = self.observed.as_ref()?.result(state.required(), content)?.0.clone();
        if wants_reads {
            state.set_reads(&read);
        }
        Some(known)
    }

    /// Reports the reads of the check to the state. If they follow from the state alone, the workers continue
    /// meanwhile.
    fn tell_reads(&mut self, state: &State<'_>, owned: &OwnedState) {
        match self.workers.reads(owned) {
            Some(reads) => state.set_reads(&reads),
            None => {
                self.settle_all();
                self.known(state);
            }
        }
    }

    /// Waits for all submitted checks.
    fn settle_all(&mut self) {
        while self.ended.is_none() && !self.pending.is_empty() {
            self.settle();
        }
    }

    /// Waits for the oldest submitted check.
    fn settle(&mut self) {
        let Some(Pending { key, event, choice, state, expected, known }) = self.pending.pop_front() else {
            return;
        };
        let is_fresh = known.is_err();
        let checked = known.or_else(|ticket| self.workers.wait_for(&ticket, self.judge.stop));
        let checked = checked.and_then(|checked| self.results.add(key, &checked).map(|()| checked));
        let CheckResult { outcome, read, wrote } = match checked {
            Ok(checked) => checked,
            Err(why) => {
                self.ended = Some(EarlyEnd::Because(why));
                self.left.push(event);
                return;
            }
        };
        let required = key.1;
        let is_as_expected = expected.is_none_or(|class| class == outcome.class());
        let learnt = match &mut self.observed {
            Some(observed) => observed.learn(required, &read, Verdict(outcome.clone())).is_ok(),
            None => true,
        };
        if !(learnt && is_as_expected) {
            let differs = self.differs(&state, AGAIN, &outcome);
            self.ended = Some(differs.map_or(EarlyEnd::NotDeterministic, EarlyEnd::Because));
        } else if self.counted.checked == 0 && is_fresh {
            self.ended = self.differs(&state, 1, &outcome).map(EarlyEnd::Because);
        }
        if wrote && outcome == Outcome::Intact && self.wrote.len() < WROTE_MAX {
            self.wrote.push(choice.clone());
        }
        self.counted.checked += 1;
        self.count(event, &outcome, || choice);
        self.tell();
    }

    /// Reports progress, and checks the time limit.
    fn tell(&mut self) {
        (self.progress)(self.counted);
        if self.ended.is_none() && self.judge.is_late() {
            self.ended = Some(EarlyEnd::OutOfTime);
        }
    }

    /// Checks a state again `times` times. Returns the sentence about a checker whose result differs from the
    /// first.
    fn differs(&self, state: &OwnedState, times: usize, first: &Outcome) -> Option<String> {
        // A mounted state also depends on the timing of the kernel.
        if self.judge.file_system.is_mounted() {
            return None;
        }
        let check = |_| self.workers.wait_for(&self.workers.submit(state.clone()), self.judge.stop).ok();
        let other = (0..times).filter_map(check).find(|checked| checked.outcome.class() != first.class())?;
        Some(format!(
            "the checker answers differently for the same state, {} and then {}: it depends on something \
             other than the files, such as the time or another program, so its results mean nothing",
            name(first),
            name(&other.outcome)
        ))
    }

    /// Counts a result. The order of the counted states does not depend on the workers.
    fn count(&mut self, event: usize, outcome: &Outcome, choice: impl FnOnce() -> Choice) {
        self.counted.distinct += 1;
        let Outcome::Failed { class, words } = outcome else { return };
        self.counted.failing += 1;
        *self.failing_in.entry(event).or_default() += 1;
        let rank = |choice: &Choice| {
            let blocks: usize = choice.lost.values().map(Vec::len).sum();
            (choice.lost.len(), blocks, choice.event)
        };
        let example = choice();
        let found = FailingStates { count: 0, example, words: words.clone() };
        let known = self.failing.entry(*class).or_insert_with(|| found.clone());
        let count = known.count + 1;
        if rank(&found.example) < rank(&known.example) {
            *known = found;
        }
        known.count = count;
    }
}

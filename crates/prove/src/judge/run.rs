//! Judging of all states: the result of each comes from a worker or is known, and is counted.

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

/// Number of checks that are given out before what the first of them has read is made known: more than there
/// are workers, and the same whatever their number, so that this decides nothing.
const AHEAD: usize = 8;
/// Largest number of states whose checks wrote that are named.
const WROTE_MAX: usize = 4096;
/// Number of results, known from earlier checks, after which progress is reported.
const TOLD_EVERY: u64 = 4096;

const NOT_DETERMINISTIC: &str = "the checker gave different results for states in which it read the same \
                                 data, so every state was checked; it depends on something other than the \
                                 drive, such as the time";

/// An outcome, of which the class counts: words may name a time.
struct Verdict(Outcome);

impl PartialEq for Verdict {
    fn eq(&self, other: &Self) -> bool {
        self.0.class() == other.0.class()
    }
}

/// A state that is being checked.
struct Pending {
    key: Key,
    event: usize,
    choice: Choice,
    /// The state itself: a choice does not say in which order requests in flight together have landed.
    state: OwnedState,
    /// The class that its result should have by what earlier checks have read.
    expected: Option<Option<FailureClass>>,
    /// The result, if it is known by an earlier run.
    known: std::result::Result<CheckResult, Ticket>,
}

/// Reason why judging ends early.
enum EarlyEnd {
    NotDeterministic,
    OutOfTime,
    Because(String),
}

/// Number of times that a state is checked again whose check found something else than another in which it
/// read the same.
const AGAIN: usize = 8;

/// Judging in progress.
struct Run<'r, 'a> {
    judge: &'r Judge<'a>,
    progress: &'r mut dyn FnMut(StateCounts),
    workers: &'r Workers,
    results: &'r mut Results,
    /// `None`: each state is checked.
    observed: Option<ObservedResults<Verdict>>,
    pending: VecDeque<Pending>,
    /// Number of states that needed no check.
    hits: u64,
    /// How many were shown again.
    again: u64,
    counted: StateCounts,
    failing: BTreeMap<FailureClass, FailingStates>,
    /// Intact states whose checks wrote.
    wrote: Vec<Choice>,
    /// By the event of a window.
    failing_in: BTreeMap<usize, u64>,
    /// The windows of states that were seen and not judged.
    left: Vec<usize>,
    ended: Option<EarlyEnd>,
}

/// Returns the result of a check in a word.
fn name(outcome: &Outcome) -> &'static str {
    outcome.class().map_or("intact", FailureClass::name)
}

impl Judge<'_> {
    /// Judges all states, and calls `progress` now and then.
    ///
    /// # Errors
    /// If it could not begin. [`JudgeResult::incomplete_because`] says what ended it later.
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
            // Before this state is looked up, so that what is known of it does not depend on whether it is.
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
            // Some of those that need no check are checked all the same, for a checker may depend on
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

    /// Returns the result of a state if it is known by what other checks have read, and tells the state what
    /// that was if it wants to know.
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

    /// Tells a state what its check reads. Where that follows from the state alone, the workers go on
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

    /// Waits for all checks that were given out.
    fn settle_all(&mut self) {
        while self.ended.is_none() && !self.pending.is_empty() {
            self.settle();
        }
    }

    /// Waits for the check that was given out first.
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

    /// Tells how far it is, and looks at the clock.
    fn tell(&mut self) {
        (self.progress)(self.counted);
        if self.ended.is_none() && self.judge.is_late() {
            self.ended = Some(EarlyEnd::OutOfTime);
        }
    }

    /// Checks a state again so many times. Returns the sentence on a checker that says something else than
    /// the first time.
    fn differs(&self, state: &OwnedState, times: usize, first: &Outcome) -> Option<String> {
        // A mounted state also depends on when the kernel does what.
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

    /// The order in which states are counted does not depend on the workers.
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

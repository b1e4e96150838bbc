//! The way of all states to their results, and what is counted of them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use plumb_report::document::proof::{FailureClass, StateCounts};

use super::results::{Checked, Key, Results};
use super::workers::{STOPPED, Workers};
use super::{FailingStates, Judge, JudgeError, Judged, Progress};
use crate::explore::{Choice, Coverage, State};
use crate::observed::Observed;
use crate::subject::Outcome;

/// How many checks are given out before what the first of them has read is made known: more than there are workers, and the same
/// whatever their number, so that this decides nothing.
const AHEAD: usize = 8;
/// After so many results that were known progress is told.
const TOLD_EVERY: u64 = 4096;

const NOT_DETERMINISTIC: &str = "the checker found different things in states in which it read the same, so that each state was \
     checked; it depends on something else than the drive, such as the time";

/// An outcome, of which the class counts: words may name a time.
struct Verdict(Outcome);

impl PartialEq for Verdict {
    fn eq(&self, other: &Self) -> bool {
        self.0.class() == other.0.class()
    }
}

/// A state that is being checked.
struct Pending {
    number: u64,
    key: Key,
    event: usize,
    choice: Choice,
    /// The class that its result should have by what earlier checks have read.
    expected: Option<Option<FailureClass>>,
    /// The result, if it is known by an earlier run.
    known: Option<Checked>,
}

/// Why judging ends early.
enum Ended {
    NotDeterministic,
    Because(String),
}

/// Judging in progress.
pub(super) struct Run<'r, 'a> {
    judge: &'r Judge<'a>,
    progress: &'r mut dyn FnMut(Progress),
    workers: Workers,
    results: Results,
    /// `None`: each state is checked.
    observed: Option<Observed<Verdict>>,
    pending: VecDeque<Pending>,
    /// How many states were seen, and how many of these needed no check.
    seen: u64,
    hits: u64,
    counted: Progress,
    /// By class: how much the example has lost, and which state it is.
    failing: BTreeMap<FailureClass, ((usize, usize, u64), FailingStates)>,
    /// By the event of a window.
    failing_in: BTreeMap<usize, u64>,
    /// The windows of states that were seen and not judged.
    left: Vec<usize>,
    ended: Option<Ended>,
}

impl<'r, 'a> Run<'r, 'a> {
    /// Judges all.
    pub(super) fn of(
        judge: &'r Judge<'a>,
        progress: &'r mut dyn FnMut(Progress),
    ) -> Result<Judged, JudgeError> {
        let results = Results::of(judge)?;
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let count = if judge.workers == 0 { 2 * processors() } else { judge.workers };
        let workers = Workers::start(judge, count.clamp(1, AHEAD))?;
        let mut run = Self::new(judge, progress, workers, results, Some(Observed::default()));
        let mut judged = run.explore();
        if matches!(run.ended, Some(Ended::NotDeterministic)) {
            run = Self::new(judge, run.progress, run.workers, run.results, None);
            judged = run.explore();
            judged.notes.push(NOT_DETERMINISTIC.to_owned());
        }
        if let Some(Ended::Because(why)) = run.ended {
            judged.incomplete_because = Some(why);
        }
        if let Err(error) = run.workers.end() {
            judged.notes.push(error.to_string());
        }
        Ok(judged)
    }

    fn new(
        judge: &'r Judge<'a>,
        progress: &'r mut dyn FnMut(Progress),
        workers: Workers,
        results: Results,
        observed: Option<Observed<Verdict>>,
    ) -> Self {
        Self {
            judge,
            progress,
            workers,
            results,
            observed,
            pending: VecDeque::new(),
            seen: 0,
            hits: 0,
            counted: Progress::default(),
            failing: BTreeMap::new(),
            failing_in: BTreeMap::new(),
            left: Vec::new(),
            ended: None,
        }
    }

    fn explore(&mut self) -> Judged {
        let explorer = self.judge.explorer();
        let mut windows = explorer.explore(&mut |state| self.see(state));
        while self.ended.is_none() && !self.pending.is_empty() {
            self.settle();
        }
        self.left.extend(self.pending.iter().map(|pending| pending.event));
        for event in &self.left {
            if let Some(window) = windows.iter_mut().find(|window| window.event == *event) {
                window.states -= 1;
                window.coverage = Coverage::Sampled;
            }
        }
        let Progress { distinct, checked, failing } = self.counted;
        let explored = windows.iter().map(|window| window.enumerated).sum();
        let failing_in = |event: usize| self.failing_in.get(&event).copied().unwrap_or_default();
        Judged {
            counts: StateCounts { explored, distinct, checked, failing },
            windows: windows.into_iter().map(|window| (window, failing_in(window.event))).collect(),
            failing: self.failing.iter().map(|(class, (_, states))| (*class, states.clone())).collect(),
            incomplete_because: None,
            notes: Vec::new(),
        }
    }

    fn see(&mut self, state: &State<'_>) -> ControlFlow<()> {
        if self.judge.stop.load(Ordering::Relaxed) {
            self.ended = Some(Ended::Because(STOPPED.to_owned()));
        }
        if self.pending.len() == AHEAD {
            // Before this state is looked up, so that what is known of it does not depend on whether it is.
            self.settle();
        }
        if self.ended.is_some() {
            self.left.push(state.event());
            return ControlFlow::Break(());
        }
        let number = self.seen;
        self.seen += 1;
        let known = self.observed.as_ref().and_then(|observed| {
            let known = observed.result(state.required(), |lba| state.content(lba))?;
            Some(known.0.clone())
        });
        match known {
            Some(outcome) => {
                self.hits += 1;
                // Some of those that need no check are checked all the same, for a checker may depend on something else.
                if self.hits.is_power_of_two() {
                    self.give(number, state, Some(outcome.class()));
                } else {
                    self.count(number, state.event(), state.required(), &outcome, || state.choice());
                    if self.hits.is_multiple_of(TOLD_EVERY) {
                        (self.progress)(self.counted);
                    }
                }
            }
            None => self.give(number, state, None),
        }
        ControlFlow::Continue(())
    }

    fn give(&mut self, number: u64, state: &State<'_>, expected: Option<Option<FailureClass>>) {
        let key = (state.hash(), state.required());
        let known = self.results.get(&key).cloned();
        let choice = state.choice();
        if known.is_none() {
            self.workers.give(number, state.to_owned());
        }
        self.pending.push_back(Pending { number, key, event: state.event(), choice, expected, known });
    }

    /// Waits for the check that was given out first.
    fn settle(&mut self) {
        let Some(mut pending) = self.pending.pop_front() else { return };
        let known = pending.known.take().map(Ok);
        let checked = known.unwrap_or_else(|| self.workers.take(pending.number, self.judge.stop));
        let checked = checked.and_then(|checked| self.results.add(pending.key, &checked).map(|()| checked));
        let Checked { outcome, read } = match checked {
            Ok(checked) => checked,
            Err(why) => {
                self.ended = Some(Ended::Because(why));
                self.left.push(pending.event);
                return;
            }
        };
        let Pending { number, key: (_, required), event, choice, expected, .. } = pending;
        let is_as_expected = expected.is_none_or(|class| class == outcome.class());
        let learnt = match &mut self.observed {
            Some(observed) => observed.learn(required, &read, Verdict(outcome.clone())).is_ok(),
            None => true,
        };
        if !(learnt && is_as_expected) {
            self.ended = Some(Ended::NotDeterministic);
        }
        self.counted.checked += 1;
        self.count(number, event, required, &outcome, || choice);
        (self.progress)(self.counted);
    }

    fn count(
        &mut self,
        number: u64,
        event: usize,
        required: Option<u64>,
        outcome: &Outcome,
        choice: impl FnOnce() -> Choice,
    ) {
        self.counted.distinct += 1;
        let Outcome::Failed { class, words } = outcome else { return };
        self.counted.failing += 1;
        *self.failing_in.entry(event).or_default() += 1;
        let example = choice();
        let rank = (example.lost.len(), example.lost.values().map(Vec::len).sum(), number);
        let count = self.failing.get(class).map_or(0, |(_, known)| known.count) + 1;
        let found = FailingStates { count, example, words: words.clone(), required };
        match self.failing.get_mut(class) {
            Some((known, states)) if *known < rank => states.count = count,
            _ => drop(self.failing.insert(*class, (rank, found))),
        }
    }
}

/// One state after the other, each of them checked.
pub(super) struct Single<'r, 'a> {
    judge: &'r Judge<'a>,
    workers: Workers,
    known: HashMap<Key, Outcome>,
}

impl<'r, 'a> Single<'r, 'a> {
    pub(super) fn new(judge: &'r Judge<'a>) -> Result<Self, JudgeError> {
        judge.may_check()?;
        Ok(Self { judge, workers: Workers::start(judge, 1)?, known: HashMap::new() })
    }

    /// What the checker says of a state.
    pub(super) fn check(&mut self, state: &State<'_>) -> Result<Outcome, JudgeError> {
        let key = (state.hash(), state.required());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let number = self.known.len() as u64;
        self.workers.give(number, state.to_owned());
        let checked = self.workers.take(number, self.judge.stop).map_err(JudgeError::Check)?;
        self.known.insert(key, checked.outcome.clone());
        Ok(checked.outcome)
    }

    pub(super) fn end(self) -> Result<(), JudgeError> {
        self.workers.end()
    }
}

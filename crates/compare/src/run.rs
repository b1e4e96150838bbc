//! Running an experiment: one trial whose turns are the blocks.
//!
//! Practice comes first: each level once, without a warm-up. Where the rate settled in it (a change point of its time series) is
//! how long every block runs before it is measured; how long it took says how many rounds the budget holds. From then on the
//! design is fixed.

use plumb_block::Nanos;
use plumb_measure::{Manifest, Out, RunDirectory};
use plumb_report::document::comparison::{Block, Outcome};
use plumb_report::document::{ComparisonDocument, RunSpan};
use plumb_report::{Format, RunDocument, Style, render};
use plumb_trial::{Context, Request, Trial, TrialEnded, TrialError, Turn, Watcher, run_turns};
use plumb_workload::{Scenario, Span, Warmup};

use crate::block::{DEFAULT_FIGURE, SCHEDULED_FIGURE, block_of};
use crate::design::{Design, Terms};
use crate::gate::Gate;
use crate::judge::{Question, document, whole_rounds};

/// A level of the factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// What is run.
    pub scenario: Scenario,
}

/// An experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// What differs between the levels.
    pub factor: String,
    /// The levels: at least two; the others are compared with the first.
    pub levels: Vec<Level>,
    /// The figure that decides; if it is not said, the rate, or with a schedule the 99th percentile.
    pub figure: Option<String>,
    /// What is asked of the statistics.
    pub terms: Terms,
    /// Limits of the user's own.
    pub limits: Vec<Gate>,
    /// How long it may take.
    pub budget: Nanos,
    /// How long a block is measured; if it is not said, as the budget allows.
    pub block: Option<Nanos>,
    /// Whether it may end before the budget is used because the outcome is clear.
    pub ends_early: bool,
}

/// A level is no single span that can be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("level {level}: {because}")]
pub struct LevelError {
    level: String,
    because: &'static str,
}

/// So many rounds are planned for when the length of a block is chosen.
const ROUNDS_PLANNED: u64 = 24;
/// Blocks are measured no shorter than this: it takes eight buckets of 100 ms to find a change point.
const BLOCK_MIN: Nanos = Nanos::millis(800);
/// And no longer, unless that is said: more blocks tell more.
const BLOCK_MAX: Nanos = Nanos::secs(15);
/// Where no change point could be looked for, or the rate never settled, the warm-up is this part of a block.
const WARMUP_SHARE: u64 = 4;
/// A block that ran for less of its time was cut.
const WHOLE_SHARE: f64 = 0.95;

/// Runs an experiment; its document, and how the trial ended. `request` is that of a trial of [`Experiment::scenario`].
///
/// What was measured is kept after every round, so that whatever ends it leaves whole rounds to be judged.
///
/// # Errors
/// If nothing could be measured.
pub fn run(
    experiment: &Experiment,
    request: &Request,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
) -> Result<(ComparisonDocument, TrialEnded), TrialError> {
    RunDirectory::check(&request.out)?;
    let mut course = Course::new(experiment, request);
    let mut kept = Kept::begin(&request.out, request, course.seed)?;
    let request = Request { out: Out::Nowhere, ..request.clone() };
    let trial = run_turns(&request, context, watcher, &mut |so_far, elapsed| {
        course.take(so_far);
        if course.turns.len().is_multiple_of(course.levels()) {
            kept.keep(&course.document(so_far, None));
        }
        course.next(elapsed)
    });
    let trial = match trial {
        Ok(trial) => trial,
        Err(error) => {
            kept.abandon()?;
            return Err(error);
        }
    };
    course.take(&trial.recording.document);
    if trial.ended != TrialEnded::Complete {
        course.leave_out_cut();
    }
    let mut document = course.document(&trial.recording.document, Some(&trial));
    let ended = match kept.finish(&mut document, context.time_of_day) {
        Some(why) if trial.ended == TrialEnded::Complete => TrialEnded::NotRecorded(why),
        _ => trial.ended,
    };
    Ok((document, ended))
}

impl Experiment {
    /// A span for each level, as long as a block is measured.
    ///
    /// # Errors
    /// If a level is something else than one span that can be repeated as it is.
    pub fn scenario(&self) -> Result<Scenario, LevelError> {
        let block = self.block_length();
        let span_of = |level: &Level| {
            let refuse = |because| LevelError { level: level.name.clone(), because };
            let [span] = level.scenario.spans.as_slice() else {
                return Err(refuse("a level is one span: what has several cannot be compared"));
            };
            if span.steady.is_some() || span.latency_target.is_some() || span.precondition {
                return Err(refuse(
                    "steady, latency-target and precondition cannot be compared: blocks are repeated as they are",
                ));
            }
            let mut span = Span { warmup: Warmup::For(Nanos::ZERO), ..span.clone() };
            for job in &mut span.jobs {
                job.workload.stop.duration = Some(block);
            }
            Ok(span)
        };
        Ok(Scenario { spans: self.levels.iter().map(span_of).collect::<Result<_, _>>()? })
    }

    /// How long a block is measured: as was said, or so that the planned rounds fit into the budget.
    fn block_length(&self) -> Nanos {
        let blocks = self.levels.len().max(2) as u64 * (ROUNDS_PLANNED + 1);
        let each = self.budget.0 / blocks * WARMUP_SHARE / (WARMUP_SHARE + 1);
        self.block.unwrap_or(Nanos(each.clamp(BLOCK_MIN.0, BLOCK_MAX.0)))
    }
}

/// An experiment in progress.
struct Course<'a> {
    experiment: &'a Experiment,
    question: Question,
    seed: u64,
    block: Nanos,
    blocks: Vec<Block>,
    /// The level and round of the turn that runs, or of the one that is to be taken.
    turns: Vec<(usize, u64)>,
    design: Option<(Design, Nanos)>,
}

impl<'a> Course<'a> {
    fn new(experiment: &'a Experiment, request: &Request) -> Self {
        let jobs = || request.scenario.spans.iter().flat_map(|span| &span.jobs);
        let is_scheduled = jobs().any(|job| job.workload.rate != plumb_workload::Rate::Unlimited);
        let figure = if is_scheduled { SCHEDULED_FIGURE } else { DEFAULT_FIGURE };
        let question = Question {
            factor: experiment.factor.clone(),
            levels: experiment.levels.iter().map(|level| level.name.clone()).collect(),
            figure: experiment.figure.clone().unwrap_or_else(|| figure.to_owned()),
            terms: experiment.terms,
            limits: experiment.limits.clone(),
        };
        let seed = jobs().next().map_or(0, |job| job.workload.seed);
        let block = experiment.block_length();
        Self { experiment, question, seed, block, blocks: Vec::new(), turns: Vec::new(), design: None }
    }

    /// Takes what turns have measured since the last time.
    fn take(&mut self, so_far: &RunDocument) {
        let new = so_far.spans.iter().zip(&self.turns).skip(self.blocks.len());
        let is_measured = |span: &RunSpan| span.duration > 0.0;
        self.blocks.extend(
            new.filter(|(span, _)| is_measured(span))
                .map(|(span, (level, round))| block_of(span, *level, *round)),
        );
    }

    /// The last block does not count if the run ended within it.
    fn leave_out_cut(&mut self) {
        let is_cut = |block: &mut Block| block.seconds < WHOLE_SHARE * self.block.as_secs_f64();
        self.blocks.pop_if(is_cut);
    }

    fn levels(&self) -> usize {
        self.experiment.levels.len()
    }

    /// The next turn; `None` at the end.
    fn next(&mut self, elapsed: Nanos) -> Option<Turn> {
        let done = self.turns.len();
        if done < self.levels() {
            return Some(self.turn(done, 0, Nanos::ZERO));
        }
        if self.design.is_none() {
            self.design = Some(self.plan(elapsed));
        }
        let (design, warmup) = self.design.as_ref()?;
        let (round, place) = ((done - self.levels()) / self.levels(), done % self.levels());
        if place == 0 && (round >= design.rounds() || self.is_settled(design, round)) {
            return None;
        }
        let level = *design.orders().get(round)?.get(place)?;
        let warmup = *warmup;
        Some(self.turn(level, round as u64 + 1, warmup))
    }

    fn turn(&mut self, level: usize, round: u64, warmup: Nanos) -> Turn {
        self.turns.push((level, round));
        Turn { span: level, round, warmup: Some(warmup), is_block: true }
    }

    /// The design that fits what is left of the budget, and how long each block is to run before it is measured.
    fn plan(&self, elapsed: Nanos) -> (Design, Nanos) {
        let practice = self.blocks.iter().filter(|block| block.round == 0);
        let settled = practice.map(|block| block.settled_after.map(Nanos::from_secs_f64));
        let default = Nanos(self.block.0 / WARMUP_SHARE);
        let warmup =
            settled.map(|settled| settled.unwrap_or(default)).max().unwrap_or(default).min(self.block);
        let levels = self.levels() as u64;
        let round = elapsed.0 + warmup.0 * levels;
        let left = self.experiment.budget.since(elapsed).0;
        let rounds = usize::try_from(left / round.max(1)).unwrap_or(usize::MAX);
        let ends_early = self.experiment.ends_early;
        (Design::new(self.levels(), rounds, &self.experiment.terms, ends_early, self.seed), warmup)
    }

    /// Whether the outcome is clear at a look, and on which side of each limit it is.
    fn is_settled(&self, design: &Design, rounds: usize) -> bool {
        if design.look_at(rounds).is_none() || whole_rounds(self.levels(), &self.blocks) < rounds {
            return false;
        }
        let document = document(&self.question, design, self.blocks.clone());
        document.limits.iter().all(|limit| limit.exceeded.is_some())
            && document.contrasts().all(|contrast| contrast.outcome != Outcome::NoneSeen)
    }

    /// What is known now; with `trial`, at the end.
    fn document(&self, run: &RunDocument, trial: Option<&Trial>) -> ComparisonDocument {
        let terms = &self.experiment.terms;
        let unplanned = || (Design::new(self.levels(), 0, terms, false, self.seed), Nanos::ZERO);
        let (design, warmup) = self.design.clone().unwrap_or_else(unplanned);
        let mut document = document(&self.question, &design, self.blocks.clone());
        document.design.block_seconds = Some(self.block.as_secs_f64());
        document.design.warmup_seconds = self.design.as_ref().map(|_| warmup.as_secs_f64());
        document.path.clone_from(&run.path);
        document.verdicts.clone_from(&run.verdicts);
        document.workload.clone_from(&run.workload);
        document.notes.clone_from(&run.notes);
        document.environment = run.environment.clone();
        document.complete = trial.is_some_and(|trial| trial.ended == TrialEnded::Complete);
        document.incomplete_because.clone_from(&run.incomplete_because);
        document.failed = run.failed;
        document
    }
}

/// The run directory of an experiment. What cannot be written any more is given up; the experiment goes on.
struct Kept {
    directory: Option<RunDirectory>,
    lost: Option<String>,
}

impl Kept {
    fn begin(out: &Out, request: &Request, seed: u64) -> plumb_measure::Result<Self> {
        let mut manifest =
            Manifest::starting(&request.command, request.argv.clone(), seed, &request.started_at);
        let environment = plumb_trial::environment(&request.argv, &request.started_at);
        (manifest.kernel, manifest.host) = (environment.kernel, environment.host);
        Ok(Self { directory: RunDirectory::create(out, &manifest)?, lost: None })
    }

    fn keep(&mut self, document: &ComparisonDocument) {
        let written = self.directory.as_ref().map(|directory| directory.write_result(document));
        if let Some(Err(error)) = written {
            self.lose(&error);
        }
    }

    fn lose(&mut self, error: &(dyn std::error::Error + 'static)) {
        self.lost.get_or_insert_with(|| plumb_block::in_one_line(&error));
        self.directory = None;
    }

    fn abandon(self) -> plumb_measure::Result<()> {
        self.directory.map_or(Ok(()), RunDirectory::abandon)
    }

    /// Writes the result and the page; why not, if they could not be written.
    fn finish(
        mut self,
        document: &mut ComparisonDocument,
        time_of_day: &dyn Fn() -> String,
    ) -> Option<String> {
        let path = self.directory.as_ref().map(|directory| directory.path().display().to_string());
        document.run_directory = path;
        self.keep(document);
        let page = render(&*document, Format::Html, Style::PLAIN).unwrap_or_default();
        if let Some(directory) = self.directory.take() {
            let closed = directory.write_file(Format::Html.file_name(), page.as_bytes());
            let reason = document.incomplete_because.clone();
            if let Err(error) = closed.and_then(|()| directory.finish(reason, time_of_day()).map(drop)) {
                self.lose(&error);
            }
        }
        if self.lost.is_some() {
            document.run_directory = None;
        }
        self.lost
    }
}

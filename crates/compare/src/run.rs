//! Running an experiment: one trial whose turns are the blocks.
//!
//! Practice comes first: each level once, without a warm-up. Where the rate settled in it (a change point of its time series) is
//! how long every block runs before it is measured; how long it took says how many rounds the budget holds. From then on the
//! design is fixed.

use std::collections::BTreeMap;

use plumb_block::{Nanos, in_one_line};
use plumb_measure::{Out, RunDirectory};
use plumb_report::RunDocument;
use plumb_report::document::ComparisonDocument;
use plumb_report::document::comparison::{Block, Outcome};
use plumb_trial::{Context, FailureKind, Request, SpanRun, TrialEnded, TrialError, Turn, Watcher, run_turns};
use plumb_workload::{Scenario, Span, Warmup};

use crate::anew::each_anew;
use crate::block::{DEFAULT_FIGURE, SCHEDULED_FIGURE, block_of, block_of_sides};
use crate::design::{Design, Terms};
use crate::gate::Gate;
use crate::judge::{Question, document, whole_rounds};
use crate::kept::Kept;
use crate::setting::Setting;
use crate::shape::{self, Distribution};

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
    /// Whether the levels run at the same time, each on a target of its own, rather than in turns.
    pub together: bool,
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
    conduct(experiment, request, context, &mut |request, course, kept| {
        let mut next = |so_far: &RunDocument, elapsed| course.proceed(so_far, elapsed, kept);
        let trial = run_turns(request, context, watcher, &mut next)?;
        course.shape(&trial.spans);
        Ok((trial.recording.document, trial.ended))
    })
}

/// The same, where levels are set on the machine: each block is a trial of its own, whose targets are opened when its level is set.
/// Whatever ends it, what was there before is put back.
///
/// # Errors
/// If nothing could be measured, or nothing be put back.
pub fn run_set(
    experiment: &Experiment,
    request: &Request,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
    setting: &mut dyn Setting,
) -> Result<(ComparisonDocument, TrialEnded), TrialError> {
    conduct(experiment, request, context, &mut |request, course, kept| {
        let mut spans = Vec::new();
        let ran = each_anew(request, context, watcher, setting, &mut spans, &mut |so_far, elapsed| {
            course.proceed(so_far, elapsed, kept)
        });
        course.shape(&spans);
        match (ran, setting.restore()) {
            (ran, Ok(())) => ran,
            (Ok((document, _)), Err(left)) => Ok((document, TrialEnded::Failed(in_one_line(&left)))),
            (Err(error), Err(left)) => {
                let problem = format!("{}; {}", in_one_line(&error), in_one_line(&left));
                Err(TrialError::Setting { problem, kind: FailureKind::Failed })
            }
        }
    })
}

/// Runs the turns of a course: what was measured, and how it ended.
type Runner<'a> =
    dyn FnMut(&Request, &mut Course<'_>, &mut Kept) -> Result<(RunDocument, TrialEnded), TrialError> + 'a;

fn conduct(
    experiment: &Experiment,
    request: &Request,
    context: &Context<'_>,
    run: &mut Runner<'_>,
) -> Result<(ComparisonDocument, TrialEnded), TrialError> {
    RunDirectory::check(&request.out)?;
    let mut course = Course::new(experiment, request);
    let mut kept = Kept::begin(&request.out, request, course.seed)?;
    let request = Request { out: Out::Nowhere, ..request.clone() };
    let (measured, ended) = match run(&request, &mut course, &mut kept) {
        Ok(ran) => ran,
        Err(error) => {
            kept.abandon()?;
            return Err(error);
        }
    };
    course.take(&measured);
    if ended != TrialEnded::Complete {
        course.leave_out_cut();
    }
    let mut document = course.document(&measured, Some(&ended));
    let ended = match kept.finish(&mut document, context.time_of_day) {
        Some(why) if ended == TrialEnded::Complete => TrialEnded::NotRecorded(why),
        _ => ended,
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
            if let [job] = &mut *span.jobs {
                job.name.clone_from(&level.name);
            }
            Ok(span)
        };
        let spans: Vec<Span> = self.levels.iter().map(span_of).collect::<Result<_, _>>()?;
        if !self.together {
            return Ok(Scenario { spans });
        }
        let is_single = |span: &Span| matches!(&*span.jobs, [job] if job.targets.len() == 1);
        if let Some((level, _)) = self.levels.iter().zip(&spans).find(|(_, span)| !is_single(span)) {
            let because = "levels that run at the same time have one job on one target each";
            return Err(LevelError { level: level.name.clone(), because });
        }
        let all = spans.into_iter().reduce(|mut all, span| {
            all.jobs.extend(span.jobs);
            all
        });
        Ok(Scenario { spans: all.into_iter().collect() })
    }

    /// How many turns a round has.
    fn turns_in_round(&self) -> usize {
        if self.together { 1 } else { self.levels.len() }
    }

    /// How long a block is measured: as was said, or so that the planned rounds fit into the budget.
    fn block_length(&self) -> Nanos {
        let blocks = self.turns_in_round() as u64 * (ROUNDS_PLANNED + 1);
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
    /// Of each level, and the rates of each turn: known at the end.
    distributions: Vec<Distribution>,
    rates: BTreeMap<(usize, u64), Vec<f64>>,
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
        Self {
            experiment,
            question,
            seed,
            block,
            blocks: Vec::new(),
            turns: Vec::new(),
            design: None,
            distributions: vec![Distribution::default(); experiment.levels.len()],
            rates: BTreeMap::new(),
        }
    }

    /// Takes what turns have measured since the last time.
    fn take(&mut self, so_far: &RunDocument) {
        let together = self.experiment.together;
        let taken = if together { self.blocks.len() / self.levels() } else { self.blocks.len() };
        let new = so_far.spans.iter().enumerate().zip(&self.turns).skip(taken);
        for ((number, span), (level, round)) in new.filter(|((_, span), _)| span.duration > 0.0) {
            if !together {
                self.blocks.push(block_of(span, *level, *round));
                continue;
            }
            for target in so_far.targets.iter().filter(|target| target.span == number) {
                let block = block_of_sides(&target.sides, span.duration);
                self.blocks.push(Block { level: target.job, round: *round, ..block });
            }
        }
    }

    /// Takes what is only drawn from the spans that ran, one for each turn.
    fn shape(&mut self, spans: &[SpanRun]) {
        for (span, (level, round)) in spans.iter().zip(&self.turns) {
            let result = &span.ran.result;
            let outcomes = match self.experiment.together {
                true => (0..self.levels()).map(|level| (level, result.of_target(level))).collect(),
                false => vec![(*level, result.total())],
            };
            for (level, outcome) in outcomes {
                self.rates.insert((level, *round), shape::rates(&outcome));
                if *round > 0 {
                    self.distributions[level].add(&outcome);
                }
            }
        }
    }

    /// The last block does not count if the run ended within it.
    fn leave_out_cut(&mut self) {
        let is_cut = |block: &mut Block| block.seconds < WHOLE_SHARE * self.block.as_secs_f64();
        while self.blocks.pop_if(is_cut).is_some() {}
    }

    fn levels(&self) -> usize {
        self.experiment.levels.len()
    }

    /// Takes what was measured until now, keeps it after each round, and says which turn is next.
    fn proceed(&mut self, so_far: &RunDocument, elapsed: Nanos, kept: &mut Kept) -> Option<Turn> {
        self.take(so_far);
        if self.turns.len().is_multiple_of(self.experiment.turns_in_round()) {
            kept.keep(&self.document(so_far, None));
        }
        self.next(elapsed)
    }

    /// The next turn; `None` at the end.
    fn next(&mut self, elapsed: Nanos) -> Option<Turn> {
        let (done, each) = (self.turns.len(), self.experiment.turns_in_round());
        if done < each {
            return Some(self.turn(done, 0, Nanos::ZERO));
        }
        if self.design.is_none() {
            self.design = Some(self.plan(elapsed));
        }
        let (design, warmup) = self.design.as_ref()?;
        let (round, place) = ((done - each) / each, done % each);
        if place == 0 && (round >= design.rounds() || self.is_settled(design, round)) {
            return None;
        }
        let level = if each == 1 { 0 } else { *design.orders().get(round)?.get(place)? };
        let warmup = *warmup;
        Some(self.turn(level, round as u64 + 1, warmup))
    }

    fn turn(&mut self, level: usize, round: u64, warmup: Nanos) -> Turn {
        self.turns.push((level, round));
        Turn { span: level, round, warmup: Some(warmup), is_block: true, standing: self.standing(round) }
    }

    /// What the blocks until now say of each level, and of the difference.
    fn standing(&self, round: u64) -> Vec<String> {
        let Some((design, _)) = &self.design else {
            return vec!["practice: how long a block runs before it is measured".to_owned()];
        };
        let known = document(&self.question, design, self.blocks.clone());
        let mut lines = vec![format!("round {round} of at most {}", design.rounds())];
        lines.extend(plumb_report::comparison_standing(&known));
        lines
    }

    /// The design that fits what is left of the budget, and how long each block is to run before it is measured.
    fn plan(&self, elapsed: Nanos) -> (Design, Nanos) {
        let practice = self.blocks.iter().filter(|block| block.round == 0);
        let settled = practice.map(|block| block.settled_after.map(Nanos::from_secs_f64));
        let default = Nanos(self.block.0 / WARMUP_SHARE);
        let warmup =
            settled.map(|settled| settled.unwrap_or(default)).max().unwrap_or(default).min(self.block);
        let round = elapsed.0 + warmup.0 * self.experiment.turns_in_round() as u64;
        let left = self.experiment.budget.since(elapsed).0;
        let rounds = usize::try_from(left / round.max(1)).unwrap_or(usize::MAX);
        let ends_early = self.experiment.ends_early;
        (self.designed(rounds, ends_early), warmup)
    }

    fn designed(&self, rounds: usize, ends_early: bool) -> Design {
        let experiment = self.experiment;
        Design::new(self.levels(), rounds, &experiment.terms, ends_early, self.seed)
            .together(experiment.together)
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

    /// What is known now; with `ended`, at the end.
    fn document(&self, run: &RunDocument, ended: Option<&TrialEnded>) -> ComparisonDocument {
        let unplanned = || (self.designed(0, false), Nanos::ZERO);
        let (design, warmup) = self.design.clone().unwrap_or_else(unplanned);
        let mut document = document(&self.question, &design, self.blocks.clone());
        document.design.together = self.experiment.together;
        document.design.block_seconds = Some(self.block.as_secs_f64());
        document.design.warmup_seconds = self.design.as_ref().map(|_| warmup.as_secs_f64());
        for (level, distribution) in document.levels.iter_mut().zip(&self.distributions) {
            level.distribution = distribution.points();
        }
        for block in &mut document.measured {
            block.rates = self.rates.get(&(block.level, block.round)).cloned().unwrap_or_default();
        }
        document.path.clone_from(&run.path);
        document.verdicts.clone_from(&run.verdicts);
        document.workload.clone_from(&run.workload);
        document.notes.clone_from(&run.notes);
        document.environment = run.environment.clone();
        document.complete = ended == Some(&TrialEnded::Complete);
        document.incomplete_because =
            ended.map_or_else(|| run.incomplete_because.clone(), TrialEnded::reason);
        document.failed = run.failed || matches!(ended, Some(TrialEnded::Failed(_)));
        document
    }
}

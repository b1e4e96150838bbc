//! An experiment in progress: the next span to run, and the results so far.
//!
//! Practice comes first. The blocks of its first round have no warm-up: the time at which their rates settled
//! (a change point of the time series) becomes the warm-up of every later block. The other rounds of practice
//! are like those that count: they show how much pairs of blocks differ, and how many rounds fit into the
//! budget. Then the design is fixed.

use plumb_block::{FailureKind, Nanos};
use plumb_load::LoadOutcome;
use plumb_report::RunDocument;
use plumb_report::document::comparison::{Block, Prediction};
use plumb_report::document::{ComparisonDocument, RunTarget};
use plumb_report::verdict::loses_writes;
use plumb_trial::{GOES_ON, Interim, ScheduledSpan, SpanRun, Trial, TrialEnded, TrialError};
use plumb_workload::Scenario;

use crate::block::{Way, block_of, of_transactions};
use crate::design::Design;
use crate::experiment::{Experiment, Extent, WARMUP_SHARE};
use crate::judge::{Question, conclude, document, is_clear, practised, synchronous, whole_rounds};
use crate::pilot;
use crate::predict::{PRACTICE, Spread};
use crate::shape::{self, Distribution};

/// Share of its time below which the last block counts as cut off.
const WHOLE_SHARE: f64 = 0.95;

/// An experiment in progress.
pub(crate) struct Course<'a> {
    /// Name of the workload; empty if there is only one.
    name: &'a str,
    experiment: &'a Experiment,
    scenario: &'a Scenario,
    question: Question,
    seed: u64,
    block: Nanos,
    blocks: Vec<Block>,
    /// Level and round of each turn that has started.
    turns: Vec<(usize, u64)>,
    /// Number of turns that were converted to blocks.
    taken: usize,
    /// Warm-up of each block, and the time at which it became known.
    warmup: Option<(Nanos, Nanos)>,
    design: Option<Design>,
    prediction: Option<Prediction>,
    /// Reason why practice has shown that the question cannot be answered.
    refused: Option<String>,
    /// Distribution of each level.
    distributions: Vec<Distribution>,
}

impl<'a> Course<'a> {
    pub(crate) fn new(name: &'a str, experiment: &'a Experiment, scenario: &'a Scenario) -> Self {
        let jobs = || scenario.jobs();
        let seed = jobs().next().map_or(0, |job| job.workload.seed);
        let block = experiment.block_length();
        Self {
            name,
            experiment,
            scenario,
            question: experiment.question(),
            seed,
            block,
            blocks: Vec::new(),
            turns: Vec::new(),
            taken: 0,
            warmup: None,
            design: None,
            prediction: None,
            refused: None,
            distributions: vec![Distribution::default(); experiment.levels.len()],
        }
    }

    /// Converts the measurements `run` of the next turn to blocks.
    fn take(&mut self, run: &SpanRun) {
        let Some((level, round)) = self.turns.get(self.taken).copied() else { return };
        self.taken += 1;
        let (result, jobs) = (&run.ran.result, &self.scenario.spans[level].jobs);
        let seconds = result.window.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        if !self.experiment.together {
            let outcome = result.total();
            let threads = jobs.first().map_or(1, |job| job.threads);
            let block = block_of(&run.total, Way::from_jobs(jobs.iter()), seconds);
            let block = of_transactions(block, &outcome, threads);
            return self.add(Block { level, round, ..block }, &outcome);
        }
        for (target, sides) in run.targets.iter().enumerate() {
            let level = result.targets[target].job;
            let block = block_of(sides, Way::from_jobs(std::iter::once(&jobs[level])), seconds);
            self.add(Block { level, round, ..block }, &result.of_target(target));
        }
    }

    /// Adds a block, with the data that is only drawn: its rates, and its latencies in the distribution of
    /// the level.
    fn add(&mut self, block: Block, outcome: &LoadOutcome) {
        if block.round > 0 {
            self.distributions[block.level].add(outcome);
        }
        self.blocks.push(Block { rates: shape::rates(outcome), ..block });
    }

    /// Leaves out the last blocks if the run ended within them.
    fn leave_out_cut(&mut self) {
        let is_cut = |block: &mut Block| block.seconds < WHOLE_SHARE * self.block.as_secs_f64();
        let of_a_turn = self.levels() / self.experiment.turns_in_round();
        (0..of_a_turn).for_each(|_| drop(self.blocks.pop_if(is_cut)));
    }

    fn levels(&self) -> usize {
        self.experiment.levels.len()
    }

    /// Takes the measurements of the last turn, records the results after each round, and returns the next
    /// turn.
    pub(crate) fn proceed(
        &mut self,
        interim: &Interim<'_>,
        keep: &mut dyn FnMut(&ComparisonDocument),
    ) -> Option<ScheduledSpan> {
        interim.last.into_iter().for_each(|run| self.take(run));
        if self.turns.len().is_multiple_of(self.experiment.turns_in_round()) {
            keep(&self.document(&interim.document(), None));
        }
        self.next(interim.elapsed)
    }

    /// Returns the document of the finished experiment.
    ///
    /// # Errors
    /// If practice has shown that the question cannot be answered.
    pub(crate) fn finish(mut self, trial: &Trial) -> Result<ComparisonDocument, TrialError> {
        if let Some(problem) = self.refused {
            return Err(TrialError::new(FailureKind::NotMeasured, problem));
        }
        // The last turn was not taken yet, since no other followed it.
        trial.spans.get(self.taken).into_iter().for_each(|run| self.take(run));
        if trial.ended != TrialEnded::Complete {
            self.leave_out_cut();
        }
        Ok(self.document(&trial.recording.document, Some(&trial.ended)))
    }

    /// Returns the next turn; `None` at the end.
    fn next(&mut self, elapsed: Nanos) -> Option<ScheduledSpan> {
        let (done, each) = (self.turns.len(), self.experiment.turns_in_round());
        let (round, place) = (done / each, done % each);
        if done == each {
            self.refused = pilot::missing(&self.question, &self.blocks);
            self.warmup = Some((self.settled(), elapsed));
        }
        if self.refused.is_some() {
            return None;
        }
        if round < PRACTICE {
            let level = if round % 2 == 0 { place } else { each - 1 - place };
            // Not the offsets of any round that counts.
            let drawn = if round == 0 { 0 } else { Design::ROUNDS_MAX + round };
            return Some(ScheduledSpan { round: drawn as u64, ..self.turn(level, 0) });
        }
        if self.design.is_none() {
            self.refused = pilot::idle(&self.question, &self.blocks);
            if self.refused.is_some() {
                return None;
            }
        }
        let note = self.design.is_none().then(|| self.plan(elapsed)).flatten();
        let (design, round) = (self.design.as_ref()?, round - PRACTICE);
        let is_over = self.experiment.extent == Extent::Practice || round >= design.rounds();
        if place == 0 && (is_over || self.is_settled(design, round)) {
            return None;
        }
        let level = if each == 1 { 0 } else { *design.orders().get(round)?.get(place)? };
        Some(ScheduledSpan { note, ..self.turn(level, round as u64 + 1) })
    }

    fn turn(&mut self, level: usize, round: u64) -> ScheduledSpan {
        self.turns.push((level, round));
        let warmup = Some(self.warmup.map_or(Nanos::ZERO, |(warmup, _)| warmup));
        let all = self
            .design
            .as_ref()
            .map(|design| (PRACTICE + design.rounds()) * self.experiment.turns_in_round());
        let done = all.map(|all| (self.turns.len() - 1) as f64 / all as f64);
        ScheduledSpan {
            span: level,
            round,
            warmup,
            is_block: true,
            may_be_empty: true,
            standing: self.standing(round),
            done,
            ..ScheduledSpan::default()
        }
    }

    /// Returns lines with the results so far, of each level and of the difference.
    fn standing(&self, round: u64) -> Vec<String> {
        let Some(design) = &self.design else {
            let why = "how long a block runs before it is measured, and how much blocks differ";
            return vec![self.named("pilot".to_owned()), why.to_owned()];
        };
        let known = document(&self.question, design, self.blocks.clone());
        let mut lines = vec![
            self.named(format!("round {round} of {}", design.rounds())),
            "results are looked at after fixed rounds; it ends early if the outcome is clear then".to_owned(),
        ];
        lines.extend(plumb_report::comparison_standing(&known));
        lines
    }

    /// Returns `words`, preceded by the name of the workload if there are several.
    fn named(&self, words: String) -> String {
        if self.name.is_empty() { words } else { format!("{}: {words}", self.name) }
    }

    /// Returns the warm-up of a block, from the first round of practice; zero for a profile, which creates
    /// its files again for each block.
    fn settled(&self) -> Nanos {
        if self.experiment.is_of_profile() {
            return Nanos::ZERO;
        }
        let default = Nanos(self.block.0 / WARMUP_SHARE);
        let settled = self.blocks.iter().map(|block| block.settled_after.map(Nanos::from_secs_f64));
        settled.map(|settled| settled.unwrap_or(default)).max().unwrap_or(default).min(self.block)
    }

    /// Fixes the design that fits into the rest of the budget. Returns the prediction from practice, in
    /// words.
    fn plan(&mut self, elapsed: Nanos) -> Option<String> {
        let begun = self.warmup.map_or(Nanos::ZERO, |(_, at)| at);
        let round = (elapsed.since(begun).0 / (PRACTICE as u64 - 1)).max(1);
        let left = self.experiment.budget.since(elapsed).0;
        let rounds = usize::try_from(left / round).unwrap_or(usize::MAX).max(Design::ROUNDS_USUAL);
        let design = self.designed(rounds);
        let (rounds, error) = (design.rounds(), design.error_at(design.rounds()));
        self.design = Some(design);
        let spreads = (1..self.levels()).map(|level| {
            Spread::from_log_ratios(&practised(&self.blocks, level, &self.question.figure)?, error)
        });
        let widest = spreads.collect::<Option<Vec<_>>>()?.into_iter().max_by(Spread::total_cmp)?;
        let prediction = widest.predict(self.experiment.terms.difference, Nanos(round).as_secs_f64(), rounds);
        self.prediction = Some(prediction);
        Some(plumb_report::comparison_predicted(&prediction, rounds as u64))
    }

    fn designed(&self, rounds: usize) -> Design {
        let experiment = self.experiment;
        let ends_early = experiment.extent == Extent::UntilClear;
        Design::new(self.levels(), rounds, &experiment.terms, ends_early, self.seed)
            .together(experiment.together)
    }

    /// Returns true if the outcome is clear at a look.
    fn is_settled(&self, design: &Design, rounds: usize) -> bool {
        design.look_at(rounds).is_some()
            && whole_rounds(self.levels(), &self.blocks) >= rounds
            && is_clear(&document(&self.question, design, self.blocks.clone()))
    }

    /// Creates the document of the results so far; `ended` is given at the end.
    fn document(&self, run: &RunDocument, ended: Option<&TrialEnded>) -> ComparisonDocument {
        let design = self.design.clone().unwrap_or_else(|| self.designed(0));
        let mut document = document(&self.question, &design, self.blocks.clone());
        self.name.clone_into(&mut document.name);
        document.design.together = self.experiment.together;
        document.design.block_seconds = Some(self.block.as_secs_f64());
        document.design.warmup_seconds = self.warmup.map(|(warmup, _)| warmup.as_secs_f64());
        document.design.prediction = self.prediction;
        if let Some(prediction) = self.prediction.filter(|_| self.experiment.extent == Extent::Practice) {
            document.headline = plumb_report::comparison_predicted(&prediction, design.rounds() as u64);
        }
        for (index, (level, distribution)) in document.levels.iter_mut().zip(&self.distributions).enumerate()
        {
            level.distribution = distribution.points();
            let is_of_level = |target: &&RunTarget| match self.experiment.together {
                true => target.job == index,
                false => target.span == index,
            };
            level.loses_synced = loses_writes(run, run.targets.iter().filter(is_of_level));
            level.synchronous = synchronous(run, run.targets.iter().filter(is_of_level));
        }
        document.path.clone_from(&run.path);
        document.verdicts.clone_from(&run.verdicts);
        if self.experiment.extent != Extent::Practice {
            conclude(&mut document, plumb_report::machine_busy(&run.verdicts));
        }
        document.workload.clone_from(&run.workload);
        document.notes.clone_from(&run.notes);
        document.environment = run.environment.clone();
        document.complete = ended == Some(&TrialEnded::Complete);
        document.incomplete_because = ended.map_or(Some(GOES_ON.to_owned()), TrialEnded::reason);
        document.failed = run.failed || matches!(ended, Some(TrialEnded::Failed(_)));
        document
    }
}

//! Definition of an experiment: the levels of a factor, the question about their blocks, and the budget.

use std::collections::BTreeSet;
use std::sync::Arc;

use plumb_block::{Clock, Nanos, RealClock, in_one_line};
use plumb_dialect::Meaning;
use plumb_dialect::native::write;
use plumb_linux::FileOptions;
use plumb_targets::{Intent, Name, Permission, TargetRequest, open_all, seed_of, time_of};
use plumb_trial::TrialError;
use plumb_workload::{Job, Rate, Scenario, Span, Stop, Warmup};

use crate::block::{DEFAULT_FIGURE, LENGTHS_FIGURE, PROFILE_FIGURE, SCHEDULED_FIGURE};
use crate::design::{Design, Terms};
use crate::gate::Gate;
use crate::judge::Question;
use crate::predict::PRACTICE;

/// A level of the factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Name of the level.
    pub name: String,
    /// The load, or the application profile that works on files: one span. The operations of a program are
    /// its transactions.
    pub scenario: Scenario,
}

/// An experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Experiment {
    /// Factor that differs between the levels.
    pub factor: String,
    /// The levels: at least two; the others are compared with the first.
    pub levels: Vec<Level>,
    /// Figure that decides; `None`: see [`question`](Self::question).
    pub figure: Option<String>,
    /// Requirements on the statistics.
    pub terms: Terms,
    /// Limits set by the user.
    pub limits: Vec<Gate>,
    /// Time that the experiment may take.
    pub budget: Nanos,
    /// Length of the measurement of a block; `None`: as the budget allows.
    pub block: Option<Nanos>,
    /// Use of the budget.
    pub extent: Extent,
    /// True if the levels run at the same time, each on a target of its own, rather than in turns.
    pub together: bool,
}

/// Use of the budget of an experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extent {
    /// The experiment may end before the budget is used because the outcome is clear.
    #[default]
    UntilClear,
    /// The whole budget is used.
    WholeBudget,
    /// Practice only, with its prediction.
    Practice,
}

/// Error of a level that is not a single, repeatable span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("level {level}: {because}")]
pub struct LevelError {
    level: String,
    because: &'static str,
}

/// Number of rounds assumed when the length of a block is chosen.
const ROUNDS_PLANNED: u64 = 24;
/// Shortest measurement of a block: finding a change point takes eight buckets of 100 ms.
const BLOCK_MIN: Nanos = Nanos::millis(800);
/// Longest measurement of a block by default: more blocks show more than longer ones.
const BLOCK_MAX: Nanos = Nanos::secs(15);
/// Divisor of the length of a block that gives its warm-up if no change point could be sought, or the rate
/// never settled.
pub(crate) const WARMUP_SHARE: u64 = 4;

impl Level {
    /// Refuses a level whose simulated targets cannot be made, before anything runs. Targets of this machine
    /// are not opened; they are checked when the level runs.
    ///
    /// # Errors
    /// A usage error that names the level.
    pub fn can_be_opened(&self) -> Result<(), TrialError> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let wanted = |target: String| {
            let (intent, options) = (Intent::WRITE, FileOptions::write_direct());
            Ok(TargetRequest { name: Name::parse(target)?, intent, options })
        };
        let is_simulated = |name: &String| name.starts_with("sim:") || name.starts_with("cache:backing=sim:");
        let simulated = self.scenario.targets().into_iter().filter(is_simulated);
        let wanted = simulated.map(wanted).collect::<Result<Vec<_>, _>>();
        let opened = wanted.and_then(|wanted| {
            let time = time_of(wanted.iter().map(|wanted| &wanted.name), &clock);
            open_all(&wanted, &Permission::default(), &time)
        });
        opened.map(drop).map_err(|error: plumb_targets::Error| {
            TrialError::usage(format!("level {}: {}", self.name, in_one_line(&error)))
        })
    }

    /// Returns true if the level runs by the clock of simulated drives.
    pub fn is_simulated(&self) -> bool {
        let targets = self.scenario.targets();
        let names: Vec<Name> = targets.iter().filter_map(|target| Name::parse(target).ok()).collect();
        seed_of(&names).is_some()
    }

    /// Returns the level's block: a span that is measured for the time `block`. A limit on operations is
    /// dropped, since the warm-up would use it up; a program keeps its limit on transactions.
    fn span(&self, block: Nanos) -> Result<Span, LevelError> {
        let refuse = |because| LevelError { level: self.name.clone(), because };
        let [span] = self.scenario.spans.as_slice() else {
            return Err(refuse("a level is one span: a workload with several cannot be compared"));
        };
        if span.steady.is_some() || span.latency_target.is_some() || span.precondition {
            return Err(refuse(
                "steady, latency-target and precondition cannot be used in a comparison, because every block must do the same work",
            ));
        }
        let mut span = Span { warmup: Warmup::For(Nanos::ZERO), ..span.clone() };
        for job in &mut span.jobs {
            let transactions = job.workload.stop.operations.filter(|_| job.program.is_some());
            job.workload.stop = Stop { operations: transactions, ..Stop::after(block) };
        }
        if let [job] = &mut *span.jobs {
            job.name.clone_from(&self.name);
        }
        Ok(span)
    }
}

impl Experiment {
    /// Returns a span for each level, as long as a block is measured.
    ///
    /// # Errors
    /// If a level is not a single span that can be repeated as it is.
    pub fn scenario(&self) -> Result<Scenario, LevelError> {
        let block = self.block_length();
        let spans: Vec<Span> = self.levels.iter().map(|level| level.span(block)).collect::<Result<_, _>>()?;
        if !self.together {
            return Ok(Scenario { spans });
        }
        let is_single =
            |span: &Span| matches!(&*span.jobs, [job] if job.targets.len() == 1 && job.program.is_none());
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

    /// Returns the [scenario](Self::scenario) with notes for the user, and its words for the recording;
    /// `profile` is the application profile of the workload, if it is one.
    ///
    /// # Errors
    /// Fails as [`scenario`](Self::scenario) does.
    pub fn meaning(&self, profile: Option<&str>) -> Result<(Meaning, String), LevelError> {
        let scenario = self.scenario()?;
        let words = match profile.filter(|_| self.is_of_profile()) {
            // An application has no words of a load, only the name of its profile.
            Some(profile) => format!("profile = \"{profile}\"\n"),
            None => write(&scenario),
        };
        let ends = |job: &Job| job.workload.stop.operations.is_some() || job.workload.stop.bytes.is_some();
        let is_limited = profile.is_none() && self.jobs().any(ends);
        let note = "Blocks are measured for a time: --count and --bytes have no effect.";
        Ok((Meaning { scenario, notes: is_limited.then(|| note.to_owned()).into_iter().collect() }, words))
    }

    /// Returns the question that the blocks answer. By default the rate decides, in bytes if the operations
    /// of the levels differ in length; with a schedule, which determines the rate, the 99th percentile of the
    /// latency decides.
    pub fn question(&self) -> Question {
        let is_scheduled = self.jobs().any(|job| job.workload.rate != Rate::Unlimited);
        let lengths = |level: &Level| -> BTreeSet<u64> {
            level.scenario.jobs().map(|job| job.workload.block_mean()).collect()
        };
        let figure = match (self.is_of_profile(), is_scheduled) {
            (true, _) => PROFILE_FIGURE,
            (_, true) => SCHEDULED_FIGURE,
            _ if self.levels.windows(2).any(|pair| lengths(&pair[0]) != lengths(&pair[1])) => LENGTHS_FIGURE,
            _ => DEFAULT_FIGURE,
        };
        Question {
            factor: self.factor.clone(),
            levels: self.levels.iter().map(|level| level.name.clone()).collect(),
            figure: self.figure.clone().unwrap_or_else(|| figure.to_owned()),
            terms: self.terms,
            limits: self.limits.clone(),
        }
    }

    /// Returns the number of turns of a round.
    pub(crate) fn turns_in_round(&self) -> usize {
        if self.together { 1 } else { self.levels.len() }
    }

    /// Returns true if the blocks are runs of a profile.
    pub(crate) fn is_of_profile(&self) -> bool {
        self.jobs().any(|job| job.program.is_some())
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.levels.iter().flat_map(|level| level.scenario.jobs())
    }

    /// Returns the time of the minimum number of blocks, without warm-ups. A smaller budget cannot be kept.
    pub fn budget_least(&self) -> Nanos {
        let blocks = self.turns_in_round() * (PRACTICE + Design::ROUNDS_USUAL);
        Nanos(self.block.unwrap_or(BLOCK_MIN).0.saturating_mul(blocks as u64))
    }

    /// Returns the length of the measurement of a block: as requested, or such that the planned rounds fit
    /// into the budget.
    pub(crate) fn block_length(&self) -> Nanos {
        let blocks = self.turns_in_round() as u64 * (ROUNDS_PLANNED + PRACTICE as u64);
        let each = self.budget.0 / blocks * WARMUP_SHARE / (WARMUP_SHARE + 1);
        self.block.unwrap_or(Nanos(each.clamp(BLOCK_MIN.0, BLOCK_MAX.0)))
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::Bytes;
    use plumb_workload::{ByteRange, Workload};

    use super::*;

    #[test]
    fn levels_of_other_lengths_are_judged_by_their_bytes() {
        let level = |block: u64, rate: Rate| {
            let range = ByteRange { offset: Bytes(0), length: Bytes::mib(64) };
            let workload = Workload { rate, ..Workload::over(range, Bytes::kib(block)) };
            let scenario = Scenario { spans: vec![Span::new(vec![Job::on("sim:sas-15k", workload)])] };
            Level { name: block.to_string(), scenario }
        };
        let figure = |levels: [Level; 2]| {
            let experiment = Experiment {
                factor: "workload".to_owned(),
                levels: levels.into(),
                figure: None,
                terms: Terms::default(),
                limits: Vec::new(),
                budget: Nanos::secs(6),
                block: None,
                extent: Extent::default(),
                together: false,
            };
            experiment.question().figure
        };
        let free = |block| level(block, Rate::Unlimited);
        assert_eq!(figure([free(4), free(4)]), DEFAULT_FIGURE);
        assert_eq!(figure([free(4), free(64)]), LENGTHS_FIGURE);
        let mut two = free(4);
        two.scenario.spans[0].jobs.extend(free(4).scenario.spans.remove(0).jobs);
        assert_eq!(figure([free(4), two]), DEFAULT_FIGURE, "two jobs of the same length");
        assert_eq!(figure([free(4), level(64, Rate::iops(10.0))]), SCHEDULED_FIGURE);
    }
}

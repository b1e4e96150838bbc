//! From blocks to a document: a pure function, so that a recording can be judged again.

use std::collections::BTreeMap;

use plumb_report::document::ComparisonDocument;
use plumb_report::document::comparison::{
    Block, Contrast, Counts, DesignFacts, Estimate, LevelResult, LookFacts, Outcome,
};
use plumb_report::quantity::{percent, ratio as show_ratio};

use crate::design::{Design, Terms};
use crate::explanation::explain;
use crate::gate::Gate;
use crate::outcome::{Judged, judge_pairs};
use crate::statistics::{Flips, Interval, median, reach};

/// Question that an experiment answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Factor that differs between the levels.
    pub factor: String,
    /// Their names, the one that the others are compared with first.
    pub levels: Vec<String>,
    /// The figure that decides.
    pub figure: String,
    /// Requirements on the statistics.
    pub terms: Terms,
    /// Limits of the user's own.
    pub limits: Vec<Gate>,
}

/// Builds the document of what `blocks` of an interleaved experiment say. Facts of the run (environment,
/// verdicts, how it ended) are left empty.
pub fn document(question: &Question, design: &Design, blocks: Vec<Block>) -> ComparisonDocument {
    let rounds = whole_rounds(question.levels.len(), &blocks);
    let place = |level, round| blocks.iter().position(|block| block.level == level && block.round == round);
    let flips_of = |level: usize| {
        let swapped: Vec<bool> =
            (1..=rounds as u64).map(|round| place(level, round) < place(0, round)).collect();
        design.flips(&swapped)
    };
    // All figures of a level are judged by the same orders.
    let flips: Vec<Flips> = (0..question.levels.len()).map(flips_of).collect();
    let judged = |level: usize, figure: &str, error: f64| {
        let pairs =
            values(&blocks, level, rounds, figure)?.into_iter().zip(values(&blocks, 0, rounds, figure)?);
        let ratios: Vec<f64> = pairs.map(|(one, base)| one - base).collect();
        let reach = reach(&practised(&blocks, level, figure).unwrap_or_default());
        Some(judge_pairs(&ratios, reach, flips.get(level)?, error, &question.terms))
    };
    let asked = Asked { question, rounds, error: design.error_at(rounds), judged: &judged };
    let looks = design.looks().iter();
    let facts = DesignFacts {
        interleaved: true,
        rounds_max: design.rounds() as u64,
        looks: looks.map(|look| LookFacts { rounds: look.rounds as u64, error: look.error }).collect(),
        ..DesignFacts::default()
    };
    let mut document = asked.document(facts, &blocks);
    document.design.ended_early =
        rounds < design.rounds() && design.look_at(rounds).is_some() && is_clear(&document);
    ComparisonDocument { seed: design.seed(), measured: blocks, ..document }
}

/// Returns true if the outcome is clear, and on which side of each limit it is.
pub(crate) fn is_clear(document: &ComparisonDocument) -> bool {
    document.limits.iter().all(|limit| limit.exceeded.is_some())
        && document
            .contrasts()
            .all(|contrast| matches!(contrast.outcome, Outcome::Different | Outcome::Equivalent))
}

/// The logarithms of a figure in the blocks of a level; `None` if one has none.
pub(crate) fn values(blocks: &[Block], level: usize, rounds: usize, figure: &str) -> Option<Vec<f64>> {
    counted(blocks, level, rounds).map(|block| Some(block.figures.get(figure)?.ln())).collect()
}

/// The log ratios of a figure of a level to that of the first in the rounds of practice that were like those
/// that count: all but the first. `None` if a block has none.
pub(crate) fn practised(blocks: &[Block], level: usize, figure: &str) -> Option<Vec<f64>> {
    let of = |level: usize| {
        let practice = blocks.iter().filter(move |block| (block.level, block.round) == (level, 0));
        practice.skip(1).map(|block| Some(block.figures.get(figure)?.ln()))
    };
    of(level).zip(of(0)).map(|(one, base)| Some(one? - base?)).collect()
}

/// Function that returns what is known of the ratio of a figure of a level to that of the first, at an error.
type JudgedBy<'a> = dyn Fn(usize, &str, f64) -> Option<Judged> + 'a;

/// Question to blocks, and how a figure is judged.
pub(crate) struct Asked<'a> {
    pub(crate) question: &'a Question,
    /// Blocks of later rounds do not count.
    pub(crate) rounds: usize,
    /// The error that a figure may use now.
    pub(crate) error: f64,
    pub(crate) judged: &'a JudgedBy<'a>,
}

impl Asked<'_> {
    /// The document of `blocks`, which are left to be put in.
    pub(crate) fn document(&self, design: DesignFacts, blocks: &[Block]) -> ComparisonDocument {
        let question = self.question;
        let mut contrasts = (1..question.levels.len().max(2)).map(|level| self.contrast(blocks, level));
        let first = contrasts.next().unwrap_or_default();
        let others: Vec<Contrast> = contrasts.collect();
        let all = || std::iter::once(&first).chain(&others);
        let limits =
            all().flat_map(|contrast| question.limits.iter().map(|gate| gate.judge(contrast))).collect();
        let (error, equivalent) = (question.terms.error, question.terms.equivalent);
        let mut document = ComparisonDocument {
            schema: ComparisonDocument::SCHEMA.to_owned(),
            factor: question.factor.clone(),
            levels: (0..question.levels.len()).map(|level| self.level(blocks, level)).collect(),
            blocks: self.rounds as u64,
            figure: question.figure.clone(),
            limits,
            design: DesignFacts { error, equivalent, ..design },
            contrast: first,
            others,
            ..ComparisonDocument::default()
        };
        conclude(&mut document);
        document
    }

    fn level(&self, blocks: &[Block], level: usize) -> LevelResult {
        let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for block in counted(blocks, level, self.rounds) {
            block.figures.iter().for_each(|(name, value)| values.entry(name).or_default().push(*value));
        }
        let figure = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), median(&values)?));
        LevelResult {
            name: self.question.levels[level].clone(),
            figures: values.into_iter().filter_map(figure).collect(),
            counts: self.counts(blocks, level).unwrap_or_default(),
            distribution: Vec::new(),
        }
    }

    fn counts(&self, blocks: &[Block], level: usize) -> Option<Counts> {
        counted(blocks, level, self.rounds).map(|block| block.counts).reduce(Counts::plus)
    }

    fn contrast(&self, blocks: &[Block], level: usize) -> Contrast {
        let question = self.question;
        let name = |level: usize| question.levels.get(level).cloned().unwrap_or_default();
        let ratio_of =
            |judged: &Judged| Some(ratio(judged.center?, judged.interval, 1.0 - question.terms.error));
        // All figures at the error of this look: an experiment that ends early has chosen its end, for each
        // of them.
        let judged = |figure: &str| (self.judged)(level, figure, self.error);
        let decisive = judged(&question.figure);
        let named = |figure: &str| Some((figure.to_owned(), ratio_of(&judged(figure)?)?));
        let counts = self.counts(blocks, level).zip(self.counts(blocks, 0));
        let smallest = decisive.map(|judged| judged.smallest_detectable.exp_m1());
        // Without pairs there is nothing to judge.
        let outcome =
            decisive.filter(|judged| judged.center.is_some()).map_or(Outcome::NotMeasured, |of| of.outcome);
        Contrast {
            compared: name(level),
            against: name(0),
            outcome,
            ratio: decisive.as_ref().and_then(ratio_of),
            smallest_detectable: smallest.filter(|share| share.is_finite()),
            ratios: crate::figure_names().filter_map(named).collect(),
            explanation: counts.map(|(one, base)| explain(&one, &base)).unwrap_or_default(),
        }
    }
}

/// Writes down level and headline.
pub(crate) fn conclude(document: &mut ComparisonDocument) {
    let exceeded = document.limits.iter().any(|limit| limit.exceeded == Some(true));
    document.level = if exceeded { "warning" } else { "none" }.to_owned();
    let sentences: Vec<String> = document.contrasts().map(|contrast| sentence(contrast, document)).collect();
    document.headline = sentences.join("; ");
}

/// A contrast in one sentence.
fn sentence(contrast: &Contrast, document: &ComparisonDocument) -> String {
    let (figure, design) = (&document.figure, &document.design);
    let Contrast { compared, against, ratio, .. } = contrast;
    let Some(ratio) = ratio else {
        let why = match document.blocks {
            0 | 1 => "there are too few whole rounds of blocks".to_owned(),
            _ => format!("not every block has a {figure}"),
        };
        return format!("{compared} could not be compared with {against}: {why}");
    };
    let ends = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{} to {}", show_ratio(low), show_ratio(high)),
        _ => "not bounded by so few blocks".to_owned(),
    };
    let figures = format!("{} times, {} interval {ends}", show_ratio(ratio.median), percent(ratio.level));
    match contrast.outcome {
        Outcome::Different => {
            let way = if ratio.median > 1.0 { "more" } else { "less" };
            format!("{compared} has {way} {figure} than {against}: {figures}")
        }
        Outcome::Equivalent => format!(
            "{compared} and {against} have the same {figure} within {}: {figures}",
            percent(design.equivalent - 1.0)
        ),
        Outcome::NotJudged => format!(
            "{compared} has {} times the {figure} of {against}, from too few runs to tell that from chance",
            show_ratio(ratio.median)
        ),
        Outcome::NoneSeen | Outcome::NotMeasured => {
            let would = contrast.smallest_detectable.map_or_else(
                || "no difference could have been seen with so few blocks".to_owned(),
                |smallest| {
                    format!(
                        "one of {} would have been seen in four of five such experiments",
                        percent(smallest)
                    )
                },
            );
            format!(
                "no difference in {figure} between {compared} and {against} that this experiment could see; {would}: {figures}"
            )
        }
    }
}

/// How many rounds have a block of every level; practice is none.
pub(crate) fn whole_rounds(levels: usize, blocks: &[Block]) -> usize {
    let count = |level| blocks.iter().filter(|block| block.level == level && block.round > 0).count();
    (0..levels).map(count).min().unwrap_or(0)
}

/// The blocks of a level that count, in the order of their rounds.
fn counted(blocks: &[Block], level: usize, rounds: usize) -> impl Iterator<Item = &Block> {
    blocks.iter().filter(move |block| block.level == level && (1..=rounds as u64).contains(&block.round))
}

/// A ratio from its logarithm.
fn ratio(center: f64, interval: Interval, level: f64) -> Estimate {
    // The logarithm of a ratio that is not bounded from below gives 0.
    let is_known = |end: &f64| end.is_finite() && *end > 0.0;
    Estimate {
        median: center.exp(),
        low: Some(interval.low.exp()).filter(is_known),
        high: Some(interval.high.exp()).filter(is_known),
        level,
    }
}

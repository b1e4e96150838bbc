//! Judgement of an experiment's blocks: a pure function, so that a recording can be judged again.

use std::collections::{BTreeMap, BTreeSet};

use plumb_measure::median;
use plumb_report::document::comparison::{
    Block, Contrast, Counts, DesignFacts, Estimate, LevelResult, LookFacts, Outcome, Term,
};
use plumb_report::document::{ComparisonDocument, RunTarget};
use plumb_report::quantity::{percent, ratio as show_ratio};
use plumb_report::{RunDocument, figure_words, is_rate};

use crate::design::{Design, Terms};
use crate::explanation::explain;
use crate::gate::Gate;
use crate::outcome::{Judgement, judge_pairs};
use crate::statistics::{Flips, Interval, reach};

/// Question that an experiment answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Factor that differs between the levels.
    pub factor: String,
    /// Names of the levels, the one that the others are compared with first.
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
    let asked = BlockQuestion { question, rounds, error: design.error_at(rounds), judged: &judged };
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

/// Returns the logarithms of a figure in the blocks of a level; `None` if one has none.
pub(crate) fn values(blocks: &[Block], level: usize, rounds: usize, figure: &str) -> Option<Vec<f64>> {
    counted(blocks, level, rounds).map(|block| Some(block.figures.get(figure)?.ln())).collect()
}

/// Returns the log ratios of a figure of a level to that of the first in the rounds of practice that were
/// like those that count: all but the first. `None` if a block has none.
pub(crate) fn practised(blocks: &[Block], level: usize, figure: &str) -> Option<Vec<f64>> {
    let of = |level: usize| {
        let practice = blocks.iter().filter(move |block| (block.level, block.round) == (level, 0));
        practice.skip(1).map(|block| Some(block.figures.get(figure)?.ln()))
    };
    of(level).zip(of(0)).map(|(one, base)| Some(one? - base?)).collect()
}

/// Function that returns what is known of the ratio of a figure of a level to that of the first, at an error.
type JudgedBy<'a> = dyn Fn(usize, &str, f64) -> Option<Judgement> + 'a;

/// Question to blocks, and how a figure is judged.
pub(crate) struct BlockQuestion<'a> {
    pub(crate) question: &'a Question,
    /// Blocks of later rounds do not count.
    pub(crate) rounds: usize,
    /// The error that a figure may use now.
    pub(crate) error: f64,
    pub(crate) judged: &'a JudgedBy<'a>,
}

impl BlockQuestion<'_> {
    /// Returns the document of `blocks`, which are left to be put in.
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
        conclude(&mut document, None);
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
            ..LevelResult::default()
        }
    }

    fn counts(&self, blocks: &[Block], level: usize) -> Option<Counts> {
        counted(blocks, level, self.rounds).map(|block| block.counts).reduce(Counts::plus)
    }

    fn contrast(&self, blocks: &[Block], level: usize) -> Contrast {
        let question = self.question;
        let name = |level: usize| question.levels.get(level).cloned().unwrap_or_default();
        let ratio_of =
            |judged: &Judgement| Some(ratio(judged.center?, judged.interval, 1.0 - question.terms.error));
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
            ratios: crate::block::figure_names().filter_map(named).collect(),
            explanation: counts.map(|(one, base)| explained(&one, &base, outcome)).unwrap_or_default(),
        }
    }
}

/// Returns the terms of a difference. Where none was seen there is nothing to share out.
fn explained(compared: &Counts, against: &Counts, outcome: Outcome) -> Vec<Term> {
    let mut terms = explain(compared, against);
    if matches!(outcome, Outcome::NoneSeen | Outcome::Equivalent | Outcome::NotMeasured) {
        terms.iter_mut().for_each(|term| term.share = None);
    }
    terms
}

/// Writes down level and headline: the result of each pair of levels, which levels made nothing durable, and
/// whether the machine was `busy` with something else.
pub(crate) fn conclude(document: &mut ComparisonDocument, busy: Option<String>) {
    let exceeded = document.limits.iter().any(|limit| limit.exceeded == Some(true));
    document.level = if exceeded { "warning" } else { "none" }.to_owned();
    let mut sentences: Vec<String> =
        document.contrasts().map(|contrast| sentence(contrast, document)).collect();
    sentences.extend(not_durable(document));
    sentences.extend(busy);
    document.headline = sentences.join("; ");
}

/// Returns a contrast in one sentence.
fn sentence(contrast: &Contrast, document: &ComparisonDocument) -> String {
    let (figure, design) = (figure_words(&document.figure), &document.design);
    let Contrast { compared, against, ratio, .. } = contrast;
    let Some(ratio) = ratio else {
        let why = match document.blocks {
            0 | 1 => "there are too few whole rounds of blocks".to_owned(),
            _ => format!("not every block has a figure of {figure}"),
        };
        return format!("{compared} could not be compared with {against}: {why}");
    };
    let ends = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{} interval {}", percent(ratio.level), range(low, high)),
        _ => "not bounded by so few blocks".to_owned(),
    };
    let than = format!("{} {against}", difference(&document.figure, ratio));
    match contrast.outcome {
        Outcome::Different => match is_better(&document.figure, ratio.median) {
            true => format!("{compared} is better: {than} ({ends})"),
            false => format!("{against} is better: {compared} has {than} ({ends})"),
        },
        Outcome::Equivalent => format!(
            "{compared} and {against} have the same {figure} within {}: {} ({ends})",
            percent(design.equivalent - 1.0),
            change(ratio.median)
        ),
        Outcome::NotJudged => format!("{compared} has {than}, from too few runs to tell that from chance"),
        Outcome::NoneSeen | Outcome::NotMeasured => {
            let would = contrast.smallest_detectable.map_or_else(
                || "too few blocks to show a difference".to_owned(),
                |smallest| {
                    format!("four of five such experiments would have shown one of {}", percent(smallest))
                },
            );
            format!(
                "no difference in {figure} between {compared} and {against} that this experiment could see: {} ({ends}); {would}",
                change(ratio.median)
            )
        }
    }
}

/// Fate of the writes of a level if nothing was asked for to make them durable, or if its syncs are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum UnaskedWrites<'a> {
    Lost,
    InPageCache,
    NotAskedFor,
    /// Mount option or attribute that makes each write durable all the same.
    Synchronous(&'a str),
}

impl<'a> UnaskedWrites<'a> {
    fn find(level: &'a LevelResult) -> Option<Self> {
        if level.loses_synced {
            return Some(Self::Lost);
        }
        match (level.counts.unsynced_writes, level.synchronous.as_deref(), level.counts.page_cache) {
            (0, ..) => None,
            (_, Some(by), _) => Some(Self::Synchronous(by)),
            (_, None, true) => Some(Self::InPageCache),
            (_, None, false) => Some(Self::NotAskedFor),
        }
    }

    fn words(self) -> String {
        let words = match self {
            Self::Lost => {
                "made nothing durable: a power cut takes what volatile caches or memory still hold, synced or not"
            }
            Self::InPageCache => "made nothing durable: its writes stay in the page cache",
            Self::NotAskedFor => {
                "asked for no durable write: a power cut takes what a drive's cache still has"
            }
            Self::Synchronous(by) => {
                return format!("asked for no sync: the {by} makes each write synchronous");
            }
        };
        words.to_owned()
    }
}

/// Returns what makes each write to `targets`, which are of `run`, synchronous; `None` if nothing does for
/// one of them.
pub(crate) fn synchronous<'a>(
    run: &RunDocument,
    targets: impl IntoIterator<Item = &'a RunTarget>,
) -> Option<String> {
    let wrote = targets.into_iter().filter(|target| target.sides.write.ios > 0);
    let by: Option<Vec<&str>> = wrote.map(|target| run.path_of(target)?.synchronous()).collect();
    by?.first().map(|by| (*by).to_owned())
}

/// Returns a clause for each group of levels without durable writes: their names, and where the writes are.
fn not_durable(document: &ComparisonDocument) -> Vec<String> {
    let reasons: Vec<Option<UnaskedWrites<'_>>> = document.levels.iter().map(UnaskedWrites::find).collect();
    if let Some(Some(first)) = reasons.first()
        && reasons.iter().all(|reason| *reason == Some(*first))
    {
        return vec![format!("every level {}", first.words())];
    }
    let each: BTreeSet<UnaskedWrites<'_>> = reasons.iter().flatten().copied().collect();
    let said = each.into_iter().filter_map(|reason| {
        let levels = document.levels.iter().zip(&reasons).filter(|(_, of)| **of == Some(reason));
        let names: Vec<&str> = levels.map(|(level, _)| level.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{} {}", names.join(" and "), reason.words()))
    });
    said.collect()
}

/// Returns true if a ratio of this figure above 1, or below 1 of times and costs, is the better one.
fn is_better(figure: &str, ratio: f64) -> bool {
    if is_rate(figure) { ratio > 1.0 } else { ratio < 1.0 }
}

/// Describes a ratio of two levels, before the name of the one that it is to: `8% fewer IOPS than`,
/// `12% higher p99 than`, from double on `5.5 times the IOPS of`, up to half `8% of the IOPS of`.
fn difference(figure: &str, ratio: &Estimate) -> String {
    let (words, median) = (figure_words(figure), ratio.median);
    let (more, less) = if is_rate(figure) { ("more", "fewer") } else { ("higher", "lower") };
    match median {
        same if (same - 1.0).abs() < UNCHANGED => format!("the same {words} as"),
        double if double >= 2.0 => format!("{} the {words} of", change(double)),
        _ if ratio.high.is_some_and(is_part) => format!("{} of the {words} of", percent(median)),
        above if above > 1.0 => format!("{} {more} {words} than", percent(above - 1.0)),
        below => format!("{} {less} {words} than", percent(1.0 - below)),
    }
}

/// Distance of a ratio from 1 below which it is shown as no change.
const UNCHANGED: f64 = 0.0005;

/// Returns true if a ratio is shown as a part, not as a change.
fn is_part(ratio: f64) -> bool {
    ratio <= 0.5
}

/// Shows a ratio as people read it: `-8%`, `+12%`, and from double on `5.5 times`.
fn change(ratio: f64) -> String {
    match ratio {
        same if (same - 1.0).abs() < UNCHANGED => "0%".to_owned(),
        double if double >= 2.0 => format!("{} times", show_ratio(double)),
        more if more > 1.0 => format!("+{}", percent(more - 1.0)),
        less => format!("-{}", percent(1.0 - less)),
    }
}

/// Shows an interval of ratios as [`difference`] shows the one within it.
fn range(low: f64, high: f64) -> String {
    match low >= 2.0 {
        true => format!("{} to {} times", show_ratio(low), show_ratio(high)),
        false if is_part(high) => format!("{} to {}", percent(low), percent(high)),
        false => format!("{} to {}", change(low), change(high)),
    }
}

/// Returns the number of rounds that have a block of every level; practice is none.
pub(crate) fn whole_rounds(levels: usize, blocks: &[Block]) -> usize {
    let count = |level| blocks.iter().filter(|block| block.level == level && block.round > 0).count();
    (0..levels).map(count).min().unwrap_or(0)
}

/// Returns the blocks of a level that count, in the order of their rounds.
fn counted(blocks: &[Block], level: usize, rounds: usize) -> impl Iterator<Item = &Block> {
    blocks.iter().filter(move |block| block.level == level && (1..=rounds as u64).contains(&block.round))
}

/// Returns a ratio from its logarithm.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(figure: &str, estimate: Estimate, outcome: Outcome) -> String {
        let level = |name: &str| LevelResult { name: name.to_owned(), ..LevelResult::default() };
        let mut document = ComparisonDocument {
            figure: figure.to_owned(),
            levels: vec![level("cached"), level("direct")],
            contrast: Contrast {
                compared: "direct".to_owned(),
                against: "cached".to_owned(),
                outcome,
                ratio: Some(estimate),
                ..Contrast::default()
            },
            ..ComparisonDocument::default()
        };
        conclude(&mut document, None);
        document.headline
    }

    fn estimate(median: f64, low: f64, high: f64) -> Estimate {
        Estimate { median, low: Some(low), high: Some(high), level: 0.95 }
    }

    #[test]
    fn the_sentence_says_which_is_better_and_by_how_much_with_a_sign() {
        assert_eq!(
            said("iops", estimate(0.92, 0.9, 0.95), Outcome::Different),
            "cached is better: direct has 8% fewer IOPS than cached (95% interval -10% to -5%)"
        );
        assert_eq!(
            said("p99", estimate(0.92, 0.9, 0.95), Outcome::Different),
            "direct is better: 8% lower p99 than cached (95% interval -10% to -5%)"
        );
        assert_eq!(
            said("p99", estimate(1.12, 1.1, 1.15), Outcome::Different),
            "cached is better: direct has 12% higher p99 than cached (95% interval +10% to +15%)"
        );
        assert_eq!(
            said("iops", estimate(1.59, 1.49, 1.69), Outcome::Different),
            "direct is better: 59% more IOPS than cached (95% interval +49% to +69%)"
        );
        assert_eq!(
            said("iops", estimate(0.08, 0.02, 0.16), Outcome::Different),
            "cached is better: direct has 8% of the IOPS of cached (95% interval 2% to 16%)"
        );
        // Figure and interval are shown in one way, also where the half lies within.
        assert_eq!(
            said("iops", estimate(0.45, 0.4, 0.6), Outcome::Different),
            "cached is better: direct has 55% fewer IOPS than cached (95% interval -60% to -40%)"
        );
        assert_eq!(
            said("iops", estimate(5.5, 5.0, 6.0), Outcome::Different),
            "direct is better: 5.5 times the IOPS of cached (95% interval 5 to 6 times)"
        );
        assert!(
            said("iops", estimate(1.0, 0.98, 1.3), Outcome::NoneSeen)
                .contains("could see: 0% (95% interval -2% to +30%)")
        );
    }

    #[test]
    fn a_level_that_made_nothing_durable_and_a_busy_machine_are_in_the_sentence() {
        let level = |name: &str, unsynced_writes| LevelResult {
            name: name.to_owned(),
            counts: Counts { unsynced_writes, page_cache: true, ..Counts::default() },
            ..LevelResult::default()
        };
        let mut document = ComparisonDocument {
            levels: vec![level("cached", 9), level("direct", 0)],
            ..ComparisonDocument::default()
        };
        conclude(&mut document, Some("the machine was busy: others used the devices too".to_owned()));
        let end = "; cached made nothing durable: its writes stay in the page cache; the machine was busy: others used \
                   the devices too";
        assert!(document.headline.ends_with(end), "{}", document.headline);
        document.levels[1].loses_synced = true;
        document.levels.push(level("dsync", 0));
        conclude(&mut document, None);
        let end = "; direct made nothing durable: a power cut takes what volatile caches or memory still hold, synced or not; cached made \
                   nothing durable: its writes stay in the page cache";
        assert!(document.headline.ends_with(end), "{}", document.headline);
        document.levels.pop();
        document.levels[1].loses_synced = false;
        document.levels[1].counts = Counts { unsynced_writes: 9, page_cache: false, ..Counts::default() };
        conclude(&mut document, None);
        let end = "; cached made nothing durable: its writes stay in the page cache; direct asked for no durable write: a \
                   power cut takes what a drive's cache still has";
        assert!(document.headline.ends_with(end), "{}", document.headline);
        document.levels[1].synchronous = Some("mount option sync".to_owned());
        conclude(&mut document, None);
        let end = "; cached made nothing durable: its writes stay in the page cache; direct asked for no sync: the mount \
                   option sync makes each write synchronous";
        assert!(document.headline.ends_with(end), "{}", document.headline);
        document.levels[1].synchronous = None;
        document.levels[1].counts.page_cache = true;
        conclude(&mut document, None);
        let end = "; every level made nothing durable: its writes stay in the page cache";
        assert!(document.headline.ends_with(end), "{}", document.headline);
    }

    #[test]
    fn shares_are_given_of_a_difference_alone() {
        let counts = |seconds: f64| Counts {
            seconds: 1.0,
            operations: 100,
            slot_seconds: 1.0,
            operation_seconds: seconds,
            device_ios: Some(100),
            device_seconds: Some(seconds),
            ..Counts::default()
        };
        let slow = Counts { operations: 50, device_ios: Some(50), ..counts(1.0) };
        let shares = |outcome| {
            let terms = explained(&slow, &counts(1.0), outcome);
            terms.iter().filter(|term| term.share.is_some()).count()
        };
        assert!(shares(Outcome::Different) > 0);
        assert_eq!((shares(Outcome::NoneSeen), shares(Outcome::Equivalent)), (0, 0));
    }
}

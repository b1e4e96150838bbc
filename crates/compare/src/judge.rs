//! Judgement of an experiment's blocks: a pure function, so that a recording can be judged again.

use std::collections::{BTreeMap, BTreeSet};

use plumb_measure::median;
use plumb_report::document::comparison::{
    Block, Contrast, Counts, DesignFacts, Estimate, LevelResult, LookFacts, Outcome, Term,
};
use plumb_report::document::{ComparisonDocument, RunTarget};
use plumb_report::quantity::{percent, ratio as show_ratio};
use plumb_report::{RunDocument, figure_words, is_rate};

use crate::block::{DEFAULT_FIGURE, PROFILE_FIGURE, is_idle};
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
    /// Figure that decides.
    pub figure: String,
    /// Requirements on the statistics.
    pub terms: Terms,
    /// Limits set by the user.
    pub limits: Vec<Gate>,
}

/// Creates the document of an interleaved experiment from its `blocks`. Facts of the run (environment,
/// verdicts, end) are left empty.
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

/// Returns true if the outcome is clear, including the side of each limit.
pub(crate) fn is_clear(document: &ComparisonDocument) -> bool {
    document.limits.iter().all(|limit| limit.exceeded.is_some())
        && document
            .contrasts()
            .all(|contrast| matches!(contrast.outcome, Outcome::Different | Outcome::Equivalent))
}

/// Returns the logarithms of a figure in the blocks of a level; `None` if a block does not have the figure,
/// or if at least half of the blocks completed nothing.
pub(crate) fn values(blocks: &[Block], level: usize, rounds: usize, figure: &str) -> Option<Vec<f64>> {
    if is_idle(counted(blocks, level, rounds)) {
        return None;
    }
    counted(blocks, level, rounds).map(|block| Some(block.figures.get(figure)?.ln())).collect()
}

/// Returns the log ratios of a figure of a level to that of the first level, in all rounds of practice but
/// the first, which has no warm-up. `None` if a block does not have the figure.
pub(crate) fn practised(blocks: &[Block], level: usize, figure: &str) -> Option<Vec<f64>> {
    let of = |level: usize| {
        let practice = blocks.iter().filter(move |block| (block.level, block.round) == (level, 0));
        practice.skip(1).map(|block| Some(block.figures.get(figure)?.ln()))
    };
    of(level).zip(of(0)).map(|(one, base)| Some(one? - base?)).collect()
}

/// Function that judges the ratio of a figure of a level to that of the first level, at an error.
type JudgedBy<'a> = dyn Fn(usize, &str, f64) -> Option<Judgement> + 'a;

/// Question about blocks, with the method to judge a figure.
pub(crate) struct BlockQuestion<'a> {
    pub(crate) question: &'a Question,
    /// Number of rounds that count.
    pub(crate) rounds: usize,
    /// Error that a figure may use.
    pub(crate) error: f64,
    pub(crate) judged: &'a JudgedBy<'a>,
}

impl BlockQuestion<'_> {
    /// Returns the document of `blocks`, without the blocks themselves.
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
        let is_idle = is_idle(counted(blocks, level, self.rounds));
        for block in counted(blocks, level, self.rounds).filter(|_| !is_idle) {
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
        // All figures are judged at the error of this look: an early end depends on the data, which affects
        // each of them.
        let judged = |figure: &str| (self.judged)(level, figure, self.error);
        let decisive = judged(&question.figure);
        let named = |figure: &str| Some((figure.to_owned(), ratio_of(&judged(figure)?)?));
        let counts = self.counts(blocks, level).zip(self.counts(blocks, 0));
        let smallest = decisive.map(|judged| judged.smallest_detectable.exp_m1());
        // Without pairs there is nothing to judge.
        let outcome =
            decisive.filter(|judged| judged.center.is_some()).map_or(Outcome::NotMeasured, |of| of.outcome);
        let contrast = Contrast {
            compared: name(level),
            against: name(0),
            outcome,
            ratio: decisive.as_ref().and_then(ratio_of),
            smallest_detectable: smallest.filter(|share| share.is_finite()),
            ratios: crate::block::figure_names().filter_map(named).collect(),
            explanation: Vec::new(),
        };
        let explanation = counts.map(|(one, base)| explained(&contrast, &one, &base));
        Contrast { explanation: explanation.unwrap_or_default(), ..contrast }
    }
}

/// Returns the terms of a difference: without shares if none was found, or if all blocks together contradict
/// it.
fn explained(contrast: &Contrast, compared: &Counts, against: &Counts) -> Vec<Term> {
    let mut terms = explain(compared, against);
    if matches!(contrast.outcome, Outcome::NoneSeen | Outcome::Equivalent | Outcome::NotMeasured)
        || contradicting(contrast, compared, against).is_some()
    {
        terms.iter_mut().for_each(|term| term.share = None);
    }
    terms
}

/// Factor between the ratio of a typical round and that of all blocks together from which on these contradict
/// each other.
const APART_FROM: f64 = 1.25;
/// Logarithm of a factor so small that it never contradicts.
const NEAR: f64 = 0.02;

/// Returns the ratio of the operations per second of all blocks together, from which a difference is
/// explained, if it contradicts that of a typical round, because few blocks have most of the operations.
fn contradicting(contrast: &Contrast, compared: &Counts, against: &Counts) -> Option<f64> {
    let ratios = &contrast.ratios;
    let typical = ratios.get(PROFILE_FIGURE).or_else(|| ratios.get(DEFAULT_FIGURE))?.median.ln();
    let rate = |counts: &Counts| counts.operations as f64 / counts.seconds;
    let pooled = rate(compared) / rate(against);
    let apart = (pooled.ln() - typical).abs();
    (apart > NEAR && apart > APART_FROM.ln().min(0.5 * typical.abs())).then_some(pooled)
}

/// Sets the level and the headline of the document: the result of each pair of levels, the levels that made
/// nothing durable, and `busy`, other work of the machine.
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
        let is_idle =
            |level: &&LevelResult| [compared, against].contains(&&level.name) && level.figures.is_empty();
        let why = match document.levels.iter().find(is_idle) {
            _ if document.blocks <= 1 => "there are too few whole rounds of blocks".to_owned(),
            Some(level) => idle_words(&level.name),
            None => {
                format!("not every block has a figure of {figure}; longer ones (`--duration`) may have it")
            }
        };
        return format!("{compared} could not be compared with {against}: {why}");
    };
    let ends = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{} interval {}", percent(ratio.level), range(low, high)),
        _ => "not bounded by so few blocks".to_owned(),
    };
    let than = format!("{} {against}", difference(&document.figure, ratio));
    match contrast.outcome {
        Outcome::Different => {
            let together = together_words(contrast, document);
            match is_better(&document.figure, ratio.median) {
                true => format!("{compared} is better: {than} ({ends}){together}"),
                false => format!("{against} is better: {compared} has {than} ({ends}){together}"),
            }
        }
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

/// Returns a sentence if all blocks together contradict the typical round and a rate decides; otherwise
/// nothing.
fn together_words(contrast: &Contrast, document: &ComparisonDocument) -> String {
    let Contrast { compared, against, .. } = contrast;
    let counts = |name: &String| document.levels.iter().find(|level| level.name == *name);
    let pooled = counts(compared).zip(counts(against)).and_then(|(one, base)| {
        contradicting(contrast, &one.counts, &base.counts).filter(|_| is_rate(&document.figure))
    });
    pooled.map_or_else(String::new, |pooled| {
        let all = Estimate { median: pooled, high: Some(pooled), ..Estimate::default() };
        let is_of_profile = document.figure == PROFILE_FIGURE;
        let than = difference(if is_of_profile { PROFILE_FIGURE } else { DEFAULT_FIGURE }, &all);
        format!("; no cause is given, because over all blocks together {compared} has {than} {against}")
    })
}

/// Returns the reason why the level `name` has no figures, and the remedy.
pub(crate) fn idle_words(name: &str) -> String {
    format!("{name} completed no operation in half of its blocks or more; use longer blocks (`--duration`)")
}

/// Fate of the writes of a level if their durability was not requested, or if syncs are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum UnaskedWrites<'a> {
    Lost,
    InPageCache,
    NotAskedFor,
    /// Mount option or attribute that makes each write durable anyway.
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

/// Returns the setting that makes each write to `targets` of `run` synchronous; `None` if a target has none.
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

/// Returns true if `ratio` is an improvement: above 1 for a rate, below 1 for a time or cost.
fn is_better(figure: &str, ratio: f64) -> bool {
    if is_rate(figure) { ratio > 1.0 } else { ratio < 1.0 }
}

/// Describes a ratio of two levels in words that precede the name of the second one: `8% fewer IOPS than`,
/// `12% higher p99 than`; from double on `5.5 times the IOPS of`, up to half `8% of the IOPS of`.
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

/// Formats a ratio for people: `-8%`, `+12%`, and from double on `5.5 times`.
fn change(ratio: f64) -> String {
    match ratio {
        same if (same - 1.0).abs() < UNCHANGED => "0%".to_owned(),
        double if double >= 2.0 => format!("{} times", show_ratio(double)),
        more if more > 1.0 => format!("+{}", percent(more - 1.0)),
        less => format!("-{}", percent(1.0 - less)),
    }
}

/// Formats an interval of ratios, both ends in one form: that of [`difference`] for a ratio in it, or as
/// factors if only the upper end is one.
fn range(low: f64, high: f64) -> String {
    match high >= 2.0 {
        true => format!("{} to {} times", show_ratio(low), show_ratio(high)),
        false if is_part(high) => format!("{} to {}", percent(low), percent(high)),
        false => format!("{} to {}", change(low), change(high)),
    }
}

/// Returns the number of rounds, without practice, that have a block of every level.
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
        // Figure and interval have one form, even if the interval contains a half.
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

    /// Returns the document of rounds with these numbers of operations per second of both levels.
    fn judged(rounds: &[[u64; 2]]) -> ComparisonDocument {
        let question = Question {
            factor: "cache".to_owned(),
            levels: vec!["none".to_owned(), "wb".to_owned()],
            figure: DEFAULT_FIGURE.to_owned(),
            terms: Terms::default(),
            limits: Vec::new(),
        };
        let block = |level: usize, round: usize, operations: u64| Block {
            level,
            round: round as u64,
            seconds: 1.0,
            figures: BTreeMap::from([(DEFAULT_FIGURE.to_owned(), (operations as f64).max(0.5))]),
            counts: Counts {
                seconds: 1.0,
                operations,
                slot_seconds: 1.0,
                operation_seconds: 1.0,
                device_ios: Some(operations),
                device_seconds: Some(1.0),
                ..Counts::default()
            },
            ..Block::default()
        };
        // A design always has equally many rounds that begin with each level.
        let blocks = (1..).zip(rounds).flat_map(|(round, [base, other])| {
            let mut blocks = [block(0, round, *base), block(1, round, *other)];
            blocks.rotate_left(round % 2);
            blocks
        });
        let design = Design::new(2, rounds.len(), &question.terms, false, 1);
        document(&question, &design, blocks.collect())
    }

    #[test]
    fn a_level_that_completed_nothing_has_no_ratio() {
        let idle = judged(&[[36, 0]; 12]);
        assert_eq!((idle.contrast.outcome, idle.contrast.ratio), (Outcome::NotMeasured, None));
        assert!(idle.headline.contains("wb completed no operation"), "{}", idle.headline);
        assert!(idle.headline.contains("--duration"), "{}", idle.headline);
        assert!(idle.levels[1].figures.is_empty() && !idle.levels[0].figures.is_empty());
        // A few busy blocks among more that completed nothing give no ratio either; a single stall is judged.
        let half: Vec<[u64; 2]> = (0..12).map(|round| [36, 300 * (round % 2)]).collect();
        assert_eq!(judged(&half).contrast.ratio, None);
        let stalled: Vec<[u64; 2]> = (0..12).map(|round| [36, if round == 5 { 0 } else { 12 }]).collect();
        assert_eq!(judged(&stalled).contrast.outcome, Outcome::Different);
    }

    #[test]
    fn no_cause_is_given_where_all_blocks_together_contradict_the_typical_one() {
        let steady = judged(&[[800, 100]; 12]);
        assert!(steady.contrast.explanation.iter().any(|term| term.share.is_some()));
        assert!(!steady.headline.contains("no cause"), "{}", steady.headline);
        // In three of twelve rounds the second level is nearly as fast.
        let few: Vec<[u64; 2]> =
            (0..12).map(|round| [800, if round % 4 == 0 { 700 } else { 50 + round }]).collect();
        let few = judged(&few);
        assert_eq!(few.contrast.outcome, Outcome::Different);
        assert!(few.contrast.explanation.iter().all(|term| term.share.is_none()));
        assert!(few.headline.contains("because over all blocks together wb has 2"), "{}", few.headline);
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
            let contrast = Contrast { outcome, ..Contrast::default() };
            let terms = explained(&contrast, &slow, &counts(1.0));
            terms.iter().filter(|term| term.share.is_some()).count()
        };
        assert!(shares(Outcome::Different) > 0);
        assert_eq!((shares(Outcome::NoneSeen), shares(Outcome::Equivalent)), (0, 0));
    }
}

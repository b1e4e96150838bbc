//! Outline of a comparison, for all formats. All text in it is printable.

use std::collections::BTreeSet;

use plumb_path::Severity;
use plumb_text::printable;

use crate::document::ComparisonDocument;
use crate::document::comparison::{Block, Contrast, Estimate, Outcome, Prediction, Term};
use crate::facts::{Fact, Figure, facts_of};
use crate::headline::{Headline, capital, incomplete, sentence};
use crate::outline::{Item, Outline, Section};
use crate::quantity::{
    NONE, count, counted, duration, mebibytes, or_dash, percent, rate, ratio, three_digits,
};
use crate::terminal::{Cell, Ink, Table};

/// Note in every report of interleaved blocks.
const HOLDS_FOR: &str = "The unit is the block: each block gives one value, and a ratio compares blocks of \
                         the same round. The interval holds the ratios that a permutation test, over the \
                         orders that could have been drawn, does not reject. A ratio that lies further from \
                         the others than the pilot rounds lay from each other counts as one at that \
                         distance.";

/// Note that replaces [`HOLDS_FOR`] if the levels ran at the same time.
const HOLDS_FOR_TOGETHER: &str = "The unit is the block, and a ratio compares the blocks of one round, \
                                  which ran at the same time and compete for what they share. The interval \
                                  holds the ratios that a permutation test does not reject, where either \
                                  level may come out ahead in each round.";

/// Returns the prefix of each title about a workload; empty if there is only one workload.
pub(crate) fn before_title(document: &ComparisonDocument) -> String {
    if document.name.is_empty() { String::new() } else { format!("{}: ", printable(&document.name)) }
}

/// Returns the report of `document`.
pub(crate) fn outline(document: &ComparisonDocument) -> Outline<'_> {
    Outline {
        command: "compare",
        of: &document.factor,
        headline: headline(document),
        figures: match document.chapters() {
            [one] => figures(one),
            several => several.iter().map(ratio_figure).collect(),
        },
        sections: document.chapters().iter().flat_map(sections).collect(),
        facts_title: "How it was done",
        facts: facts(document),
        environment: &document.environment,
        run_directory: document.run_directory.as_deref(),
    }
}

fn sections(document: &ComparisonDocument) -> Vec<Section> {
    let why = |contrast: &Contrast| {
        let Some(table) = explanation(contrast) else { return Vec::new() };
        let title = (document.others.is_empty()).then(String::new);
        let title = title.unwrap_or_else(|| format!("{} against {}:", contrast.compared, contrast.against));
        let of = Some(Item::Line(printable(&title))).filter(|_| !title.is_empty());
        let is_offset = contrast.explanation.iter().any(|term| term.share.is_some_and(|share| share > 1.0));
        let offset = is_offset.then(|| {
            Item::Line("A share above 100% is offset by terms that make the difference smaller.".to_owned())
        });
        of.into_iter().chain([Item::Table(table)]).chain(offset).collect()
    };
    let found = document.verdicts.iter().filter(|finding| finding.severity > Severity::Info);
    let is_judged = document.blocks > 0;
    let mut sections = vec![
        Section::new("The difference", Item::table(is_judged.then(|| ratios(document)))).charted(),
        Section::new(
            "Why: the time from one operation to the next",
            document.contrasts().flat_map(why).collect(),
        )
        .charted(),
        Section::new("Limits", Item::table(limits(document))),
        Section::new("The levels", Item::table(is_judged.then(|| levels(document)))),
        Section::new("How sure", Item::lines(&how_sure(document))),
        Section::new("What the rules found in the blocks", found.map(Item::conclusion).collect()),
        Section::new("Notes", Item::lines(&document.notes)),
        Section::new("Blocks", Item::table(Some(blocks(document)))).detail(),
    ];
    if !document.name.is_empty() {
        sections.iter_mut().for_each(|of| of.title = (before_title(document) + &of.title).into());
    }
    sections
}

/// Returns the interim results while more blocks follow: the median of each level, and the sentence of the
/// outcome of each difference.
pub fn standing(document: &ComparisonDocument) -> Vec<String> {
    let figure = &document.figure;
    let median = |level: &crate::document::comparison::LevelResult| {
        let median = level.figures.get(figure).map(|of| value(figure, *of));
        format!("{}: {figure} {}", printable(&level.name), median.unwrap_or_else(|| NONE.to_owned()))
    };
    let mut lines: Vec<String> = document.levels.iter().map(median).collect();
    lines.push(sentence(&document.headline));
    lines
}

/// Describes the prediction from practice, for a budget that holds `planned` rounds.
pub fn predicted(prediction: &Prediction, planned: u64) -> String {
    let Prediction { difference, power, rounds, times_as_long, seconds, smallest_detectable } = prediction;
    let longer = match *times_as_long > 1.0 {
        true => format!(" of blocks {} times as long", ratio(*times_as_long)),
        false => String::new(),
    };
    let found = match *smallest_detectable > 0.0 {
        true => format!("one of {}", percent(*smallest_detectable)),
        false => "any".to_owned(),
    };
    format!(
        "to detect a difference of {} with a probability of {}, {rounds} rounds{longer} are needed, a \
         budget of {}; the {planned} rounds of this budget detect {found}",
        percent(*difference),
        percent(*power),
        duration(*seconds)
    )
}

/// Builds the headline; for several workloads, from the results of all of them.
fn headline(document: &ComparisonDocument) -> Headline {
    let exceeded = document.chapters().iter().any(|chapter| chapter.level == "warning");
    let labels: BTreeSet<&'static str> = document.chapters().iter().map(label).collect();
    let label = match labels.first() {
        _ if exceeded => "Limit exceeded",
        Some(label) if labels.len() == 1 => label,
        _ => "Several outcomes",
    };
    let meanings = document.chapters().iter().map(|chapter| (chapter, meaning(chapter)));
    let meanings = meanings.filter(|(_, meaning)| !meaning.is_empty());
    let meanings: Vec<String> = meanings.map(|(chapter, meaning)| before_title(chapter) + &meaning).collect();
    let verdict = sentence(&document.headline);
    // Levels that are recorded runs have the names of files.
    let is_file = !document.design.interleaved
        && document.levels.iter().any(|level| document.headline.starts_with(&level.name));
    Headline {
        severity: exceeded.then_some(Severity::Warning),
        label,
        verdict: if is_file { verdict } else { capital(&verdict) },
        meaning: meanings.join(" "),
        quality: String::new(),
        incomplete: incomplete(document.complete, document.incomplete_because.as_deref()),
    }
}

fn label(document: &ComparisonDocument) -> &'static str {
    match (document.contrast.ratio, document.contrast.outcome) {
        _ if document.partial => "Partial",
        (None, _) if document.blocks == 0 && document.complete => "Predicted",
        (None, _) | (_, Outcome::NotMeasured) => "Not measured",
        _ if document.limits.iter().any(|limit| limit.exceeded.is_none()) => "Not measured",
        (_, Outcome::Different) => "Different",
        (_, Outcome::Equivalent) => "Equivalent",
        (_, Outcome::NoneSeen) => "No difference seen",
        (_, Outcome::NotJudged) => "Not judged",
    }
}

/// Returns true if higher values of the figure are better, as for a rate.
pub fn is_rate(figure: &str) -> bool {
    matches!(figure, "iops" | "bytes-per-second" | "transactions")
}

/// Returns the name of a figure within a sentence.
pub fn figure_words(figure: &str) -> &str {
    match figure {
        "iops" => "IOPS",
        "bytes-per-second" => "bytes per second",
        "transactions" => "transactions per second",
        "cpu-per-million" => "processor time per million operations",
        "mean" => "mean time",
        "durable-mean" => "mean time until durable",
        "durable-p50" => "p50 until durable",
        "durable-p99" => "p99 until durable",
        "sync-mean" => "mean time of a sync",
        "sync-p50" => "p50 of a sync",
        "sync-p99" => "p99 of a sync",
        "p999" => "p99.9",
        other => other,
    }
}

/// Returns the term that has the largest share of a difference; `None` if none has a share.
pub fn main_term(terms: &[Term]) -> Option<&Term> {
    let shared = terms.iter().filter_map(|term| Some((term, term.share?)));
    shared.max_by(|one, two| one.1.total_cmp(&two.1)).map(|(term, _)| term)
}

/// Returns the term that contributes most to a difference between rates, in words.
fn main_cause(document: &ComparisonDocument) -> Option<String> {
    let main = main_term(&document.contrast.explanation)?;
    // The terms refer to the time between operations, or between transactions for a profile. They explain
    // neither other figures nor more bytes in fewer operations.
    let contrast = &document.contrast;
    let operations = contrast.ratios.get("transactions").or_else(|| contrast.ratios.get("iops"));
    let slower = operations.map(|ratio| ratio.median < 1.0);
    let is_alike = slower.is_none_or(|slower| contrast.ratio.is_some_and(|of| slower == (of.median < 1.0)));
    let is_explained = contrast.outcome == Outcome::Different && is_rate(&document.figure) && is_alike;
    is_explained.then(|| match main.term.as_str() {
        "remainder" => "the counters do not explain most of it".to_owned(),
        _ => format!(
            "{}, which {} {} from one operation to the next",
            main.sentence,
            if main.seconds > 0.0 { "costs" } else { "saves" },
            duration(main.seconds.abs())
        ),
    })
}

/// Explains the meaning of the headline.
fn meaning(document: &ComparisonDocument) -> String {
    let exceeded = document.limits.iter().find(|limit| limit.exceeded == Some(true));
    let mut meaning = Vec::new();
    meaning.extend(
        exceeded.map(|limit| format!("The limit {} is exceeded by {}.", limit.limit, limit.compared)),
    );
    let undecided = document.limits.iter().filter(|limit| limit.exceeded.is_none());
    meaning.extend(undecided.filter(|_| document.contrast.ratio.is_some()).map(|limit| {
        format!(
            "The limit {} of {} is not decided: it is inside the interval, or there is no interval.",
            limit.limit, limit.compared
        )
    }));
    meaning.extend(main_cause(document).map(|cause| format!("Why: {cause}.")));
    if !document.design.interleaved {
        meaning.push(
            "Not interleaved: anything that changed between the runs counts as a difference.".to_owned(),
        );
    }
    meaning.join(" ")
}

/// Returns the ratio of the figure that decides.
fn ratio_figure(document: &ComparisonDocument) -> Figure {
    let contrast = &document.contrast;
    let (compared, against) = (printable(&contrast.compared), printable(&contrast.against));
    let note =
        format!("{}{} of {compared} to {against}", before_title(document), figure_words(&document.figure));
    Figure::new("Ratio", or_dash(contrast.ratio.map(|of| of.median), ratio), "times", note)
}

/// Returns the figures that matter most.
fn figures(document: &ComparisonDocument) -> Vec<Figure> {
    let contrast = &document.contrast;
    let level = contrast.ratio.map_or(1.0 - document.design.error, |ratio| ratio.level);
    vec![
        ratio_figure(document),
        Figure::new(
            "Interval",
            or_dash(contrast.ratio, |of| ends(&of, ratio)),
            "",
            format!("holds the true ratio in {} of experiments", percent(level)),
        ),
        Figure::new(
            "Smallest detectable",
            or_dash(contrast.smallest_detectable, percent),
            "",
            "found in four of five such experiments".to_owned(),
        ),
        Figure::new("Blocks", count(document.blocks), "", "of each level".to_owned()),
    ]
}

/// Returns the ends of an interval.
pub(crate) fn ends(estimate: &Estimate, show: impl Fn(f64) -> String) -> String {
    match (estimate.low, estimate.high) {
        (None, None) => "not bounded".to_owned(),
        (low, high) => format!("{} to {}", or_dash(low, &show), or_dash(high, &show)),
    }
}

/// Returns the name of an outcome within a sentence. Ratios up to `equivalent` count as the same.
pub fn outcome_words(outcome: Outcome, equivalent: f64) -> String {
    match outcome {
        Outcome::Different => "different".to_owned(),
        Outcome::Equivalent => format!("equivalent within {}", percent(equivalent - 1.0)),
        Outcome::NoneSeen => "no difference that this experiment could see".to_owned(),
        Outcome::NotJudged => "not judged: too few runs".to_owned(),
        Outcome::NotMeasured => "not measured".to_owned(),
    }
}

fn ratios(document: &ComparisonDocument) -> Table {
    let rows = document.contrasts().flat_map(|contrast| {
        let name = printable(&format!("{} / {}", contrast.compared, contrast.against));
        let outcome = outcome_words(contrast.outcome, document.design.equivalent);
        let main = (name, &document.figure, contrast.ratio, outcome, Ink::Bold);
        let others = contrast.ratios.iter().filter(|(figure, _)| **figure != document.figure);
        let others = others.map(|(figure, of)| (String::new(), figure, Some(*of), String::new(), Ink::Plain));
        std::iter::once(main).chain(others)
    });
    Table::for_rows(rows)
        .left("", |(name, ..)| name.clone())
        .left("figure", |(_, figure, ..)| *figure)
        .right("ratio", |(_, _, of, _, ink)| Cell::inked(*ink, or_dash(of.map(|of| of.median), ratio)))
        .left("interval", |(_, _, of, ..)| or_dash(*of, |of| ends(&of, ratio)))
        .left("outcome", |(_, _, _, outcome, _)| outcome.clone())
        .table()
}

/// Returns the display name of a term of an explanation.
pub(crate) fn term_words(term: &Term) -> &'static str {
    match term.term.as_str() {
        "depth" => "depth",
        "sync-count" => "number of syncs",
        "flushes-per-sync" => "flushes for each sync",
        "flush-count" => "number of flushes",
        "flush-cost" => "time of a flush",
        "sync-calls" => "other sync time",
        "device-ios" => "number of I/Os",
        "device-io-cost" => "time of an I/O",
        "queueing" => "queueing",
        "processor" => "processor",
        "processor-wait" => "wait for a processor",
        "remainder" => "not explained",
        _ => "other",
    }
}

/// Returns a time with its sign.
pub(crate) fn signed(seconds: f64) -> String {
    let sign = if seconds > 0.0 { "+" } else { "" };
    format!("{sign}{}", duration(seconds))
}

fn explanation(contrast: &Contrast) -> Option<Table> {
    Table::for_rows(&contrast.explanation)
        .left("term", |term| term_words(term))
        .right("share", |term| Cell::inked(Ink::Bold, or_dash(term.share, percent)))
        .right("time", |term| signed(term.seconds))
        .left("figures", |term| printable(&term.sentence))
        .if_any()
}

fn limits(document: &ComparisonDocument) -> Option<Table> {
    let result = |exceeded| match exceeded {
        Some(true) => Cell::inked(Ink::Red, "exceeded by the whole interval"),
        Some(false) => Cell::inked(Ink::Green, "kept by the whole interval"),
        None => Cell::inked(Ink::Yellow, "not decided: the limit is inside the interval, or there is none"),
    };
    Table::for_rows(&document.limits)
        .left("limit", |limit| printable(&limit.limit))
        .left("of", |limit| printable(&limit.compared))
        .left("result", |limit| result(limit.exceeded))
        .if_any()
}

/// Returns a value of the figure of this name, with its unit.
pub(crate) fn value(figure: &str, value: f64) -> String {
    match figure {
        "iops" | "transactions" => format!("{}/s", rate(value)),
        "bytes-per-second" => format!("{} MiB/s", mebibytes(value)),
        "cpu-per-million" => format!("{} s", three_digits(value)),
        _ => duration(value),
    }
}

fn levels(document: &ComparisonDocument) -> Table {
    let figures: BTreeSet<&String> = document.levels.iter().flat_map(|level| level.figures.keys()).collect();
    let table = Table::for_rows(figures).left("median over the blocks", |figure| *figure);
    let columns = document.levels.iter().fold(table, |table, level| {
        let median = |figure: &String| level.figures.get(figure).copied();
        table.right(&printable(&level.name), |figure| or_dash(median(figure), |of| value(figure, of)))
    });
    columns.table()
}

fn how_sure(document: &ComparisonDocument) -> Vec<String> {
    let design = &document.design;
    let mut lines = Vec::new();
    let predicted = design
        .prediction
        .map(|of| format!("Forecast of the pilot blocks: {}", sentence(&predicted(&of, design.rounds_max))));
    if document.blocks == 0 {
        lines.extend(predicted);
        lines.push("No round that counts was run: the levels are not judged.".to_owned());
        return lines;
    }
    // A forecast uses the same words for the rounds to come.
    let measured = match predicted {
        Some(_) => format!(", from the {} measured", counted(document.blocks, "round")),
        None => String::new(),
    };
    lines.extend(predicted);
    for contrast in document.contrasts() {
        let would = match contrast.smallest_detectable {
            Some(smallest) => {
                format!(
                    "a difference of {} would be found in four of five such experiments",
                    percent(smallest)
                )
            }
            None => "no difference could have been found with so few blocks".to_owned(),
        };
        lines.push(format!("{} against {}{measured}: {would}.", contrast.compared, contrast.against));
    }
    if !design.interleaved {
        return lines;
    }
    let looks: Vec<String> = design.looks.iter().map(|look| look.rounds.to_string()).collect();
    let early = match design.ended_early {
        true => "; it ended early, because the outcome was clear",
        false if document.blocks < design.rounds_max => {
            "; it was stopped before the last round: the intervals hold as often as stated only if the \
             results did not decide when it was stopped"
        }
        false => "",
    };
    // Looks after the last round that was run did not take place.
    let planned = if document.blocks < design.rounds_max { "were to be" } else { "were" };
    lines.push(format!(
        "The results {planned} looked at after {} rounds, as fixed before the first; the error of {} is \
         shared among these looks{early}.",
        looks.join(", "),
        percent(design.error)
    ));
    lines.push(if design.together { HOLDS_FOR_TOGETHER } else { HOLDS_FOR }.to_owned());
    lines
}

fn blocks(document: &ComparisonDocument) -> Table {
    let (levels, figure) = (&document.levels, &document.figure);
    let round = |block: &Block| match block.round {
        0 => "pilot".to_owned(),
        round => round.to_string(),
    };
    Table::for_rows(&document.measured)
        .right("round", |block| round(block))
        .left("level", |block| or_dash(levels.get(block.level), |level| printable(&level.name)))
        .right("measured", |block| duration(block.seconds))
        .right("settled after", |block| or_dash(block.settled_after, duration))
        .right("value", |block| or_dash(block.figure(figure), |of| value(figure, of)))
        .table()
}

fn rounds(document: &ComparisonDocument) -> String {
    format!("{}{} of at most {}", before_title(document), document.blocks, document.design.rounds_max)
}

fn facts(document: &ComparisonDocument) -> Vec<Fact> {
    let design = &document.design;
    let names: Vec<&str> = document.levels.iter().map(|level| level.name.as_str()).collect();
    let order = match (design.together, design.interleaved) {
        (true, _) => "all levels at the same time",
        (false, true) => "interleaved, the order drawn from the seed",
        (false, false) => "not interleaved",
    };
    let own = [
        ("Factor", format!("{}: {}", document.factor, names.join(", "))),
        ("Order", order.to_owned()),
        ("Rounds", document.chapters().iter().map(rounds).collect::<Vec<_>>().join("; ")),
        ("Measured time of a block", or_dash(design.block_seconds, duration)),
        ("Warm-up of a block", or_dash(design.warmup_seconds, duration)),
        ("Equivalent", format!("up to a ratio of {}", ratio(design.equivalent))),
    ];
    facts_of(own, &document.environment, document.run_directory.as_ref())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::document::comparison::{DesignFacts, LimitResult};

    #[test]
    fn a_cause_is_of_operations_and_of_a_profile_of_its_transactions() {
        let cause = |figure: &str, ratios: &[(&str, f64)]| {
            let term = Term { share: Some(0.9), ..Term::default() };
            let ratios = ratios.iter().map(|(name, median)| {
                ((*name).to_owned(), Estimate { median: *median, ..Estimate::default() })
            });
            let ratios: BTreeMap<String, Estimate> = ratios.collect();
            let contrast = Contrast {
                outcome: Outcome::Different,
                ratio: ratios.get(figure).copied(),
                explanation: vec![term],
                ratios,
                ..Contrast::default()
            };
            main_cause(&ComparisonDocument {
                figure: figure.to_owned(),
                contrast,
                ..ComparisonDocument::default()
            })
        };
        assert!(cause("bytes-per-second", &[("iops", 0.5), ("bytes-per-second", 4.0)]).is_none());
        assert!(cause("bytes-per-second", &[("iops", 1.5), ("bytes-per-second", 4.0)]).is_some());
        assert!(cause("transactions", &[("iops", 0.5), ("transactions", 4.0)]).is_some());
    }

    #[test]
    fn an_undecided_limit_is_not_measured_whatever_the_ratio() {
        let ratio = Some(Estimate { median: 1.2, low: Some(1.1), high: Some(1.3), ..Estimate::default() });
        let contrast = Contrast { outcome: Outcome::Different, ratio, ..Contrast::default() };
        let of = |exceeded| {
            let limits = vec![LimitResult {
                limit: "iops ratio < 1.25".to_owned(),
                exceeded,
                ..LimitResult::default()
            }];
            headline(&ComparisonDocument {
                limits,
                contrast: contrast.clone(),
                ..ComparisonDocument::default()
            })
        };
        assert_eq!((of(Some(false)).label, of(None).label), ("Different", "Not measured"));
        assert!(of(None).meaning.contains("iops ratio < 1.25"), "{}", of(None).meaning);
    }

    #[test]
    fn a_forecast_and_the_measured_figure_say_which_they_are() {
        let prediction = Prediction { smallest_detectable: 0.02, ..Prediction::default() };
        let mut document = ComparisonDocument {
            blocks: 8,
            contrast: Contrast { smallest_detectable: Some(0.05), ..Contrast::default() },
            design: DesignFacts {
                interleaved: true,
                rounds_max: 64,
                prediction: Some(prediction),
                ..DesignFacts::default()
            },
            ..ComparisonDocument::default()
        };
        let lines = how_sure(&document);
        assert!(lines[0].starts_with("Forecast of the pilot blocks: to detect"), "{lines:?}");
        assert!(lines[1].contains(", from the 8 rounds measured: a difference of 5"), "{lines:?}");
        document.design.prediction = None;
        assert!(!how_sure(&document)[0].contains("measured"), "one figure needs no name");
    }
}

//! Comparison of runs that were recorded earlier: each run is one value, and the test is that of two
//! independent samples.
//!
//! # Limitations
//! The runs were not interleaved. Any change between them (other load, a warmer drive, more data) counts as a
//! difference of the levels, which no test can detect. The document says so.

use std::collections::BTreeSet;
use std::path::Path;

use plumb_report::document::comparison::{Block, DesignFacts, Outcome};
use plumb_report::document::{RunJob, RunTarget};
use plumb_report::verdict::loses_writes;
use plumb_report::{ComparisonDocument, RunDocument};

use crate::block::{DEFAULT_FIGURE, LENGTHS_FIGURE, Way, block_of};
use crate::judge::{BlockQuestion, Question, conclude, synchronous, values};
use crate::outcome::{Judgement, judge};
use crate::statistics::ShiftInterval;

/// Note on every comparison of recorded runs.
const NOT_INTERLEAVED: &str = "The runs were recorded one after the other, not interleaved: anything that \
                               changed between them counts as a difference of the levels.";

/// Error of runs that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unlike {
    /// A run without the figure that decides.
    #[error("{run} has no {figure}: it cannot be compared by that figure")]
    Figure {
        /// Name of the run.
        run: String,
        /// Name of the figure.
        figure: String,
    },
    /// A run that measured nothing.
    #[error("{0}: no operation completed in this run, so it cannot be compared; record a longer one")]
    Idle(String),
    /// A run that is named twice.
    #[error("{0}: a run counts as one measurement however often it is named; name each once")]
    Twice(String),
}

/// Relative difference from which on measured mean lengths of operations count as different.
const LENGTHS_DIFFER: f64 = 0.05;

/// Returns the figure that decides by default between runs: the rate, in bytes if their operations differ in
/// length.
pub fn recorded_figure<'a>(runs: impl IntoIterator<Item = &'a RunDocument>) -> &'static str {
    let mut runs = runs.into_iter();
    let Some(first) = runs.next() else { return DEFAULT_FIGURE };
    if runs.any(|run| differ_in_length(first, run)) { LENGTHS_FIGURE } else { DEFAULT_FIGURE }
}

/// Returns true if the operations of two runs differ in length: in the length that their jobs name or, where
/// lengths are drawn or no job is known, in the mean that was measured.
fn differ_in_length(one: &RunDocument, other: &RunDocument) -> bool {
    let jobs = |run: &'_ RunDocument| -> BTreeSet<(Option<u64>, String)> {
        let jobs = run.spans.iter().flat_map(|span| &span.jobs);
        jobs.map(|job| (job.block_bytes, job.description.clone())).collect()
    };
    let lengths = |jobs: &BTreeSet<(Option<u64>, String)>| -> Option<BTreeSet<u64>> {
        jobs.iter().map(|(length, _)| *length).collect()
    };
    let (mine, others) = (jobs(one), jobs(other));
    if !mine.is_empty() && !others.is_empty() {
        if let (Some(mine), Some(others)) = (lengths(&mine), lengths(&others)) {
            return mine != others;
        }
        if mine == others {
            return false;
        }
    }
    let mean = |run: &RunDocument| run.total.application.io_bytes_mean.filter(|mean| *mean > 0.0);
    let ratio = mean(one).zip(mean(other)).map_or(1.0, |(one, other)| one / other);
    ratio.max(1.0 / ratio) > 1.0 + LENGTHS_DIFFER
}

/// Compares `runs` with the runs `against`, each with its name. The first level is that of `against`.
///
/// # Errors
/// If a run completed nothing, lacks the figure that decides, or is named twice.
pub fn compare_recorded(
    question: &Question,
    against: &[(String, RunDocument)],
    runs: &[(String, RunDocument)],
) -> Result<ComparisonDocument, Unlike> {
    named_once(&against.iter().chain(runs).collect::<Vec<_>>())?;
    let mut blocks = Vec::new();
    for (level, group) in [against, runs].into_iter().enumerate() {
        for (round, (name, run)) in (1..).zip(group) {
            let block = block_of_run(run);
            if block.counts.operations == 0 {
                return Err(Unlike::Idle(name.clone()));
            }
            if !block.figures.contains_key(&question.figure) {
                let (run, figure) = (name.clone(), question.figure.clone());
                return Err(Unlike::Figure { run, figure });
            }
            blocks.push(Block { level, round, ..block });
        }
    }
    let rounds = against.len().max(runs.len());
    let judged = |level: usize, figure: &str, error: f64| {
        let (one, base) = (values(&blocks, level, rounds, figure)?, values(&blocks, 0, rounds, figure)?);
        let shift = ShiftInterval::between(&one, &base);
        let judged = judge(shift.center(), |error| shift.interval(error), error, &question.terms);
        let is_bounded = judged.smallest_detectable.is_finite();
        let outcome = if is_bounded { judged.outcome } else { Outcome::NotJudged };
        Some(Judgement { outcome, ..judged })
    };
    let asked = BlockQuestion { question, rounds, error: question.terms.error, judged: &judged };
    let mut document = asked.document(DesignFacts::default(), &blocks);
    for (level, group) in document.levels.iter_mut().zip([against, runs]) {
        level.loses_synced = group.iter().any(|(_, run)| loses_writes(run, &run.targets));
        let synchronous = group.iter().map(|(_, run)| synchronous(run, &run.targets));
        level.synchronous = synchronous.reduce(|one, other| one.filter(|_| other.is_some())).flatten();
    }
    let all = || against.iter().chain(runs);
    let mut notes = vec![NOT_INTERLEAVED.to_owned()];
    notes.extend(all().filter_map(|(_, run)| Some(format!("Imported: {}.", run.imported_from.as_ref()?))));
    let differing = differing_workloads(against, runs);
    notes.extend(
        differing_words(all().map(|(_, run)| run)).filter(|_| differing.is_none()).map(str::to_owned),
    );
    notes.extend(differing_devices(against, runs));
    if let Some((name, _)) = all().find(|(_, run)| run.total.sync.is_uncounted) {
        document.contrast.explanation.clear();
        notes.push(format!("{name} does not say how many syncs were made: the difference is not explained."));
    }
    document.blocks = against.len().min(runs.len()) as u64;
    let found: Vec<_> = all().flat_map(|(_, run)| run.verdicts.clone()).collect();
    conclude(&mut document, plumb_report::machine_busy(&found));
    if document.contrast.outcome == Outcome::NotJudged {
        let needed = runs_needed(question.terms.error);
        document.headline = format!("{}; to judge it, record {needed} runs of each", document.headline);
    }
    if let Some(differing) = differing {
        document.headline = format!("{differing}. {}", document.headline);
        notes.insert(0, format!("{differing}: the ratio reflects the workloads as much as the storage."));
    }
    // A run that ended early makes the comparison incomplete.
    document.failed = all().any(|(_, run)| run.failed);
    document.incomplete_because =
        all().find_map(|(name, run)| Some(format!("{name}: {}", run.incomplete_because.as_ref()?)));
    document.complete = document.incomplete_because.is_none();
    document.notes = notes;
    document.measured = blocks;
    Ok(document)
}

/// Returns what a run measured.
fn block_of_run(run: &RunDocument) -> Block {
    let jobs = || run.spans.iter().flat_map(|span| &span.jobs);
    let page_cache = jobs().next().is_some() && jobs().all(|job| job.caching.is_cached());
    let is_durable = |job: &RunJob| job.durable_write_every.is_some() || job.flush.is_some();
    let asks_durable = run.total.sync.ios > 0 || jobs().any(is_durable);
    block_of(&run.total, Way { page_cache, asks_durable, length: 0.0 }, run.duration)
}

/// Refuses a run that is named twice: it would count as two runs that agree. A copy of a run is the same run.
fn named_once(all: &[&(String, RunDocument)]) -> Result<(), Unlike> {
    let place = |name: &str| Path::new(name).canonicalize().ok();
    // Directory and name do not count.
    let is_equal = |one: &RunDocument, other: &RunDocument| {
        (&one.environment, &one.targets, &one.total, &one.spans)
            == (&other.environment, &other.targets, &other.total, &other.spans)
    };
    for (number, (name, run)) in all.iter().enumerate() {
        let is_same = |(earlier, other): &&&(String, RunDocument)| {
            let is_there = place(earlier).is_some_and(|earlier| Some(earlier) == place(name));
            is_there || is_equal(other, run)
        };
        if let Some((earlier, _)) = all[..number].iter().find(is_same) {
            return Err(Unlike::Twice(match earlier == name {
                true => format!("{name} is named twice"),
                false => format!("{name} is the same run as {earlier}"),
            }));
        }
    }
    Ok(())
}

/// Returns the differences between the workloads of the groups, as a sentence without its end; `None` if they
/// are equal.
fn differing_workloads(against: &[(String, RunDocument)], runs: &[(String, RunDocument)]) -> Option<String> {
    let of = |group: &[(String, RunDocument)]| {
        let mut all: Vec<String> = group.iter().map(|(_, run)| workload_of(run)).collect();
        all.sort_unstable();
        all.dedup();
        all.join(" or ")
    };
    let (base, one) = (of(against), of(runs));
    (base != one).then(|| format!("The workloads differ ({one}, against {base})"))
}

/// Returns the difference in the words of runs whose jobs look equal; `None` if only their targets differ.
fn differing_words<'a>(runs: impl Iterator<Item = &'a RunDocument>) -> Option<&'static str> {
    let runs: Vec<&RunDocument> = runs.collect();
    let differ = |is_seed: bool| {
        let is_wanted = |line: &&str| line.starts_with("seed = ") == is_seed;
        let lines = |run: &'a RunDocument| -> Vec<&'a str> {
            let lines = run.workload.lines().filter(|line| !line.starts_with("targets = "));
            lines.filter(is_wanted).collect()
        };
        runs.windows(2).any(|pair| lines(pair[0]) != lines(pair[1]))
    };
    match (differ(false), differ(true)) {
        (true, _) => Some("The runs did not all run the same workload."),
        (false, true) => Some("The runs were not all from the same seed."),
        (false, false) => None,
    }
}

/// Returns a description of the devices on which the groups ran, if they are known and differ.
fn differing_devices(against: &[(String, RunDocument)], runs: &[(String, RunDocument)]) -> Option<String> {
    let of = |group: &[(String, RunDocument)]| -> Option<String> {
        let mut all = BTreeSet::new();
        for (_, run) in group {
            let host = run.environment.host.as_deref().map_or_else(String::new, |host| format!(" of {host}"));
            for path in run.all_paths() {
                let lowest = path.layers.last().map(|layer| layer.name.clone());
                let devices = path.block_devices();
                let devices = if devices.is_empty() { lowest.into_iter().collect() } else { devices };
                all.extend(devices.into_iter().map(|device| format!("{device}{host}")));
            }
        }
        (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(", "))
    };
    let (base, one) = (of(against)?, of(runs)?);
    (base != one).then(|| format!("The runs were on different devices: {one}, against {base}."))
}

/// Returns the requested workload of a run, job by job, without its targets.
fn workload_of(run: &RunDocument) -> String {
    let job = |target: &RunTarget| {
        let job = run.job_of(target)?;
        let mut words = vec![job.description.clone(), job.caching.word().to_owned()];
        words.extend(target.sides.depth.map(|depth| format!("{depth} in flight")));
        words.extend(
            Some(job.threads).filter(|threads| *threads > 1).map(|threads| format!("{threads} threads")),
        );
        words.extend(job.flush.map(|_| "with syncs".to_owned()));
        words.extend(job.durable_write_every.map(|_| "each durable".to_owned()));
        words.extend(job.scheduled.then(|| "at a given rate".to_owned()));
        Some(words.join(", "))
    };
    let mut jobs: Vec<String> = run.targets.iter().filter_map(job).collect();
    jobs.dedup();
    jobs.join(" and ")
}

/// Returns the number of runs of each level from which on the most extreme order is significant at `error`.
fn runs_needed(error: f64) -> usize {
    const MANY: usize = 20;
    let is_enough = |runs: &usize| {
        let zeroes = vec![0.0; *runs];
        ShiftInterval::between(&zeroes, &zeroes).interval(error).half_width().is_finite()
    };
    (2..MANY).find(is_enough).unwrap_or(MANY)
}

#[cfg(test)]
mod tests {
    use plumb_path::{Cache, Flush, Fua, Layer, LayerKind, WritePath};
    use plumb_report::document::{RunKind, RunSpan, Sides};
    use plumb_workload::Caching;

    use super::*;
    use crate::design::Terms;

    fn run(name: &str, block: u64, bytes_per_second: f64) -> (String, RunDocument) {
        let job = RunJob {
            description: format!("random writes of {} KiB", block >> 10),
            block_bytes: Some(block),
            caching: Caching::Direct,
            threads: 1,
            ..RunJob::default()
        };
        let mut total = Sides { depth: Some(1), ..Sides::default() };
        total.application.seconds = 10.0;
        total.application.operations = 1000;
        total.application.bytes_per_second = bytes_per_second;
        total.application.io_bytes_mean = Some(block as f64);
        let target = RunTarget { sides: total.clone(), ..RunTarget::default() };
        let span = RunSpan { jobs: vec![job], total: total.clone(), ..RunSpan::default() };
        let document = RunDocument {
            duration: 10.0,
            targets: vec![target],
            spans: vec![span],
            total,
            ..RunDocument::empty(RunKind::Load)
        };
        (name.to_owned(), document)
    }

    fn question() -> Question {
        Question {
            factor: "recorded runs".to_owned(),
            levels: vec!["a".to_owned(), "b".to_owned()],
            figure: "bytes-per-second".to_owned(),
            terms: Terms::default(),
            limits: Vec::new(),
        }
    }

    #[test]
    fn one_run_each_is_not_judged_and_says_its_ratio() {
        let (base, other) = ([run("a", 4096, 1e6)], [run("b", 4096, 5.5e6)]);
        let document = compare_recorded(&question(), &base, &other).unwrap();
        assert_eq!(document.contrast.outcome, Outcome::NotJudged);
        assert!((document.contrast.ratio.unwrap().median - 5.5).abs() < 1e-9);
        assert_eq!(
            document.headline,
            "b has 5.5 times the bytes per second of a, from too few runs to tell that from chance; to judge it, record 4 runs of each"
        );
        // Mann and Whitney: of 8 runs in 70 orders the two extreme ones are less than 1 of 20, of 6 in 20
        // orders they are not.
        let four = |name: &str, from: f64| -> Vec<_> {
            (0..4).map(|more| run(&format!("{name}{more}"), 4096, from + f64::from(more))).collect()
        };
        let document = compare_recorded(&question(), &four("a", 1e6), &four("b", 5.5e6)).unwrap();
        assert_eq!(document.contrast.outcome, Outcome::Different);
        let document = compare_recorded(&question(), &four("a", 1e6)[..3], &four("b", 5.5e6)[..3]).unwrap();
        assert_eq!(document.contrast.outcome, Outcome::NotJudged);
    }

    #[test]
    fn runs_of_other_lengths_are_judged_by_their_bytes() {
        let figure = |one: &RunDocument, other: &RunDocument| recorded_figure([one, other]);
        let ((_, small), (_, large)) = (run("a", 4096, 1e6), run("b", 65_536, 5.5e6));
        assert_eq!(figure(&small, &small), DEFAULT_FIGURE);
        assert_eq!(figure(&small, &large), LENGTHS_FIGURE);
        // Lengths that are drawn differ in their measured means by chance alone.
        let drawn = |mean: f64, words: &str| {
            let mut drawn = small.clone();
            let job = &mut drawn.spans[0].jobs[0];
            (job.block_bytes, job.description) = (None, words.to_owned());
            drawn.total.application.io_bytes_mean = Some(mean);
            drawn
        };
        assert_eq!(figure(&drawn(9000.0, "4 to 16 KiB"), &drawn(10_000.0, "4 to 16 KiB")), DEFAULT_FIGURE);
        assert_eq!(figure(&drawn(9000.0, "4 to 16 KiB"), &drawn(40_000.0, "4 to 64 KiB")), LENGTHS_FIGURE);
        // An observation has no jobs.
        let observed = |mean: f64| RunDocument { spans: Vec::new(), ..drawn(mean, "") };
        assert_eq!(figure(&observed(4096.0), &observed(4100.0)), DEFAULT_FIGURE);
        assert_eq!(figure(&observed(4096.0), &observed(65_536.0)), LENGTHS_FIGURE);
        assert_eq!(figure(&small, &observed(4096.0)), DEFAULT_FIGURE);
    }

    #[test]
    fn syncs_that_nobody_counted_explain_no_difference() {
        let (base, mut other) = (run("a", 4096, 1e6), run("b", 4096, 5.5e6));
        let compared = |other: &(String, RunDocument)| {
            compare_recorded(&question(), std::slice::from_ref(&base), std::slice::from_ref(other)).unwrap()
        };
        assert!(!compared(&other).contrast.explanation.is_empty());
        other.1.total.sync.is_uncounted = true;
        let document = compared(&other);
        assert!(document.contrast.explanation.is_empty());
        assert!(document.notes.iter().any(|note| note.starts_with("b does not say how many syncs")));
    }

    #[test]
    fn a_run_without_operations_is_named() {
        let (base, mut idle) = (run("a", 4096, 1e6), run("b", 4096, 1e6));
        idle.1.total.application.operations = 0;
        let error = compare_recorded(&question(), &[base], &[idle]).unwrap_err();
        assert_eq!(error, Unlike::Idle("b".to_owned()));
    }

    #[test]
    fn what_the_workloads_differ_in_is_said_first() {
        let (base, other) = ([run("a", 4096, 1e6)], [run("b", 65_536, 5.5e6)]);
        let document = compare_recorded(&question(), &base, &other).unwrap();
        let first = "The workloads differ (random writes of 64 KiB, direct, 1 in flight, against random writes of 4 KiB, direct, 1 in flight). b has";
        assert!(document.headline.starts_with(first), "{}", document.headline);
    }

    fn disk(name: &str) -> Layer {
        Layer {
            kind: LayerKind::VirtioDisk,
            name: name.to_owned(),
            identity: None,
            cache: Cache::Unknown,
            flush: Flush::Forwarded,
            fua: Fua::Unknown,
            untorn: None,
            evidence: Vec::new(),
            below: Vec::new(),
        }
    }

    #[test]
    fn the_name_of_a_target_is_no_difference_of_the_workload_and_its_device_is_one_of_its_own() {
        let on = |name: &str, words: &str, device: Option<&str>| {
            let (name, mut document) = run(name, 4096, 1e6);
            document.workload = words.to_owned();
            // Runs are distinguished by their start times.
            document.environment.started_at = name.clone();
            document.path =
                device.map(|device| WritePath { layers: vec![disk(device)], ..WritePath::default() });
            (name, document)
        };
        let notes = |one: (String, RunDocument), other: (String, RunDocument)| {
            let document = compare_recorded(&question(), &[one], &[other]).unwrap();
            document.notes[1..].to_vec()
        };
        let base = || on("a", "targets = [\"f1\"]\nwrite = 100\nseed = 7\n", Some("vda"));
        let none: [&str; 0] = [];
        assert_eq!(notes(base(), on("b", "targets = [\"f2\"]\nwrite = 100\nseed = 7\n", Some("vda"))), none);
        let elsewhere = on("b", "targets = [\"f2\"]\nwrite = 100\nseed = 7\n", Some("vdb"));
        assert_eq!(notes(base(), elsewhere), ["The runs were on different devices: vdb, against vda."]);
        let seed = on("b", "targets = [\"f1\"]\nwrite = 100\nseed = 8\n", None);
        assert_eq!(notes(base(), seed), ["The runs were not all from the same seed."]);
        let other = on("b", "targets = [\"f1\"]\nwrite = 50\nseed = 7\n", None);
        assert_eq!(notes(base(), other), ["The runs did not all run the same workload."]);
    }
}

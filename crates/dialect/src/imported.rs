//! Results printed by other programs, imported as recorded documents. They are judged and compared like
//! plumb's own runs.
//!
//! The rules are those for plumb's own runs. Of the evidence that rules need, an import contains:
//!
//! | evidence | of fio | of DiskSpd | rules, for example |
//! |---|---|---|---|
//! | operations, latencies, caching | yes | yes | `page-cache` by the time of an operation, `too-short` |
//! | failures | yes | no | `load-failed`, `operations-failed` |
//! | processor time of a job with one thread | yes | no | `generator-bound` |
//! | counts of the devices (`disk_util` with sectors, fio 3.36 and later, one group of jobs) | yes | no | `page-cache`, `cached-below` |
//! | write path, flushes of its own, rate over time | no | no | `flush-dropped`, `flushes-merged`, `not-steady` say nothing |
//!
//! A file may contain several results. Each is a separate document; results are never added up.
//!
//! # Limitations
//! - Imports contain no write path, except for `ioengine=null`, which discards data. Rules that need a write
//!   path do not apply.
//! - A percentile that was not printed is unknown. It is not replaced by another one, nor by that of the
//!   completion (`clat`) where the submission takes part of the time.
//! - Percentiles of several jobs together are known only if fio printed its bins (`json+`).

use std::collections::BTreeMap;
use std::path::Path;

use plumb_block::Bytes;
use plumb_measure::{ApplicationSide, Latency, Quality, StorageSide};
use plumb_path::null_device;
use plumb_report::document::{
    CpuSeconds, DirectionResult, Environment, RunDocument, RunJob, RunKind, RunSpan, RunTarget, Sides,
};
use plumb_report::quantity::{count, counted, duration};
use plumb_report::verdict;
use plumb_text::shell_word;

use crate::error::Error;
use crate::{diskspd, fio};

/// Percentiles of a latency in percent, with their names.
pub(crate) const PERCENTILES: [(f64, &str); 5] =
    [(25.0, "p25"), (50.0, "p50"), (75.0, "p75"), (99.0, "p99"), (99.9, "p99.9")];

/// Maximum plausible count. A larger one is a counter that fell below 0.
pub(crate) const COUNT_MAX: u64 = i64::MAX as u64;
/// Maximum plausible time, in seconds: a hundred years.
const SECONDS_MAX: f64 = 100.0 * 365.25 * 86_400.0;
/// Range accepted by [`possible_seconds`], for error messages.
pub(crate) const POSSIBLE_TIMES: &str = "expected a time from 0 to 100 years";
/// Upper bounds of operations, and of bytes, per second.
const RATES_MAX: [f64; 2] = [1e12, 1e16];

/// Converts `number` units of time to seconds; `None` if the time is implausible.
pub(crate) fn possible_seconds(number: f64, per_second: f64) -> Option<f64> {
    Some(number / per_second).filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds))
}

/// Fraction by which a complete run may be shorter than requested.
const SHORT_MAX: f64 = 0.1;

/// Returns the reason why `name` is incomplete if it ran for `ran` of the requested `asked` seconds; `None`
/// if it ran long enough.
pub(crate) fn short_of(name: &str, ran: f64, asked: f64) -> Option<String> {
    let is_short = ran > 0.0 && ran < asked * (1.0 - SHORT_MAX);
    is_short.then(|| format!("{name} ran {} of the {} that it was to run", duration(ran), duration(asked)))
}

/// Distribution of a latency, as far as printed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Distribution {
    /// Figures; unknown percentiles are `None`.
    pub(crate) latency: Latency,
    /// Numbers of operations by latency in nanoseconds; `None` if not printed.
    bins: Option<BTreeMap<u64, u64>>,
    /// End of the printed histogram in seconds, if operations took longer.
    end: Option<f64>,
    /// Reason why percentiles are unknown; `None` if all are known.
    pub(crate) unknown_because: Option<String>,
}

/// Figures of a latency without percentiles, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extremes {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    pub(crate) std: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Extremes {
    /// Returns the figures as a latency without percentiles.
    pub(crate) fn latency(self) -> Latency {
        let Self { count, mean, std, min, max } = self;
        Latency { count, mean, std, min, p25: None, p50: None, p75: None, p99: None, p999: None, max }
    }

    /// Returns a contradiction between these figures, the `printed` [`PERCENTILES`], and `ran`, the length of
    /// the run with its warm-up in seconds; `None` if there is none.
    pub(crate) fn contradiction(&self, printed: [Option<f64>; 5], ran: f64) -> Option<&'static str> {
        let known = || printed.into_iter().flatten();
        match () {
            () if self.mean < self.min || self.mean > self.max => {
                Some("the mean is not between the extremes")
            }
            () if known().zip(known().skip(1)).any(|(low, high)| low > high) => {
                Some("a percentile is shorter than a lower one")
            }
            () if known().any(|seconds| seconds > self.max) => {
                Some("a percentile is longer than the maximum")
            }
            () if self.max > ran + 1.0 => Some("the maximum is longer than the whole run"),
            () => None,
        }
    }

    /// Returns the distribution with these [`PERCENTILES`].
    pub(crate) fn with(self, printed: [Option<f64>; 5]) -> Distribution {
        Distribution::new(self.latency(), printed, None, None)
    }
}

impl Distribution {
    /// Creates the distribution of `latency`, with percentiles from `bins`, or without bins from `listed`.
    /// Percentiles at or beyond `end`, the end of the printed histogram, are unknown.
    pub(crate) fn new(
        latency: Latency,
        listed: [Option<f64>; 5],
        bins: Option<BTreeMap<u64, u64>>,
        end: Option<f64>,
    ) -> Self {
        let at = |percent| bins.as_ref().and_then(|bins| percentile_of(bins, percent));
        let printed = if bins.is_some() { PERCENTILES.map(|(percent, _)| at(percent)) } else { listed };
        let is_beyond = |seconds: f64| end.is_some_and(|end| seconds >= end);
        // The value of a bin may exceed the longest operation in it.
        let within = |seconds: f64| Some(seconds.min(latency.max)).filter(|_| !is_beyond(seconds));
        let [p25, p50, p75, p99, p999] = printed.map(|known| known.and_then(within));
        let names = |is: &dyn Fn(Option<f64>) -> bool| {
            let named = PERCENTILES.iter().zip(printed).filter(|(_, known)| is(*known));
            named.map(|((_, name), _)| *name).collect::<Vec<_>>().join(", ")
        };
        let (beyond, missing) =
            (names(&|known| known.is_some_and(is_beyond)), names(&|known| known.is_none()));
        let mut because = Vec::new();
        if let (Some(end), false) = (end, beyond.is_empty()) {
            let (end, max) = (duration(end), duration(latency.max));
            because.push(format!("{beyond}: at least {end}, where the histogram ends, and at most {max}"));
        }
        if !missing.is_empty() {
            because.push(format!("{missing}: not printed"));
        }
        let unknown_because = Some(because.join("; ")).filter(|because| !because.is_empty());
        Self { latency: Latency { p25, p50, p75, p99, p999, ..latency }, bins, end, unknown_because }
    }

    /// Returns the distribution with the figures of `latency` except its percentiles.
    pub(crate) fn with_figures(self, latency: Latency) -> Self {
        let Latency { p25, p50, p75, p99, p999, .. } = self.latency;
        let [p25, p50, p75, p99, p999] =
            [p25, p50, p75, p99, p999].map(|known| known.map(|seconds| seconds.min(latency.max)));
        Self { latency: Latency { p25, p50, p75, p99, p999, ..latency }, ..self }
    }

    /// Returns true if any percentile is known.
    pub(crate) fn is_listed(&self) -> bool {
        let Latency { p25, p50, p75, p99, p999, .. } = self.latency;
        [p25, p50, p75, p99, p999].iter().any(Option::is_some)
    }

    /// Combines two distributions.
    fn and(self, other: Self) -> Self {
        let (one, two) = (self.latency, other.latency);
        let (first, second) = (one.count as f64, two.count as f64);
        let total = (first + second).max(1.0);
        let mean = (one.mean * first + two.mean * second) / total;
        let squares = |of: Latency, count: f64| count * (of.std * of.std + (of.mean - mean).powi(2));
        let latency = Latency {
            count: one.count.saturating_add(two.count),
            mean,
            std: ((squares(one, first) + squares(two, second)) / total).sqrt(),
            min: one.min.min(two.min),
            max: one.max.max(two.max),
            ..one
        };
        let bins = self.bins.zip(other.bins).map(|(mut bins, other)| {
            for (length, count) in other {
                let bin = bins.entry(length).or_default();
                *bin = bin.saturating_add(count);
            }
            bins
        });
        let has_bins = bins.is_some();
        let end = self.end.into_iter().chain(other.end).reduce(f64::min);
        let both = Self::new(latency, [None; 5], bins, end);
        let because = "percentiles of several jobs or directions cannot be added up".to_owned();
        Self { unknown_because: if has_bins { both.unknown_because } else { Some(because) }, ..both }
    }
}

/// Returns a percentile of `bins` in seconds, computed as fio does.
fn percentile_of(bins: &BTreeMap<u64, u64>, percent: f64) -> Option<f64> {
    let total: f64 = bins.values().map(|count| *count as f64).sum();
    let mut seen = 0.0;
    let found = bins.iter().find(|(_, count)| {
        seen += **count as f64;
        seen >= percent / 100.0 * total
    });
    found.map(|(length, _)| *length as f64 / 1e9)
}

/// Figures of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirectionFigures {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    pub(crate) distribution: Option<Distribution>,
    pub(crate) errors: u64,
    /// True if operations were requested but the program did not count them.
    pub(crate) is_uncounted: bool,
}

/// Figures of one target, or of all together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pub(crate) read: DirectionFigures,
    pub(crate) write: DirectionFigures,
    pub(crate) trim: DirectionFigures,
    pub(crate) sync: DirectionFigures,
    /// Operations whose direction the program does not report.
    pub(crate) mixed: DirectionFigures,
    /// Latencies of reads, writes and trims together.
    pub(crate) distribution: Option<Distribution>,
    /// Latencies of writes including the flushes that made them durable.
    pub(crate) durable: Option<Distribution>,
    /// Requested number of requests in flight.
    pub(crate) depth: Option<u64>,
    pub(crate) cpu: Option<CpuSeconds>,
    /// Fraction of the time that the job's only thread spent on a processor.
    pub(crate) worker_busy: Option<f64>,
}

/// A target of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// Index of the target's job in its span.
    pub(crate) job: usize,
    /// True if the program discarded all data (`ioengine=null` of fio).
    pub(crate) is_null_device: bool,
    pub(crate) figures: Figures,
}

/// Jobs and targets that ran at the same time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Span {
    pub(crate) seconds: f64,
    pub(crate) warmup: f64,
    pub(crate) jobs: Vec<RunJob>,
    pub(crate) targets: Vec<Target>,
    pub(crate) total: Figures,
    /// Counters of the devices below all targets, if printed.
    pub(crate) storage: Option<StorageSide>,
    /// Reason why `storage` is unknown; `None` if the program never prints it.
    pub(crate) storage_unknown_because: Option<String>,
}

impl Span {
    /// Adds a concurrent job with its target, which ran for `seconds`.
    pub(crate) fn add(&mut self, seconds: f64, job: RunJob, target: Target) {
        self.seconds = self.seconds.max(seconds);
        self.total = match self.targets.is_empty() {
            true => target.figures.clone(),
            false => {
                let depth = self.total.depth.zip(target.figures.depth);
                let depth = depth.map(|(one, other)| one.saturating_add(other));
                Figures { depth, ..std::mem::take(&mut self.total).and(&target.figures) }
            }
        };
        self.targets.push(Target { job: self.jobs.len(), ..target });
        self.jobs.push(job);
    }
}

/// A complete result.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImportedResult {
    /// Program, with its version if known.
    pub(crate) program: String,
    pub(crate) environment: Environment,
    pub(crate) spans: Vec<Span>,
    pub(crate) notes: Vec<String>,
    /// Error that ended the run.
    pub(crate) failed_because: Option<String>,
    /// Reason why the run ended early.
    pub(crate) incomplete_because: Option<String>,
}

impl ImportedResult {
    /// Returns the result as one line of a list.
    fn line(&self) -> String {
        let mut names: Vec<&str> =
            self.spans.iter().flat_map(|span| &span.jobs).map(|job| job.name.as_str()).collect();
        names.dedup();
        let seconds: f64 = self.spans.iter().map(|span| span.seconds).sum();
        let operations =
            self.spans.iter().map(|span| span.total.moved().operations).fold(0, u64::saturating_add);
        let end = match (&self.failed_because, &self.incomplete_because) {
            (Some(_), _) => ", failed",
            (None, Some(_)) => ", not complete",
            (None, None) => "",
        };
        let (names, started) = (names.join(", "), &self.environment.started_at);
        format!("{names}; {started}; {} in {}{end}", counted(operations, "operation"), duration(seconds))
    }
}

/// Splits a name such as `fio.json#2` into the file and the number of a result. `None` for other names, and
/// if a file of that name exists.
pub fn numbered(name: &Path) -> Option<(&Path, usize)> {
    let (file, number) = name.to_str()?.rsplit_once('#')?;
    Some((Path::new(file), number.parse().ok()?)).filter(|(file, _)| !name.exists() && file.is_file())
}

/// Returns true if the file extension is that of results.
pub fn is_named_so(name: &Path) -> bool {
    name.extension().is_some_and(|ending| ending == "xml" || ending == "json")
}

/// Returns true if the text contains a marker of a supported result.
pub fn is_result(text: &str) -> bool {
    ["<Results>", "\"fio version\"", "actual test time:"].iter().any(|mark| text.contains(mark))
}

/// Reads a result of DiskSpd (XML or text) or fio (JSON). `file` is its name in errors; `number`, from 1,
/// selects one of several results.
///
/// # Errors
/// Fails if the text is not a supported result, a value is impossible, there are several results and none is
/// selected, or the selected one does not exist.
pub fn read(text: &str, file: &str, number: Option<usize>) -> Result<RunDocument, Error> {
    let mut results = read_all(text, file)?;
    let count = results.len();
    let index = match number {
        Some(number) => number.checked_sub(1).filter(|index| *index < count),
        None => Some(0).filter(|_| count == 1),
    };
    let Some(index) = index else {
        let lines =
            results.iter().enumerate().map(|(index, result)| format!("\n  {}: {}", index + 1, result.line()));
        let list: String = lines.collect();
        let problem = match number {
            Some(number) => format!("it has no result {number}; its results are:{list}\n"),
            None => format!("it holds {count} results, which are not added up:{list}\n"),
        };
        let remedy = format!(
            "choose one: `plumb report --result N {}`, or `{}` where runs are compared",
            shell_word(file),
            shell_word(&format!("{file}#N"))
        );
        return Err(Error::new(file, problem).remedy(remedy));
    };
    let place = if count == 1 { file.to_owned() } else { format!("{file}#{}", index + 1) };
    document(results.swap_remove(index), &place)
}

/// Reads all results in a text.
fn read_all(text: &str, file: &str) -> Result<Vec<ImportedResult>, Error> {
    let text = text.trim_start_matches('\u{feff}');
    match text.trim_start().chars().next() {
        Some('<') => pieces(text, file, "</Results>", true, diskspd::read_xml_result),
        Some('{') => fio::read_json_results(text, file),
        _ if text.contains("Results for timespan") || text.contains("actual test time:") => {
            pieces(text, file, "Command Line:", false, diskspd::read_text_result)
        }
        // fio prints a description of the jobs before its JSON.
        _ if text.contains("\"fio version\"") => fio::read_json_results(text, file),
        _ => {
            let problem =
                "it is not a result that can be read: expected XML or text of DiskSpd, or JSON of fio";
            Err(Error::new(file, problem)
                .remedy("make it with `diskspd -Rxml` or `fio --output-format=json`"))
        }
    }
}

/// Reads several results. `mark` stands at the end of each if `ends`, else at the beginning.
fn pieces(
    text: &str,
    file: &str,
    mark: &str,
    ends: bool,
    read: fn(&str, &str) -> Result<ImportedResult, Error>,
) -> Result<Vec<ImportedResult>, Error> {
    let marks = text.match_indices(mark).map(|(at, _)| if ends { at + mark.len() } else { at });
    // Text before the first beginning mark, or after the last ending mark, belongs to the adjacent result.
    let mut inner: Vec<usize> = marks.collect();
    let outer = if ends { inner.len().checked_sub(1) } else { Some(0).filter(|_| !inner.is_empty()) };
    outer.map(|outer| inner.remove(outer));
    let begins = std::iter::once(0).chain(inner.iter().copied());
    let stops = inner.iter().copied().chain([text.len()]);
    let several = !inner.is_empty();
    let each = begins.zip(stops).enumerate().map(|(index, (from, to))| {
        let place = if several { format!("{file}#{}", index + 1) } else { file.to_owned() };
        read(text[from..to].trim_start(), &place)
    });
    each.collect()
}

/// Creates the document of an imported result, with verdicts.
fn document(imported: ImportedResult, file: &str) -> Result<RunDocument, Error> {
    let ImportedResult { program, environment, spans, notes, failed_because, incomplete_because } = imported;
    if spans.iter().all(|span| span.targets.is_empty() || span.seconds <= 0.0) {
        let why = failed_because.unwrap_or_else(|| "it has no target, or no time".to_owned());
        return Err(Error::new(file, format!("nothing was measured in it: {why}")));
    }
    let mut document = RunDocument::empty(RunKind::Load);
    document.imported_from = Some(format!("{file}, a result of {program}"));
    document.target = file.to_owned();
    document.failed = failed_because.is_some();
    document.incomplete_because = failed_because.or(incomplete_because);
    document.complete = document.incomplete_because.is_none();
    document.latency_resolution = format!("as {program} measured it");
    document.notes =
        vec![format!("Imported from {file}, a result of {program}: what is not in it is unknown.")];
    document.notes.extend(notes);
    document.environment = environment;
    let unrecorded = format!("{program} does not record what the devices did");
    let (mut whole, mut storage) = (Figures::default(), Err(unrecorded.clone()));
    for (number, span) in spans.into_iter().enumerate() {
        let (seconds, total) = (span.seconds, &span.total);
        let impossible = total.moved().impossible_rate(seconds);
        if let Some(problem) = impossible.or_else(|| total.sync.impossible_rate(seconds)) {
            return Err(Error::new(file, problem));
        }
        document.duration += seconds;
        let of_span = span.storage.ok_or_else(|| span.storage_unknown_because.unwrap_or(unrecorded.clone()));
        for target in &span.targets {
            let opened = if target.is_null_device { NULL_DEVICE } else { target.name.as_str() };
            if target.is_null_device {
                document.add_path(opened, &null_device(NULL_DEVICE));
            }
            document.targets.push(RunTarget {
                name: target.name.clone(),
                opened: opened.to_owned(),
                span: number,
                job: target.job,
                size: target.size,
                engine: program.clone(),
                sides: target.figures.sides(seconds, of_span.as_ref()),
                ..RunTarget::default()
            });
        }
        document.spans.push(RunSpan {
            warmup: span.warmup,
            duration: seconds,
            jobs: span.jobs,
            total: total.sides(seconds, of_span.as_ref()),
            ..RunSpan::default()
        });
        // Only results of one span have device counters.
        storage = of_span;
        whole = if number == 0 { span.total } else { whole.and(&span.total) };
    }
    document.total = whole.sides(document.duration, storage.as_ref());
    verdict::conclude(&mut document, Vec::new());
    Ok(document)
}

/// Name of the target of `ioengine=null`.
const NULL_DEVICE: &str = "ioengine=null";

impl Figures {
    /// Creates the figures of these directions, with their combined distribution.
    pub(crate) fn from_directions(
        read: DirectionFigures,
        write: DirectionFigures,
        trim: DirectionFigures,
        mixed: DirectionFigures,
    ) -> Self {
        let figures = Self { read, write, trim, mixed, ..Self::default() };
        Self { distribution: figures.moved().distribution, ..figures }
    }

    /// Returns the combined figures of all directions.
    fn moved(&self) -> DirectionFigures {
        let all = [&self.read, &self.write, &self.trim, &self.mixed].into_iter().cloned();
        all.reduce(DirectionFigures::and).unwrap_or_default()
    }

    /// Adds a flush after each write, included in the latencies of the writes.
    pub(crate) fn flush_each_write(&mut self) {
        self.sync.operations = self.write.operations;
        self.durable.clone_from(&self.write.distribution);
    }

    /// Adds failed operations: to the only direction in use, or to `mixed` if there are several.
    pub(crate) fn add_errors(&mut self, errors: u64) {
        let used = [&self.read, &self.write, &self.trim].map(|side| side.operations > 0);
        let side = match used {
            [true, false, false] => &mut self.read,
            [false, true, false] => &mut self.write,
            [false, false, true] => &mut self.trim,
            _ => &mut self.mixed,
        };
        side.errors = side.errors.saturating_add(errors);
    }

    /// Combines the figures of two targets or spans.
    pub(crate) fn and(self, other: &Self) -> Self {
        let moved = DirectionFigures { distribution: self.distribution.clone(), ..self.moved() };
        let others = DirectionFigures { distribution: other.distribution.clone(), ..other.moved() };
        Self {
            read: self.read.and(other.read.clone()),
            write: self.write.and(other.write.clone()),
            trim: self.trim.and(other.trim.clone()),
            sync: self.sync.and(other.sync.clone()),
            mixed: self.mixed.and(other.mixed.clone()),
            distribution: moved.and(others).distribution,
            durable: self.durable.zip(other.durable.clone()).map(|(one, other)| one.and(other)),
            worker_busy: None,
            depth: self.depth.zip(other.depth).map(|(one, other)| one.max(other)),
            cpu: self.cpu.zip(other.cpu).map(|(one, other)| CpuSeconds {
                user: one.user + other.user,
                system: one.system + other.system,
            }),
        }
    }

    fn sides(&self, seconds: f64, storage: Result<&StorageSide, &String>) -> Sides {
        let whole = DirectionFigures { distribution: self.distribution.clone(), ..self.moved() };
        let sides = [("", &whole), ("read: ", &self.read), ("write: ", &self.write), ("sync: ", &self.sync)];
        let unknown = sides.iter().filter_map(|(name, side)| {
            let because = side.distribution.as_ref()?.unknown_because.as_ref()?;
            Some(format!("{name}{because}"))
        });
        Sides {
            application: whole.side(seconds),
            read: self.read.direction(seconds),
            write: self.write.direction(seconds),
            trim: self.trim.direction(seconds),
            sync: self.sync.direction(seconds),
            durable_latency: self.durable.as_ref().map(|of| of.latency),
            percentiles_unknown_because: unknown.into_iter().next(),
            depth: self.depth,
            in_flight_max: self.depth.unwrap_or(0),
            storage: storage.ok().cloned(),
            storage_unknown_because: storage.err().cloned(),
            quality: Quality { worker_busy: self.worker_busy, ..Quality::default() },
            cpu: self.cpu,
            ..Sides::default()
        }
    }
}

impl DirectionFigures {
    /// Returns an error message if operations moved no bytes; `None` if plausible.
    pub(crate) fn missing_bytes(&self) -> Option<String> {
        (self.operations > 0 && self.bytes == 0)
            .then(|| format!("expected the bytes of {} operations, none of which failed", self.operations))
    }

    /// Returns an error message if bytes were moved without operations; `None` if plausible.
    pub(crate) fn missing_operations(&self) -> Option<String> {
        (self.bytes > 0 && self.operations == 0)
            .then(|| format!("expected the operations that moved {} bytes", self.bytes))
    }

    /// Returns an error message if the rates over `seconds` are impossible; `None` if plausible or `seconds`
    /// is 0.
    pub(crate) fn impossible_rate(&self, seconds: f64) -> Option<String> {
        let counts = [(self.operations, "operations"), (self.bytes, "bytes")];
        let mut of = counts.iter().zip(RATES_MAX).filter(|_| seconds > 0.0);
        let (&(number, what), _) = of.find(|((number, _), most)| *number as f64 > most * seconds)?;
        Some(format!("{} {what} in {} are more than a machine can do", count(number), duration(seconds)))
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            operations: self.operations.saturating_add(other.operations),
            bytes: self.bytes.saturating_add(other.bytes),
            distribution: match (self.operations, other.operations) {
                (_, 0) => self.distribution,
                (0, _) => other.distribution,
                _ => self.distribution.zip(other.distribution).map(|(one, other)| one.and(other)),
            },
            errors: self.errors.saturating_add(other.errors),
            is_uncounted: self.is_uncounted || other.is_uncounted,
        }
    }

    fn latency(&self) -> Option<Latency> {
        self.distribution.as_ref().map(|of| of.latency)
    }

    fn side(&self, seconds: f64) -> ApplicationSide {
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let iops = rate(self.operations);
        ApplicationSide {
            operations: self.operations,
            errors: self.errors,
            bytes: self.bytes,
            seconds,
            iops,
            bytes_per_second: rate(self.bytes),
            io_bytes_mean: (self.operations > 0).then(|| self.bytes as f64 / self.operations as f64),
            latency: self.latency(),
            latency_from_intended_start: None,
            in_flight_mean: self.latency().map(|latency| latency.mean * iops),
        }
    }

    fn direction(&self, seconds: f64) -> DirectionResult {
        match self.is_uncounted {
            true => DirectionResult { is_uncounted: true, ..DirectionResult::default() },
            false => DirectionResult::from_side(&self.side(seconds), Vec::new()),
        }
    }
}

/// Converts a time as printed by DiskSpd, `2023/05/04 10:11:12 UTC`, to RFC 3339. Returns other text
/// unchanged.
pub(crate) fn start_time(text: &str) -> String {
    let time = jiff::civil::DateTime::strptime("%Y/%m/%d %H:%M:%S UTC", text.trim());
    let time = time.and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC));
    time.map_or_else(|_| text.to_owned(), |time| time.timestamp().to_string())
}

/// Describes a job: `random writes of 8192 bytes`.
pub(crate) fn description(random: bool, write_percent: u64, block: u64) -> String {
    let order = if random { "random" } else { "sequential" };
    let what = match write_percent {
        0 => "reads".to_owned(),
        100 => "writes".to_owned(),
        percent => format!("operations, {percent} % of them writes,"),
    };
    format!("{order} {what} of {}", Bytes(block))
}

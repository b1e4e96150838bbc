//! Results that other programs have printed elsewhere, as recorded documents: judged by the rules that apply, and compared like runs.
//!
//! The rules are those of plumb's own runs. Each needs evidence, and an import has these parts of it:
//!
//! | evidence | of fio | of DiskSpd | rules, for example |
//! |---|---|---|---|
//! | operations, latencies, caching, failures | yes | yes | `page-cache` by the time of an operation, `operations-failed`, `too-short` |
//! | processor time of a job with one thread | yes | no | `generator-bound` |
//! | counts of the devices (`disk_util` with sectors, fio 3.36 and later, one group of jobs) | yes | no | `page-cache`, `cached-below` |
//! | write path, flushes of its own, rate over time | no | no | `flush-dropped`, `flushes-merged`, `not-steady` say nothing |
//!
//! # Limitations
//! The write path is not in them: rules that need it say nothing. fio prints no quartiles unless
//! asked; the nearest percentiles that it does print stand for them, and a note says so. Where it prints no percentiles at all, the
//! latency is left out.

use plumb_measure::{ApplicationSide, Latency, Quality, StorageSide};
use plumb_report::document::{DirectionResult, Environment, RunDocument, RunJob, RunSpan, RunTarget, Sides};
use plumb_report::verdict;

use crate::error::Error;
use crate::{diskspd, fio};

/// What was measured of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    pub(crate) latency: Option<Latency>,
    pub(crate) errors: u64,
}

/// What was measured of one target, or of all together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pub(crate) read: Counted,
    pub(crate) write: Counted,
    pub(crate) trim: Counted,
    pub(crate) sync: Counted,
    /// Of reads, writes and trims together.
    pub(crate) latency: Option<Latency>,
    /// Requests asked to be in flight.
    pub(crate) depth: Option<u64>,
    pub(crate) cpu: Option<plumb_report::document::CpuSeconds>,
    /// Share of the time that its only thread spent on a processor.
    pub(crate) worker_busy: Option<f64>,
}

/// One target of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// Its place among the jobs of its span.
    pub(crate) job: usize,
    pub(crate) figures: Figures,
}

/// What ran at the same time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Span {
    pub(crate) seconds: f64,
    pub(crate) warmup: f64,
    pub(crate) jobs: Vec<RunJob>,
    pub(crate) targets: Vec<Target>,
    pub(crate) total: Figures,
    /// Counts of the devices beneath all targets, if the program printed them.
    pub(crate) storage: Option<StorageSide>,
}

/// A whole result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Imported {
    /// The program, with its version if that is known.
    pub(crate) program: String,
    pub(crate) environment: Environment,
    pub(crate) spans: Vec<Span>,
    pub(crate) notes: Vec<String>,
}

/// Reads a result of DiskSpd (XML or text) or fio (JSON); `file` is its name for errors.
///
/// # Errors
/// If it is none of these, or does not hold together.
pub fn read(text: &str, file: &str) -> Result<RunDocument, Error> {
    let begins = text.trim_start_matches('\u{feff}').trim_start();
    let imported = match begins.chars().next() {
        Some('<') => diskspd::read_xml_result(text.trim_start_matches('\u{feff}'), file)?,
        Some('{') => fio::read_json_result(begins, file)?,
        _ if text.contains("Results for timespan") || text.contains("actual test time:") => {
            diskspd::read_text_result(text, file)?
        }
        // fio says what it did before its JSON.
        _ if text.contains("\"fio version\"") => {
            fio::read_json_result(&text[text.find('{').unwrap_or(0)..], file)?
        }
        _ => {
            let problem = "it is no result that can be read: expected XML or text of DiskSpd, or JSON of fio";
            return Err(Error::new(file, problem)
                .remedy("make it with `diskspd -Rxml` or `fio --output-format=json`"));
        }
    };
    document(imported, file)
}

/// A document with what was imported, judged.
fn document(imported: Imported, file: &str) -> Result<RunDocument, Error> {
    let Imported { program, environment, spans, notes } = imported;
    if spans.iter().all(|span| span.targets.is_empty() || span.seconds <= 0.0) {
        return Err(Error::new(file, "nothing was measured in it: it has no target, or no time"));
    }
    let mut document = RunDocument::empty(RunDocument::SCHEMA);
    document.imported_from = Some(format!("{file}, a result of {program}"));
    document.target = file.to_owned();
    document.complete = true;
    document.latency_resolution = format!("as {program} measured it");
    document.notes = vec![format!("Imported from {file}, a result of {program}: plumb has not measured it.")];
    document.notes.extend(notes);
    document.environment = environment;
    let (mut whole, mut storage) = (Figures::default(), None);
    for (number, span) in spans.into_iter().enumerate() {
        let (seconds, total) = (span.seconds, &span.total);
        document.duration += seconds;
        for target in &span.targets {
            document.targets.push(RunTarget {
                name: target.name.clone(),
                opened: target.name.clone(),
                span: number,
                job: target.job,
                size: target.size,
                engine: program.clone(),
                sides: target.figures.sides(seconds, span.storage.as_ref(), &program),
                ..RunTarget::default()
            });
        }
        document.spans.push(RunSpan {
            warmup: span.warmup,
            duration: seconds,
            jobs: span.jobs,
            total: total.sides(seconds, span.storage.as_ref(), &program),
            ..RunSpan::default()
        });
        storage = span.storage.filter(|_| number == 0);
        whole = if number == 0 { span.total } else { whole.and(&span.total) };
    }
    document.total = whole.sides(document.duration, storage.as_ref(), &program);
    verdict::conclude(&mut document, Vec::new());
    Ok(document)
}

impl Figures {
    /// Both together. Of latencies the mean is known, and no percentile.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            read: self.read.and(other.read),
            write: self.write.and(other.write),
            trim: self.trim.and(other.trim),
            sync: self.sync.and(other.sync),
            latency: None,
            worker_busy: None,
            depth: self.depth.zip(other.depth).map(|(one, other)| one.max(other)),
            cpu: self.cpu.zip(other.cpu).map(|(one, other)| plumb_report::document::CpuSeconds {
                user: one.user + other.user,
                system: one.system + other.system,
            }),
        }
    }

    fn sides(&self, seconds: f64, storage: Option<&StorageSide>, program: &str) -> Sides {
        let moved = [self.read, self.write, self.trim].into_iter().reduce(Counted::and).unwrap_or_default();
        let whole = Counted { latency: self.latency, ..moved };
        Sides {
            application: whole.side(seconds),
            read: self.read.direction(seconds),
            write: self.write.direction(seconds),
            trim: self.trim.direction(seconds),
            sync: self.sync.direction(seconds),
            depth: self.depth,
            in_flight_max: self.depth.unwrap_or(0),
            storage: storage.cloned(),
            storage_unknown_because: storage
                .is_none()
                .then(|| format!("{program} does not say what the devices were handed")),
            quality: Quality { worker_busy: self.worker_busy, ..Quality::default() },
            cpu: self.cpu,
            ..Sides::default()
        }
    }
}

impl Counted {
    pub(crate) fn and(self, other: Self) -> Self {
        let latency = match (self.operations, other.operations) {
            (_, 0) => self.latency,
            (0, _) => other.latency,
            // Percentiles of two distributions are none of both.
            _ => None,
        };
        Self {
            operations: self.operations + other.operations,
            bytes: self.bytes + other.bytes,
            latency,
            errors: self.errors + other.errors,
        }
    }

    fn side(self, seconds: f64) -> ApplicationSide {
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
            latency: self.latency,
            latency_from_intended_start: None,
            in_flight_mean: self.latency.map(|latency| latency.mean * iops),
        }
    }

    fn direction(self, seconds: f64) -> DirectionResult {
        DirectionResult::of(&self.side(seconds), Vec::new())
    }
}

/// A time as DiskSpd prints it, `2023/05/04 10:11:12 UTC`, as RFC 3339; any other text as it is.
pub(crate) fn start_time(text: &str) -> String {
    let time = jiff::civil::DateTime::strptime("%Y/%m/%d %H:%M:%S UTC", text.trim());
    let time = time.and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC));
    time.map_or_else(|_| text.to_owned(), |time| time.timestamp().to_string())
}

/// What a job does, in words: `random writes of 8192 bytes`.
pub(crate) fn description(random: bool, write_percent: u64, block: u64) -> String {
    let order = if random { "random" } else { "sequential" };
    let what = match write_percent {
        0 => "reads".to_owned(),
        100 => "writes".to_owned(),
        percent => format!("operations, {percent} % of them writes,"),
    };
    format!("{order} {what} of {}", plumb_block::Bytes(block))
}

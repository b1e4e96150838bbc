//! Results that DiskSpd has printed as XML (`-Rxml`). What is not known there is left alone: versions differ.

use plumb_report::document::{Environment, RunJob};
use plumb_workload::Caching;

use super::xml::{self, Element};
use crate::error::Error;
use crate::imported::{
    DirectionFigures, Extremes, Figures, ImportedResult, PERCENTILES, Span, Target, description, short_of,
    start_time,
};

const MS: f64 = 1e-3;

/// Reads a result; `file` is its name for errors.
///
/// # Errors
/// The line that makes no sense.
pub(crate) fn read_xml_result(text: &str, file: &str) -> Result<ImportedResult, Error> {
    let document = xml::parse(text, file)?;
    let root = Element { file, node: document.root_element() };
    if root.name() != "Results" {
        let remedy = "name what `diskspd -Rxml` has printed; a profile is run with `plumb diskspd -X`";
        return Err(root.wrong(format!("<{}>: expected <Results>", root.name())).remedy(remedy));
    }
    let asked = match root.child("Profile")?.map(|profile| profile.child("TimeSpans")).transpose()?.flatten()
    {
        Some(spans) => spans.children().collect(),
        None => Vec::new(),
    };
    let results = root.children().filter(|child| child.name() == "TimeSpan");
    let spans = results.enumerate().map(|(number, result)| span(&result, asked.get(number)));
    let spans: Vec<Span> = spans.collect::<Result<_, _>>()?;
    let mut incomplete_because = None;
    for (span, asked) in spans.iter().zip(&asked) {
        let short = decimal(asked, "Duration")?.and_then(|asked| short_of("DiskSpd", span.seconds, asked));
        incomplete_because = incomplete_because.or(short);
    }
    Ok(ImportedResult {
        program: program(&root)?,
        environment: environment(&root)?,
        spans,
        incomplete_because,
        ..ImportedResult::default()
    })
}

fn program(root: &Element<'_>) -> Result<String, Error> {
    let tool = root.child("System")?.map(|system| system.child("Tool")).transpose()?.flatten();
    let version = tool.map(|tool| tool.value("Version")).transpose()?.flatten();
    Ok(version.map_or("DiskSpd".to_owned(), |(_, version)| format!("DiskSpd {version}")))
}

fn environment(root: &Element<'_>) -> Result<Environment, Error> {
    let Some(system) = root.child("System")? else { return Ok(Environment::default()) };
    let text = |name| Ok::<_, Error>(system.value(name)?.map(|(_, text)| text));
    Ok(Environment {
        host: text("ComputerName")?,
        started_at: text("RunTime")?.map(|time| start_time(&time)).unwrap_or_default(),
        ..Environment::default()
    })
}

/// Returns a number with a point, in milliseconds or whatever it is in.
fn decimal(element: &Element<'_>, name: &str) -> Result<Option<f64>, Error> {
    let Some((child, text)) = element.value(name)? else { return Ok(None) };
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.map(Some).ok_or_else(|| child.wrong(format!("<{name}>: '{text}': expected a number from 0 on")))
}

fn count(element: &Element<'_>, name: &str) -> Result<u64, Error> {
    Ok(element.number(name, 0, u64::MAX)?.unwrap_or(0))
}

fn span(result: &Element<'_>, asked: Option<&Element<'_>>) -> Result<Span, Error> {
    let seconds = decimal(result, "TestTimeSeconds")?.unwrap_or(0.0);
    let asked_targets = match asked.map(|asked| asked.child("Targets")).transpose()?.flatten() {
        Some(targets) => targets.children().collect(),
        None => Vec::new(),
    };
    let jobs = asked_targets.iter().map(job).collect::<Result<Vec<_>, _>>()?;
    let mut targets: Vec<Target> = Vec::new();
    for thread in result.children().filter(|child| child.name() == "Thread") {
        for part in thread.children().filter(|child| child.name() == "Target") {
            add(&mut targets, &part)?;
        }
    }
    for (number, target) in targets.iter_mut().enumerate() {
        target.job = number.min(jobs.len().saturating_sub(1));
        target.figures.depth = asked_targets.get(number).map(depth).transpose()?;
    }
    let mut total = targets
        .iter()
        .map(|target| target.figures.clone())
        .reduce(|one, other| one.and(&other))
        .unwrap_or_default();
    total.depth = targets.iter().map(|target| target.figures.depth).sum();
    if let Some(latency) = result.child("Latency")? {
        latencies(&latency, &mut total)?;
        if let [target] = &mut *targets {
            target.figures = total.clone();
        }
    }
    let warmup = asked.map(|asked| decimal(asked, "Warmup")).transpose()?.flatten().unwrap_or(0.0);
    let jobs =
        if jobs.is_empty() { vec![RunJob { name: "diskspd".to_owned(), ..RunJob::default() }] } else { jobs };
    Ok(Span { seconds, warmup, jobs, targets, total, storage: None })
}

/// Adds what a thread did to a target to what others did to it.
fn add(targets: &mut Vec<Target>, part: &Element<'_>) -> Result<(), Error> {
    let name = part.value("Path")?.map(|(_, path)| path).unwrap_or_default();
    let direction = |operations, bytes| {
        let (operations, bytes) = (count(part, operations)?, count(part, bytes)?);
        Ok::<_, Error>(DirectionFigures { operations, bytes, ..DirectionFigures::default() })
    };
    let read = direction("ReadCount", "ReadBytes")?;
    let write = direction("WriteCount", "WriteBytes")?;
    let both = part.number("IOCount", 0, u64::MAX)?;
    if let Some(both) = both.filter(|both| *both != read.operations.saturating_add(write.operations)) {
        let (reads, writes) = (read.operations, write.operations);
        return Err(part.wrong(format!("<IOCount>: {both}: expected the {reads} reads and {writes} writes")));
    }
    let figures = Figures { read, write, ..Figures::default() };
    let size = count(part, "FileSize")?;
    match targets.iter_mut().find(|target| target.name == name) {
        Some(target) => target.figures = std::mem::take(&mut target.figures).and(&figures),
        None => targets.push(Target { name, size, figures, ..Target::default() }),
    }
    Ok(())
}

/// Returns the number of requests that a target was to have in flight.
fn depth(target: &Element<'_>) -> Result<u64, Error> {
    let threads = target.number("ThreadsPerFile", 0, u64::MAX)?.unwrap_or(1).max(1);
    Ok(threads.saturating_mul(target.number("RequestCount", 0, u64::MAX)?.unwrap_or(1).max(1)))
}

fn job(target: &Element<'_>) -> Result<RunJob, Error> {
    let is = |name| Ok::<_, Error>(target.flag(name)?.unwrap_or(false));
    let direct = is("DisableOSCache")? || is("DisableAllCache")?;
    let block = count(target, "BlockSize")?;
    let random = target.child("Random")?.is_some();
    Ok(RunJob {
        name: target.value("Path")?.map(|(_, path)| path).unwrap_or_default(),
        description: description(random, count(target, "WriteRatio")?, block),
        block_bytes: Some(block),
        threads: u32::try_from(count(target, "ThreadsPerFile")?.max(1)).unwrap_or(u32::MAX),
        caching: if direct { Caching::Direct } else { Caching::Cached },
        durable_write_every: (is("WriteThrough")? || is("DisableAllCache")?).then_some(1),
        ..RunJob::default()
    })
}

/// Reads means and percentiles of a whole span. A latency without its extremes is not known.
fn latencies(latency: &Element<'_>, total: &mut Figures) -> Result<(), Error> {
    let buckets: Vec<Element<'_>> = latency.children().filter(|child| child.name() == "Bucket").collect();
    let of = |mean, deviation, side, count: u64| {
        let at = |wanted: f64| {
            let is_wanted = |bucket: &&Element<'_>| matches!(decimal(bucket, "Percentile"), Ok(Some(percent)) if (percent - wanted).abs() < 1e-9);
            let bucket = buckets.iter().find(is_wanted);
            Ok::<_, Error>(bucket.map(|bucket| decimal(bucket, side)).transpose()?.flatten())
        };
        let Some(mean) = decimal(latency, mean)?.filter(|_| count > 0) else { return Ok(None) };
        let seconds = |wanted| Ok::<_, Error>(at(wanted)?.map(|milliseconds| milliseconds * MS));
        let (Some(min), Some(max)) = (seconds(0.0)?, seconds(100.0)?) else { return Ok(None) };
        let mut percentiles = [None; 5];
        for (known, (percent, _)) in percentiles.iter_mut().zip(PERCENTILES) {
            *known = seconds(percent)?;
        }
        let std = decimal(latency, deviation)?.unwrap_or(0.0) * MS;
        let figures = Extremes { count, mean: mean * MS, std, min, max };
        if let Some(wrong) = figures.contradiction(percentiles) {
            return Err(latency.wrong(format!("<{side}>: {wrong}")));
        }
        Ok::<_, Error>(Some(figures.with(percentiles)))
    };
    let (reads, writes) = (total.read.operations, total.write.operations);
    total.read.distribution = of("AverageReadMilliseconds", "ReadLatencyStdev", "ReadMilliseconds", reads)?;
    total.write.distribution =
        of("AverageWriteMilliseconds", "WriteLatencyStdev", "WriteMilliseconds", writes)?;
    total.distribution =
        of("AverageTotalMilliseconds", "LatencyStdev", "TotalMilliseconds", reads.saturating_add(writes))?;
    Ok(())
}

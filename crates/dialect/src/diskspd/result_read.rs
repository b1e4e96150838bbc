//! Import of DiskSpd's XML results (`-Rxml`). Unknown elements are ignored, as versions differ.

use plumb_report::document::{Environment, RunJob};

use super::caching::ReportedCaching;
use super::xml::{self, Element};
use crate::error::Error;
use crate::imported::{
    COUNT_MAX, DirectionFigures, Extremes, Figures, ImportedResult, PERCENTILES, POSSIBLE_TIMES, Span,
    Target, description, possible_seconds, short_of, start_time,
};

/// Milliseconds in a second.
const PER_SECOND: f64 = 1e3;

/// Reads a result; `file` is its name in errors.
///
/// # Errors
/// The invalid line.
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
        let short = time(asked, "Duration", 1.0)?.and_then(|asked| short_of("DiskSpd", span.seconds, asked));
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

/// Returns the time in an element in seconds; `per_second` is the number of its units in a second.
fn time(element: &Element<'_>, name: &str, per_second: f64) -> Result<Option<f64>, Error> {
    let Some((child, text)) = element.value(name)? else { return Ok(None) };
    let seconds = text.parse().ok().and_then(|number| possible_seconds(number, per_second));
    seconds.map(Some).ok_or_else(|| child.wrong(format!("<{name}>: '{text}': {POSSIBLE_TIMES}")))
}

fn count(element: &Element<'_>, name: &str) -> Result<u64, Error> {
    Ok(element.number(name, 0, COUNT_MAX)?.unwrap_or(0))
}

fn span(result: &Element<'_>, asked: Option<&Element<'_>>) -> Result<Span, Error> {
    let seconds = time(result, "TestTimeSeconds", 1.0)?.unwrap_or(0.0);
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
        if jobs.get(target.job).is_some_and(|job| job.flush.is_some()) {
            target.figures.flush_each_write();
        }
    }
    let warmup = asked.map(|asked| time(asked, "Warmup", 1.0)).transpose()?.flatten();
    let mut total = targets
        .iter()
        .map(|target| target.figures.clone())
        .reduce(|one, other| one.and(&other))
        .unwrap_or_default();
    total.depth = targets.iter().map(|target| target.figures.depth).sum();
    let latency = result.child("Latency")?;
    if let Some(latency) = &latency {
        latencies(latency, &mut total, seconds + warmup.unwrap_or(f64::INFINITY))?;
    }
    // The latencies cover the writes of all targets, so they include flushes only if each write has one.
    if total.sync.operations == total.write.operations {
        total.durable.clone_from(&total.write.distribution);
    }
    if let ([target], Some(_)) = (&mut *targets, &latency) {
        target.figures = total.clone();
    }
    let jobs =
        if jobs.is_empty() { vec![RunJob { name: "diskspd".to_owned(), ..RunJob::default() }] } else { jobs };
    Ok(Span { seconds, warmup: warmup.unwrap_or(0.0), jobs, targets, total, ..Span::default() })
}

/// Adds the figures of a thread on a target to those of other threads.
fn add(targets: &mut Vec<Target>, part: &Element<'_>) -> Result<(), Error> {
    let name = part.value("Path")?.map(|(_, path)| path).unwrap_or_default();
    let direction = |operations, bytes| {
        let figures = DirectionFigures {
            operations: count(part, operations)?,
            bytes: count(part, bytes)?,
            ..DirectionFigures::default()
        };
        let missing = figures.missing_bytes().map(|expected| (bytes, expected));
        match missing.or_else(|| Some((operations, figures.missing_operations()?))) {
            Some((name, expected)) => Err(part.wrong(format!("<{name}>: 0: {expected}"))),
            None => Ok(figures),
        }
    };
    let read = direction("ReadCount", "ReadBytes")?;
    let write = direction("WriteCount", "WriteBytes")?;
    let both = part.number("IOCount", 0, COUNT_MAX)?;
    if let Some(both) = both.filter(|both| *both != read.operations.saturating_add(write.operations)) {
        let (reads, writes) = (read.operations, write.operations);
        return Err(part.wrong(format!("<IOCount>: {both}: expected the {reads} reads and {writes} writes")));
    }
    let both = part.number("BytesCount", 0, COUNT_MAX)?;
    if let Some(both) = both.filter(|both| *both != read.bytes.saturating_add(write.bytes)) {
        let (reads, writes) = (read.bytes, write.bytes);
        let problem = format!("<BytesCount>: {both}: expected the {reads} bytes read and {writes} written");
        return Err(part.wrong(problem));
    }
    let figures = Figures { read, write, ..Figures::default() };
    let size = count(part, "FileSize")?;
    match targets.iter_mut().find(|target| target.name == name) {
        Some(target) => target.figures = std::mem::take(&mut target.figures).and(&figures),
        None => targets.push(Target { name, size, figures, ..Target::default() }),
    }
    Ok(())
}

/// Returns the requested number of requests in flight of a target.
fn depth(target: &Element<'_>) -> Result<u64, Error> {
    let threads = target.number("ThreadsPerFile", 0, COUNT_MAX)?.unwrap_or(1).max(1);
    Ok(threads.saturating_mul(target.number("RequestCount", 0, COUNT_MAX)?.unwrap_or(1).max(1)))
}

fn job(target: &Element<'_>) -> Result<RunJob, Error> {
    let is = |name| Ok::<_, Error>(target.flag(name)?.unwrap_or(false));
    let writes = target.number("WriteRatio", 0, 100)?.unwrap_or(0);
    let all_off = is("DisableAllCache")?;
    let caching = ReportedCaching {
        past_cache: is("DisableOSCache")? || is("DisableLocalCache")? || all_off,
        write_through: is("WriteThrough")? || all_off,
        mapped: is("MemoryMappedIo")?,
        flushed: target.value("FlushType")?.is_some(),
        writes: writes > 0,
    };
    let block = count(target, "BlockSize")?;
    let random = target.child("Random")?.is_some();
    Ok(RunJob {
        name: target.value("Path")?.map(|(_, path)| path).unwrap_or_default(),
        description: description(random, writes, block),
        block_bytes: Some(block),
        threads: u32::try_from(count(target, "ThreadsPerFile")?.max(1)).unwrap_or(u32::MAX),
        ..caching.job()
    })
}

/// Reads means and percentiles of a whole span, whose program ran at most `ran` seconds. Without extremes the
/// latency is unknown.
fn latencies(latency: &Element<'_>, total: &mut Figures, ran: f64) -> Result<(), Error> {
    let buckets: Vec<Element<'_>> = latency.children().filter(|child| child.name() == "Bucket").collect();
    let of = |mean, deviation, side, count: u64| {
        let at = |wanted: f64| {
            let is_wanted = |bucket: &&Element<'_>| {
                let percent = bucket.value("Percentile").ok().flatten();
                let percent = percent.and_then(|(_, text)| text.parse::<f64>().ok());
                percent.is_some_and(|percent| (percent - wanted).abs() < 1e-9)
            };
            let bucket = buckets.iter().find(is_wanted);
            Ok::<_, Error>(bucket.map(|bucket| time(bucket, side, PER_SECOND)).transpose()?.flatten())
        };
        let Some(mean) = time(latency, mean, PER_SECOND)?.filter(|_| count > 0) else { return Ok(None) };
        let (Some(min), Some(max)) = (at(0.0)?, at(100.0)?) else { return Ok(None) };
        let mut percentiles = [None; 5];
        for (known, (percent, _)) in percentiles.iter_mut().zip(PERCENTILES) {
            *known = at(percent)?;
        }
        let std = time(latency, deviation, PER_SECOND)?.unwrap_or(0.0);
        let figures = Extremes { count, mean, std, min, max };
        if let Some(wrong) = figures.contradiction(percentiles, ran) {
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

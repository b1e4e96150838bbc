//! Import of fio's JSON results (`--output-format=json` or `json+`), from all versions with JSON output.
//!
//! # Several results in one file
//! fio prints a complete result at each `--status-interval`, and an appended file contains the results of
//! several runs. Results of one run have the same start; only the last is used, as it includes the earlier
//! ones. Results of different runs stay separate.
//!
//! # Units
//! Before fio 3.0 times were in microseconds (`clat`, `lat`), since then in nanoseconds (`clat_ns`,
//! `lat_ns`). Up to 2.20 `io_bytes` was in KiB. If `io_kbytes` is missing, `bw`, always in KiB/s, determines
//! the unit.
//!
//! # Phases
//! A job that writes with `verify` reads everything back afterwards. fio adds these reads to those of the
//! job; here they form a separate span.

mod documents;
mod field;
mod histogram;
mod job;

use plumb_block::{Bytes, DeviceCounters, Nanos, StorageSnapshot};
use plumb_measure::{Attribution, FlushWrites, FlushesOf, StorageSide, storage_side};
use plumb_report::document::Environment;
use plumb_report::export::fio::SECTOR;

use self::documents::Document;
use self::field::Field;
use self::job::{Job, Options, Phase, read_job};
use crate::error::Error;
use crate::imported::{DirectionFigures, ImportedResult, Span};

/// Engine that keeps processors busy, and counts that as reads.
const CPU: &str = "cpuio";
/// Entry of a client/server run with the sum of all hosts.
const ALL_CLIENTS: &str = "All clients";

/// Reads all results in `text`; `file` is its name in errors.
///
/// # Errors
/// The position at which the text is not JSON of fio, or a value is impossible.
pub(crate) fn read_json_results(text: &str, file: &str) -> Result<Vec<ImportedResult>, Error> {
    let documents = documents::read(text, file)?;
    let several = documents.len() > 1;
    let read = |(number, document): (usize, &Document)| {
        let place = if several { format!("{file}: result {}", number + 1) } else { file.to_owned() };
        read_document(document, &place)
    };
    documents.iter().enumerate().map(read).collect()
}

fn read_document(document: &Document, place: &str) -> Result<ImportedResult, Error> {
    let root = Field::root(place, &document.root);
    let version = root.get("fio version").text().unwrap_or_default();
    let clients = root.get("client_stats").list();
    let all = root.get("jobs").list();
    let is_of_clients = all.is_empty();
    let all = if is_of_clients { clients } else { all };
    let jobs: Vec<Field<'_>> = all
        .into_iter()
        .filter(|job| !is_of_clients || job.get("jobname").text() != Some(ALL_CLIENTS))
        .collect();
    let options = root.get("global options");
    let (idle, jobs): (Vec<Field<'_>>, Vec<Field<'_>>) =
        jobs.into_iter().partition(|job| Options::of_job(job, &options).text("ioengine") == Some(CPU));
    if jobs.is_empty() && !idle.is_empty() {
        return Err(Error::new(place, format!("nothing was measured in it: {CPU} does no I/O")));
    }
    if jobs.is_empty() {
        let problem = "no job is in its `jobs` or `client_stats`";
        return Err(Error::new(place, problem).remedy("name what `fio --output-format=json` printed"));
    }
    // Jobs run at the same time, except those after a stonewall, which have another group number.
    let mut spans: Vec<((usize, Phase), Span)> = Vec::new();
    let mut imported =
        ImportedResult { program: version.replacen("fio-", "fio ", 1), ..ImportedResult::default() };
    imported.notes.extend(idle.iter().map(|job| {
        let name = job.get("jobname").text().unwrap_or("job");
        format!("Left out: {name}, which did no I/O (ioengine={CPU}).")
    }));
    let mut groups: Vec<u64> = Vec::new();
    for field in &jobs {
        let job = read_job(field, &jobs, &options, version)?;
        let group = field.get("groupid").count()?.unwrap_or(0);
        let at = groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            groups.push(group);
            groups.len() - 1
        });
        note(&mut imported, &job);
        for part in job.parts {
            let key = (at, part.phase);
            let known = spans.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                spans.push((key, Span::default()));
                spans.len() - 1
            });
            spans[known].1.add(part.seconds, part.job, part.target);
        }
    }
    spans.sort_by_key(|(key, _)| *key);
    let disks = root.get("disk_util");
    if let ([(_, span)], false) = (&mut spans[..], is_of_clients) {
        span.storage = storage(&disks, span.seconds)?;
    }
    if !disks.list().is_empty() {
        let why = match spans.len() {
            1 if is_of_clients => "those of several hosts are together",
            1 => "they are without bytes, which fio prints from 3.36 on",
            _ => "those of all phases are together",
        };
        for (_, span) in &mut spans {
            span.storage_unknown_because =
                Some(format!("the counts of the devices in the result (disk_util) are not read: {why}"));
        }
    }
    let started_at = started_at(&root, &jobs, spans.iter().map(|(_, span)| span.seconds).sum())?;
    imported.environment = Environment { started_at, ..Environment::default() };
    imported.spans = spans.into_iter().map(|(_, span)| span).collect();
    imported.incomplete_because = imported.incomplete_because.or_else(|| document.incomplete_because.clone());
    Ok(imported)
}

/// Adds the failure or incompleteness of `job` to `imported`, and its notes.
fn note(imported: &mut ImportedResult, job: &Job) {
    for (known, other) in [
        (&mut imported.failed_because, &job.failed_because),
        (&mut imported.incomplete_because, &job.incomplete_because),
    ] {
        match known {
            Some(_) => imported.notes.extend(other.iter().map(|because| format!("Also: {because}."))),
            None => known.clone_from(other),
        }
    }
    for note in &job.notes {
        if !imported.notes.contains(note) {
            imported.notes.push(note.clone());
        }
    }
}

/// Returns the start of the first job, RFC 3339. Versions before 3.36 only report the time of the result.
fn started_at(root: &Field<'_>, jobs: &[Field<'_>], seconds: f64) -> Result<String, Error> {
    let mut first = None;
    for job in jobs {
        first = [first, job.get("job_start").count()?].into_iter().flatten().min();
    }
    let first = first.and_then(|ms| i64::try_from(ms).ok());
    let printed = root.get("timestamp").count()?.and_then(|at| i64::try_from(at).ok()?.checked_mul(1000));
    let exactly = root.get("timestamp_ms").count()?.and_then(|at| i64::try_from(at).ok());
    let printed = [exactly, printed].into_iter().flatten().find(|at| *at > 0);
    let printed = printed.map(|at| at.saturating_sub((seconds * 1e3).round() as i64));
    let time = first.or(printed).and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let text = || root.get("time").text().unwrap_or_default().to_owned();
    Ok(time.map_or_else(text, |time| time.to_string()))
}

/// Returns the counters of the devices over `seconds`; `None` if fio printed no sectors. Leaves out devices
/// that are composed of others in the list.
fn storage(disks: &Field<'_>, seconds: f64) -> Result<Option<StorageSide>, Error> {
    let device = |disk: &Field<'_>| {
        let count = |key: &str| disk.get(key).count();
        let bytes = |key: &str| Ok::<_, Error>(count(key)?.and_then(|of| of.checked_mul(SECTOR)).map(Bytes));
        let (name, read_bytes, write_bytes) =
            (disk.get("name").text(), bytes("read_sectors")?, bytes("write_sectors")?);
        let (Some(name), Some(read_bytes), Some(write_bytes)) = (name, read_bytes, write_bytes) else {
            return Ok(None);
        };
        let counters = DeviceCounters {
            name: name.to_owned(),
            reads: count("read_ios")?.unwrap_or(0),
            read_merges: count("read_merges")?.unwrap_or(0),
            read_bytes,
            writes: count("write_ios")?.unwrap_or(0),
            write_merges: count("write_merges")?.unwrap_or(0),
            write_bytes,
            ..DeviceCounters::default()
        };
        match impossible(&counters, seconds) {
            Some(problem) => Err(disk.get("name").wrong(&problem)),
            None => Ok(Some(counters)),
        }
    };
    let lowest = disks.list().into_iter().filter(|disk| disk.get("aggr_util").is_missing());
    let devices = lowest.map(|disk| device(&disk)).collect::<Result<Option<Vec<_>>, _>>()?;
    let Some(devices) = devices.filter(|devices| !devices.is_empty()) else { return Ok(None) };
    let nothing =
        |device: &DeviceCounters| DeviceCounters { name: device.name.clone(), ..Default::default() };
    let before = StorageSnapshot { at: Nanos::ZERO, devices: devices.iter().map(nothing).collect() };
    let after = StorageSnapshot { at: Nanos::from_secs_f64(seconds), devices };
    let Ok(side) = storage_side(&before, &after, FlushWrites::Unknown) else { return Ok(None) };
    let because = "fio prints the counts of all programs".to_owned();
    let attribution = Attribution { flushes: FlushesOf::AllPrograms, because, ..Attribution::default() };
    Ok(Some(StorageSide { attribution: Some(attribution), ..side }))
}

/// Returns an error message if a device cannot have done this in `seconds` and the layout before; `None` if
/// plausible.
fn impossible(device: &DeviceCounters, seconds: f64) -> Option<String> {
    let requests = [device.reads, device.read_merges, device.writes, device.write_merges];
    let moved = DirectionFigures {
        operations: requests.into_iter().fold(0, u64::saturating_add),
        bytes: device.read_bytes.0.saturating_add(device.write_bytes.0),
        ..DirectionFigures::default()
    };
    moved.impossible_rate(seconds.max(1.0))
}

//! Results that fio has printed as JSON (`--output-format=json`).

use plumb_block::{Bytes, DeviceCounters, Nanos, StorageSnapshot};
use plumb_measure::{Attribution, FlushWrites, FlushesOf, Latency, StorageSide, storage_side};
use plumb_report::document::{CpuSeconds, Environment, RunJob};
use plumb_workload::Caching;
use serde_json::Value;

use crate::error::Error;
use crate::imported::{Counted, Figures, Imported, Span, Target, description};

/// Reads a result; `file` is its name for errors.
///
/// # Errors
/// Where it is no JSON of fio.
pub(crate) fn read_json_result(text: &str, file: &str) -> Result<Imported, Error> {
    let wrong = |problem: String| {
        Error::new(file, problem).remedy("name what `fio --output-format=json` has printed")
    };
    // What fio says after its JSON is no part of it.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let root = match values.next() {
        Some(Ok(root)) => root,
        Some(Err(error)) => {
            return Err(Error::new(format!("{file}:{}", error.line()), format!("no JSON: {error}")));
        }
        None => return Err(wrong("it is empty".to_owned())),
    };
    let version =
        root["fio version"].as_str().ok_or_else(|| wrong("it is JSON, and none of fio".to_owned()))?;
    let jobs = root["jobs"].as_array().filter(|jobs| !jobs.is_empty());
    let jobs = jobs.ok_or_else(|| wrong("it has no `jobs`".to_owned()))?;
    // Jobs run at the same time, but for those behind a stonewall, which fio gives another group.
    let mut spans: Vec<(u64, Span)> = Vec::new();
    let mut notes = Vec::new();
    for job in jobs {
        let group = job["groupid"].as_u64().unwrap_or(0);
        let at = spans.iter().position(|(known, _)| *known == group).unwrap_or_else(|| {
            spans.push((group, Span::default()));
            spans.len() - 1
        });
        add(&mut spans[at].1, job, &root["global options"], &mut notes);
    }
    if let [(_, span)] = &mut spans[..] {
        span.storage = storage(&root["disk_util"], span.seconds);
    }
    let started_at = started_at(&root, jobs, spans.iter().map(|(_, span)| span.seconds).sum());
    Ok(Imported {
        program: version.replacen("fio-", "fio ", 1),
        environment: Environment { started_at, ..Environment::default() },
        spans: spans.into_iter().map(|(_, span)| span).collect(),
        notes,
    })
}

/// When the first job began, RFC 3339. Older versions tell only when they printed the result.
fn started_at(root: &Value, jobs: &[Value], seconds: f64) -> String {
    let first = jobs.iter().filter_map(|job| job["job_start"].as_i64()).min();
    let printed = root["timestamp"].as_i64().map(|at| at * 1000 - (seconds * 1e3) as i64);
    let time = first.or(printed).and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| root["time"].as_str().unwrap_or_default().to_owned(), |time| time.to_string())
}

/// Returns what the devices were handed while the jobs ran, in so many seconds; `None` where fio printed no sectors. Devices
/// that others lie beneath are left out.
fn storage(disks: &Value, seconds: f64) -> Option<StorageSide> {
    let device = |disk: &Value| {
        let count = |key: &str| disk[key].as_u64();
        Some(DeviceCounters {
            name: disk["name"].as_str()?.to_owned(),
            reads: count("read_ios")?,
            read_merges: count("read_merges").unwrap_or(0),
            read_bytes: Bytes(count("read_sectors")?.checked_mul(SECTOR)?),
            writes: count("write_ios")?,
            write_merges: count("write_merges").unwrap_or(0),
            write_bytes: Bytes(count("write_sectors")?.checked_mul(SECTOR)?),
            ..DeviceCounters::default()
        })
    };
    let lowest = disks.as_array()?.iter().filter(|disk| disk["aggr_util"].is_null());
    let devices = lowest.map(device).collect::<Option<Vec<_>>>().filter(|devices| !devices.is_empty())?;
    let nothing =
        |device: &DeviceCounters| DeviceCounters { name: device.name.clone(), ..Default::default() };
    let before = StorageSnapshot { at: Nanos::ZERO, devices: devices.iter().map(nothing).collect() };
    let after = StorageSnapshot { at: Nanos::from_secs_f64(seconds), devices };
    let side = storage_side(&before, &after, FlushWrites::Unknown).ok()?;
    let because = "fio prints the counts of all programs".to_owned();
    let attribution = Attribution { flushes: FlushesOf::AllPrograms, because, ..Attribution::default() };
    Some(StorageSide { attribution: Some(attribution), ..side })
}

/// Bytes of a sector in the kernel's counters, whatever the block of the device is.
const SECTOR: u64 = 512;

fn add(span: &mut Span, job: &Value, global: &Value, notes: &mut Vec<String>) {
    let option = |name: &str| job["job options"][name].as_str().or_else(|| global[name].as_str());
    let name = job["jobname"].as_str().unwrap_or("job").to_owned();
    let run = |side: &str| job[side]["runtime"].as_f64().unwrap_or(0.0) / 1e3;
    let longest = ["read", "write", "trim"].map(run).into_iter().fold(0.0, f64::max);
    span.seconds = span.seconds.max(longest);
    let direction = |side: &str| direction(&job[side], side);
    let (read, write, trim) = (direction("read"), direction("write"), direction("trim"));
    for note in [&read, &write, &trim].into_iter().filter_map(|(_, note)| note.clone()) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let sync = Counted {
        operations: job["sync"]["total_ios"].as_u64().unwrap_or(0),
        latency: latency(&job["sync"]["lat_ns"]).0,
        ..Counted::default()
    };
    let seconds = job["job_runtime"].as_f64().map_or(longest, |ms| ms / 1e3);
    let share = |name: &str| Some(job[name].as_f64()? / 100.0 * seconds);
    let is = |name: &str| matches!(option(name), Some("1" | "true" | ""));
    // Without group reporting each of them is printed by itself.
    let threads = option("numjobs").filter(|_| is("group_reporting"));
    let threads: u32 = threads.and_then(|text| text.parse().ok()).unwrap_or(1);
    let busy = (threads == 1).then(|| Some((job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0));
    let mut figures = Figures {
        worker_busy: busy.flatten(),
        read: read.0,
        write: write.0,
        trim: trim.0,
        sync,
        cpu: share("usr_cpu").zip(share("sys_cpu")).map(|(user, system)| CpuSeconds { user, system }),
        depth: option("iodepth")
            .map_or(Some(1), |text| text.parse().ok())
            .map(|depth: u64| depth * u64::from(threads)),
        ..Figures::default()
    };
    let moved = [read.0, write.0, trim.0].into_iter().filter(|side| side.operations > 0);
    figures.latency = moved.reduce(Counted::and).and_then(|all| all.latency);
    let block =
        option("bs").and_then(|text| text.split(',').next()?.parse::<Bytes>().ok()).map(|bytes| bytes.0);
    let all = read.0.operations + write.0.operations;
    let percent = (write.0.operations * 100).checked_div(all).unwrap_or(0);
    let every =
        |name: &str| option(name).and_then(|text| text.parse::<u32>().ok()).filter(|every| *every > 0);
    span.jobs.push(RunJob {
        name: name.clone(),
        description: description(
            option("rw").is_some_and(|rw| rw.starts_with("rand")),
            percent,
            block.unwrap_or(4096),
        ),
        block_bytes: block,
        threads,
        caching: if is("direct") { Caching::Direct } else { Caching::Cached },
        scheduled: option("rate").is_some() || option("rate_iops").is_some(),
        flush: every("fdatasync")
            .map(|_| plumb_report::document::FlushMethod::Fdatasync)
            .or_else(|| every("fsync").map(|_| plumb_report::document::FlushMethod::Fsync)),
        ..RunJob::default()
    });
    let target = option("filename").unwrap_or(&name).to_owned();
    span.total = match span.targets.is_empty() {
        true => figures.clone(),
        false => {
            let depth = span.total.depth.zip(figures.depth).map(|(one, other)| one + other);
            Figures { depth, ..std::mem::take(&mut span.total).and(&figures) }
        }
    };
    let job = span.jobs.len() - 1;
    span.targets.push(Target { name: target, size: 0, job, figures });
}

/// What was measured of a direction, and what is to be said of that.
fn direction(of: &Value, side: &str) -> (Counted, Option<String>) {
    let operations = of["total_ios"].as_u64().unwrap_or(0);
    let bytes = of["io_bytes"].as_u64().unwrap_or(0);
    // The time of the service: from the submission on, where it is there.
    let whole = latency(&of["lat_ns"]);
    let mean =
        of["lat_ns"]["mean"].as_f64().filter(|_| of["lat_ns"]["N"].as_u64() != Some(0)).map(|ns| ns / 1e9);
    let (found, is_exact) = match latency(&of["clat_ns"]) {
        (Some(service), exact) => {
            let mean = mean.unwrap_or(service.mean);
            (Some(Latency { mean, count: operations, ..service }), exact)
        }
        (None, _) => whole,
    };
    let latency = found.filter(|_| operations > 0);
    let timed = ["lat_ns", "clat_ns"].iter().any(|name| of[name]["N"].as_u64() > Some(0));
    let note = match latency {
        Some(_) if is_exact => None,
        Some(_) => Some(format!(
            "fio printed no quartiles of {side}s: the nearest percentiles that it printed stand for them"
        )),
        None => (operations > 0 && timed)
            .then(|| format!("fio printed no percentiles of {side}s: their latency is left out")),
    };
    (Counted { operations, bytes, latency, errors: 0 }, note)
}

/// A latency object of fio, and whether its quartiles are its own; `None` without percentiles.
fn latency(object: &Value) -> (Option<Latency>, bool) {
    let ns = |name: &str| object[name].as_f64().map(|ns| ns / 1e9);
    let Some(mean) = ns("mean").filter(|_| object["N"].as_u64() != Some(0)) else { return (None, true) };
    let listed = object["percentile"].as_object();
    let listed = listed
        .into_iter()
        .flatten()
        .filter_map(|(name, ns)| Some((name.parse::<f64>().ok()?, ns.as_f64()? / 1e9)));
    let mut listed: Vec<(f64, f64)> = listed.collect();
    listed.sort_by(|one, other| one.0.total_cmp(&other.0));
    if listed.is_empty() {
        return (None, true);
    }
    let max = ns("max").unwrap_or(mean);
    // The first that is not below.
    let at = |wanted: f64| {
        listed.iter().find(|(percent, _)| *percent >= wanted - 1e-9).map_or(max, |(_, value)| *value)
    };
    let has = |wanted: f64| listed.iter().any(|(percent, _)| (percent - wanted).abs() < 1e-9);
    let latency = Latency {
        count: object["N"].as_u64().unwrap_or(0),
        mean,
        std: ns("stddev").unwrap_or(0.0),
        min: ns("min").unwrap_or(mean),
        p25: at(25.0),
        p50: at(50.0),
        p75: at(75.0),
        p99: at(99.0),
        p999: at(99.9),
        max,
    };
    (Some(latency), has(25.0) && has(75.0))
}

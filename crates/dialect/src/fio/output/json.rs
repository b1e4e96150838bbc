//! Results as fio's JSON and json+.
//!
//! `clat_ns` and `lat_ns` are both the service time: `slat_ns` is not measured, and fio's latencies exclude
//! time behind the schedule of a rate. Unknown values for which readers expect a number (context switches,
//! page faults) are 0.

use plumb_block::Nanos;
use plumb_load::{Direction, Failure, LoadOutcome, SpanResult};
use plumb_report::export::fio::{FioDirection, FioJob, disk, latency};
use serde_json::{Map, Value, json};

use super::entry::{self, Entry};
use super::steadystate::{self, SteadyRound};
use super::{direction, time};
use crate::Machine;
use crate::fio::Invocation;

/// Returns the result as fio's JSON; with `plus` including all bins of the histograms (json+). `rounds` are
/// the rounds of each span, empty for spans that ran once.
pub fn json(
    invocation: &Invocation,
    results: &[SpanResult],
    rounds: &[Vec<SteadyRound>],
    machine: &Machine,
    plus: bool,
) -> Value {
    let entries = entry::entries(invocation, results);
    let of = |entry: &Entry<'_>| {
        let mut job = job(entry, &entries, results, machine, plus);
        if let Some((criterion, duration)) = &entry.reported.steady {
            let rounds = rounds.get(entry.reported.span).map_or(&[][..], Vec::as_slice);
            job["steadystate"] = steadystate::object(criterion, *duration, rounds);
        }
        job
    };
    let jobs: Vec<Value> = entries.iter().map(of).collect();
    let mut root = json!({
        "fio version": format!("plumb-{}", machine.version),
        "timestamp": machine.started_unix,
        "timestamp_ms": machine.started_unix_ms,
        "time": time::date(machine),
        "jobs": jobs,
        "disk_util": disk_util(results),
    });
    if !invocation.global_options.is_empty() {
        root["global options"] = Value::Object(options(&invocation.global_options));
    }
    root
}

/// Returns the JSON document as text with a trailing line break.
///
/// # Errors
/// Fails if a figure cannot be represented in JSON.
pub fn json_text(
    invocation: &Invocation,
    results: &[SpanResult],
    rounds: &[Vec<SteadyRound>],
    machine: &Machine,
    plus: bool,
) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&json(invocation, results, rounds, machine, plus))?;
    text.push('\n');
    Ok(text)
}

fn job(
    entry: &Entry<'_>,
    entries: &[Entry<'_>],
    results: &[SpanResult],
    machine: &Machine,
    plus: bool,
) -> Value {
    let (reported, outcome) = (entry.reported, &entry.outcome);
    let before: u64 =
        results.iter().take(reported.span).map(|result| (result.warmup + result.window).0).sum();
    let group = |of: Of| -> f64 {
        let same = entries.iter().filter(|other| other.reported.group == reported.group);
        same.map(|other| direction::mean_rates(of(&other.outcome), other.outcome.length).0).sum()
    };
    let flushes = &outcome.flush.latency;
    let operations = outcome.operations();
    let mut directions =
        DIRECTIONS.map(|(_, of)| direction::figures(of(outcome), outcome.length, reported, group(of), plus));
    let read_back_time = outcome.verified.as_ref().map_or(Nanos::ZERO, |verified| verified.read_back_time);
    let [read, ..] = &mut directions;
    count_read_back(read, entry);
    let job = FioJob {
        name: &reported.name,
        group: reported.group,
        error: first_error(outcome),
        seconds: entry.seconds(),
        runtime_ms: outcome.length.0 / 1_000_000 * entry.clones as u64 + read_back_time.0 / 1_000_000,
        options: options(&reported.options),
        user_percent: percent_of(entry.cpu.user, entry),
        system_percent: percent_of(entry.cpu.system, entry),
        depth: entry.depth,
        directions,
        syncs: flushes.count(),
        sync_latency: latency::object(Some(flushes), Some(reported.percentiles.as_slice()), plus),
        operations: Some(&operations.latency),
    };
    let mut value = job.to_json();
    value["job_start"] = json!(machine.started_unix_ms + before / 1_000_000);
    if let Some(target) = reported.latency_target {
        value["latency_target"] = json!(target.latency.0 / 1000);
        value["latency_percentile"] = json!(target.percentile);
    }
    value["latency_window"] = json!(reported.latency_window.0 / 1000);
    if let Some(description) = &reported.description {
        value["desc"] = json!(description);
    }
    if let Some(verified) = &outcome.verified {
        value["verified"] = json!({
            "blocks": verified.blocks,
            "lost": verified.lost,
            "torn": verified.torn,
            "misdirected": verified.misdirected,
            "stale": verified.stale,
        });
    }
    if reported.continue_on_error {
        value["total_err"] = json!(operations.failures());
        value["first_error"] = json!(first_error(outcome));
    }
    value
}

/// Adds the data read back to the reads, as fio does: to their operations, in blocks of the job, run time and
/// rates. Distributions and samples are those of the load.
fn count_read_back(read: &mut FioDirection, entry: &Entry<'_>) {
    let Some(verified) = &entry.outcome.verified else { return };
    read.bytes += verified.read_back_bytes;
    read.operations += verified.read_back_bytes.div_ceil(entry.block.0.max(1));
    read.runtime_ms += verified.read_back_time.0 / 1_000_000;
    let seconds = verified.read_back_time.as_secs_f64()
        + if entry.outcome.read.operations() > 0 { entry.outcome.length.as_secs_f64() } else { 0.0 };
    if seconds > 0.0 && read.operations > 0 {
        read.iops = read.operations as f64 / seconds;
        read.bytes_per_second = read.bytes as f64 / seconds;
    }
}

/// Selector of a direction of an outcome.
pub(super) type Of = fn(&LoadOutcome) -> &Direction;

/// Directions in fio's order.
pub(super) const DIRECTIONS: [(&str, Of); 3] = [
    ("read", |outcome| &outcome.read),
    ("write", |outcome| &outcome.write),
    ("trim", |outcome| &outcome.trim),
];

fn options(typed: &[(String, String)]) -> Map<String, Value> {
    typed.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

/// Returns the error number of the first kind of failure: 5 (EIO) for one without a number, 84 (EILSEQ) as in
/// fio if only verification failed, 0 for none.
pub(super) fn first_error(outcome: &LoadOutcome) -> i32 {
    const EIO: i32 = 5;
    const EILSEQ: i32 = 84;
    let all = outcome.operations().errors.into_iter().chain(outcome.flush.errors.iter().copied());
    match all.into_iter().next() {
        Some((Failure::Errno(errno), _)) => errno.0,
        Some((Failure::Unknown | Failure::PowerLost, _)) => EIO,
        None if outcome.verified.as_ref().is_some_and(|verified| verified.wrong() > 0) => EILSEQ,
        None => 0,
    }
}

/// Returns `time` in percent of the time of all clones together.
pub(super) fn percent_of(time: Nanos, entry: &Entry<'_>) -> f64 {
    let all = entry.window.as_secs_f64() * entry.clones as f64;
    if all > 0.0 { time.as_secs_f64() * 100.0 / all } else { 0.0 }
}

/// Counters of a device in `disk_util`, in fio's order.
pub(super) const DISK_COUNTS: [&str; 7] =
    ["read_ios", "write_ios", "read_merges", "write_merges", "read_ticks", "write_ticks", "in_queue"];

/// Returns the entries for the devices below.
pub(super) fn disk_util(results: &[SpanResult]) -> Vec<Value> {
    let devices = entry::devices(results).into_iter();
    devices.map(|(_, (device, window))| disk(&device, window.as_secs_f64())).collect()
}

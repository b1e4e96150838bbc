//! fio's terse output: a line of fields between semicolons for each job, of version 3 or 5.
//!
//! The fields are those of [`json`](super::json), in fio's order and units: KiB, microseconds. Version 5 adds trims, and
//! the operations per second beside the bandwidth.

use plumb_load::SpanResult;
use plumb_report::export::fio::DEPTHS;
use plumb_report::export::fio::latency::{BUCKETS, Buckets};
use serde_json::Value;

use super::json::{DISK_COUNTS, json};
use crate::Machine;
use crate::fio::Invocation;

/// How many percentiles a line has room for.
const PERCENTILES: usize = 20;

/// The versions that can be printed.
pub(crate) const VERSIONS: [u32; 2] = [3, 5];

/// The result as terse lines of `version`, one of those that fio has: 3 unless 5 was asked for.
pub fn terse(invocation: &Invocation, results: &[SpanResult], machine: &Machine, version: u32) -> String {
    let all = json(invocation, results, &[], machine, false);
    let jobs = all["jobs"].as_array().into_iter().flatten();
    jobs.map(|job| line(&all, job, version)).collect()
}

fn line(all: &Value, job: &Value, version: u32) -> String {
    let mut fields = vec![
        version.to_string(),
        text(&all["fio version"]),
        text(&job["jobname"]),
        job["groupid"].to_string(),
        job["error"].to_string(),
    ];
    let directions = if version == 5 { &["read", "write", "trim"][..] } else { &["read", "write"] };
    for name in directions {
        direction(&job[name], version, &mut fields);
    }
    fields.extend(["usr_cpu", "sys_cpu"].map(|name| format!("{:.6}%", number(&job[name]))));
    fields.extend(["ctx", "majf", "minf"].map(|name| job[name].to_string()));
    let depths = &job["iodepth_level"];
    fields.extend(DEPTHS.iter().map(|(name, _)| format!("{:.1}%", number(&depths[*name]))));
    fields.extend(shares(job));
    for disk in all["disk_util"].as_array().into_iter().flatten() {
        fields.push(text(&disk["name"]));
        fields.extend(DISK_COUNTS.map(|name| disk[name].to_string()));
        fields.push(format!("{:.2}%", number(&disk["util"])));
    }
    if !job["desc"].is_null() {
        fields.push(text(&job["desc"]));
    }
    fields.join(";") + "\n"
}

/// One direction: what moved, latencies in microseconds, and the samples of its rates.
fn direction(of: &Value, version: u32, fields: &mut Vec<String>) {
    let whole = |name: &str| format!("{:.0}", number(&of[name]).floor());
    fields.extend(["io_kbytes", "bw", "iops", "runtime"].map(whole));
    latency(&of["slat_ns"], fields);
    latency(&of["clat_ns"], fields);
    let listed = of["clat_ns"]["percentile"].as_object().into_iter().flatten();
    let mut listed: Vec<(f64, &Value)> =
        listed.filter_map(|(name, value)| Some((name.parse().ok()?, value))).collect();
    listed.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut listed = listed.into_iter();
    fields.extend((0..PERCENTILES).map(|_| match listed.next() {
        Some((percent, value)) => format!("{percent:.6}%={:.0}", (number(value) / 1000.0).floor()),
        None => "0%=0".to_owned(),
    }));
    latency(&of["lat_ns"], fields);
    fields.extend(["bw_min", "bw_max"].map(whole));
    fields.push(format!("{:.6}%", number(&of["bw_agg"])));
    fields.extend(["bw_mean", "bw_dev"].map(|name| format!("{:.6}", number(&of[name]))));
    if version == 5 {
        fields.extend(["bw_samples", "iops_min", "iops_max"].map(whole));
        fields.extend(["iops_mean", "iops_stddev"].map(|name| format!("{:.6}", number(&of[name]))));
        fields.push(whole("iops_samples"));
    }
}

/// Least, most, mean and deviation.
fn latency(of: &Value, fields: &mut Vec<String>) {
    fields.extend(["min", "max"].map(|name| format!("{:.0}", (number(&of[name]) / 1000.0).floor())));
    fields.extend(["mean", "stddev"].map(|name| format!("{:.6}", number(&of[name]) / 1000.0)));
}

/// The shares of latencies below each bound, from 2 us: what took nanoseconds is in the first.
fn shares(job: &Value) -> Vec<String> {
    let [nanoseconds, microseconds, milliseconds] = &BUCKETS;
    let of = |buckets: &Buckets, key: &str| -> Vec<f64> {
        buckets.names().iter().map(|name| number(&job[key][name])).collect()
    };
    let mut shares = of(microseconds, "latency_us");
    shares[0] += of(nanoseconds, "latency_ns").iter().sum::<f64>();
    shares.extend(of(milliseconds, "latency_ms"));
    shares.iter().map(|share| format!("{share:.2}%")).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// A name without what would begin another field or line.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace([';', '\n'], "_")
}

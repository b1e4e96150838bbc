//! Consistency of the output with the measured figures.

use super::*;
use crate::fio::{json, logs, normal};
use plumb_block::Nanos;
use plumb_load::LoadOutcome;
use plumb_load::span::{CpuUse, Part, SpanResult, ThreadResult};
use plumb_measure::SeriesEvent;
use serde_json::Value;

/// Returns a result in which each thread did the same: reads of 4 KiB for two seconds, and a flush.
pub(super) fn results(invocation: &Invocation) -> Vec<SpanResult> {
    let spans = invocation.meaning.scenario.spans.iter();
    let thread = |job: usize| {
        let mut outcome = LoadOutcome::empty();
        outcome.length = Nanos::secs(2);
        for nth in 1..=1000_u64 {
            let latency = Nanos::micros(nth);
            let at = Nanos::millis(2 * nth - 1);
            for direction in [&mut outcome.read, &mut outcome.write] {
                direction.latency.record(latency);
                direction.bytes += Bytes(4096);
                direction.series.record(SeriesEvent { at, bytes: 4096, latency });
            }
        }
        outcome.flush.latency.record(Nanos::millis(3));
        let cpu = Some(CpuUse { user: Nanos::millis(200), system: Nanos::millis(400) });
        ThreadResult { job, cpu, parts: vec![Part { target: 0, outcome }] }
    };
    spans
        .map(|span| SpanResult {
            warmup: Nanos::ZERO,
            window: Nanos::secs(2),
            threads: span
                .jobs
                .iter()
                .enumerate()
                .flat_map(|(job, meant)| (0..meant.threads).map(move |_| job))
                .map(thread)
                .collect(),
            targets: Vec::new(),
            processors: Vec::new(),
        })
        .collect()
}

fn json_of(text: &str, plus: bool) -> Value {
    let invocation = file(text).unwrap();
    json(&invocation, &results(&invocation), &[], &machine(), plus)
}

const JOBS: &str = "[global]\nsize=1m\nrw=randrw\n[a]\nfilename=/a\nfdatasync=1\nnumjobs=2\n[b]\nfilename=/b\nstonewall\niodepth=8\nioengine=io_uring\n";

#[test]
fn figures_are_those_measured() {
    let value = json_of(JOBS, false);
    let jobs = value["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 3, "clones are reported apart");
    let read = &jobs[0]["read"];
    assert_eq!(read["total_ios"], 1000);
    assert_eq!(read["iops"], 500.0);
    assert_eq!(read["bw"], 2000);
    assert_eq!(read["io_kbytes"], 4000);
    assert_eq!(read["runtime"], 2000);
    assert_eq!(read["clat_ns"]["min"], 1000);
    assert_eq!(read["clat_ns"]["max"], 1_000_000);
    let median = read["clat_ns"]["percentile"]["50.000000"].as_f64().unwrap();
    assert!((median - 500_000.0).abs() < 1000.0, "{median}");
    assert_eq!(read["clat_ns"]["bins"], Value::Null, "bins are those of json+");
    assert_eq!((&read["bw_samples"], &read["bw_mean"]), (&Value::from(4), &Value::from(2000.0)));
    assert_eq!(jobs[0]["sync"]["total_ios"], 1);
    assert_eq!(jobs[0]["usr_cpu"], 10.0);
    assert_eq!(jobs[0]["job options"]["fdatasync"], "1");
    assert_eq!(value["global options"]["rw"], "randrw");
    assert_eq!((&jobs[2]["groupid"], &jobs[2]["iodepth_level"]["8"]), (&Value::from(1), &Value::from(100.0)));
    assert_eq!(value["time"], "Sat Nov 21 23:27:02 2026");
}

#[test]
fn a_group_is_one() {
    let value = json_of(&JOBS.replace("size=1m", "size=1m\ngroup_reporting"), true);
    let jobs = value["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0]["read"]["total_ios"], 2000);
    assert_eq!(jobs[0]["usr_cpu"], 10.0, "of the time of both");
    let bins = jobs[0]["read"]["clat_ns"]["bins"].as_object().unwrap();
    assert_eq!(bins.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 2000);
}

#[test]
fn percentiles_are_those_asked_for() {
    let value =
        json_of("[a]\nsize=1m\npercentile_list=99.9:50\nlat_percentiles=1\nclat_percentiles=0\n", false);
    let read = &value["jobs"][0]["read"];
    assert_eq!(read["clat_ns"]["percentile"], Value::Null);
    let list: Vec<&String> = read["lat_ns"]["percentile"].as_object().unwrap().keys().collect();
    assert_eq!(list, ["50.000000", "99.900000"]);
}

#[test]
fn wrong_blocks_are_an_error() {
    let invocation = section("rw=write|verify=crc32c").unwrap();
    let mut results = results(&invocation);
    let verified = plumb_measure::VerifyResult { blocks: 100, torn: 2, stale: 1, ..Default::default() };
    results[0].threads[0].parts[0].outcome.verified = Some(verified);
    let value = json(&invocation, &results, &[], &machine(), false);
    let job = &value["jobs"][0];
    assert_eq!((&job["error"], &job["verified"]["torn"]), (&Value::from(84), &Value::from(2)));
    let text = normal(&invocation, &results, &machine());
    assert!(text.contains("wrong=3 (lost=0, torn=2, misdirected=0, stale=1)"), "{text}");
}

/// fio 3.33 with `--rw=write --size=8m --bs=64k --verify=md5` prints 128 reads of 8,388,608 bytes, with their
/// own run time and rates, and both run times in job_runtime.
#[test]
fn what_is_read_back_counts_as_reads_in_its_own_time() {
    let invocation = section("rw=write|verify=md5|bs=64k").unwrap();
    let mut results = results(&invocation);
    let outcome = &mut results[0].threads[0].parts[0].outcome;
    (outcome.read, outcome.length) = (LoadOutcome::empty().read, Nanos::secs(1));
    outcome.verified = Some(plumb_measure::VerifyResult {
        read_back_bytes: 8 << 20,
        read_back_time: Nanos::millis(500),
        ..Default::default()
    });
    let value = json(&invocation, &results, &[], &machine(), false);
    let (job, read) = (&value["jobs"][0], &value["jobs"][0]["read"]);
    assert_eq!(
        (&read["total_ios"], &read["io_bytes"], &read["runtime"]),
        (&128.into(), &(8 << 20).into(), &500.into())
    );
    assert_eq!((&read["bw_bytes"], &read["iops"]), (&(16 << 20).into(), &256.0.into()));
    assert_eq!((&job["job_runtime"], &job["write"]["runtime"]), (&1500.into(), &1000.into()));
}

#[test]
fn what_was_not_run_is_reported_with_zeroes() {
    let invocation = file(&format!("{JOBS}numjobs=2\n")).unwrap();
    let results = &results(&invocation)[..1];
    let value = json(&invocation, results, &[], &machine(), false);
    let jobs = value["jobs"].as_array().unwrap();
    let counts: Vec<_> = jobs
        .iter()
        .map(|job| (job["jobname"].as_str().unwrap(), job["read"]["total_ios"].as_u64().unwrap()))
        .collect();
    assert_eq!(counts, [("a", 1000), ("a", 1000), ("b", 0), ("b", 0)]);
    assert_eq!((&jobs[3]["read"]["iops"], &jobs[3]["usr_cpu"]), (&0.0.into(), &0.0.into()));
    let text = normal(&invocation, results, &machine());
    assert!(text.contains("b: (groupid=1, jobs=1): err= 0") && !text.contains("NaN"), "{text}");
}

#[test]
fn times_are_to_the_millisecond() {
    let invocation = file(JOBS).unwrap();
    let machine = Machine { started_unix_ms: 1_795_303_622_417, ..machine() };
    let value = json(&invocation, &results(&invocation), &[], &machine, false);
    assert_eq!(value["timestamp_ms"], 1_795_303_622_417_u64);
    assert_eq!(value["jobs"][0]["job_start"], 1_795_303_622_417_u64);
}

#[test]
fn text_for_people() {
    let invocation = file(&JOBS.replace("size=1m", "size=1m\ngroup_reporting")).unwrap();
    let text = normal(&invocation, &results(&invocation), &machine());
    for line in [
        "a: (g=0): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1",
        "Starting 3 threads",
        "a: (groupid=0, jobs=2): err= 0: pid=0: Sat Nov 21 23:27:02 2026",
        "  read: IOPS=1000, BW=4000KiB/s (4096kB/s)(8000KiB/2000msec)",
        "    clat (nsec): min=1000, max=1000.0k, avg=500500.00, stdev=288674.99",
        "  fsync/fdatasync/sync_file_range:",
        "  cpu          : usr=10.00%, sys=20.00%",
        "Run status group 1 (all jobs):",
        "   READ: bw=4000KiB/s (4096kB/s), 4000KiB/s-4000KiB/s (4096kB/s-4096kB/s), io=8000KiB (8192kB), run=2000-2000msec",
    ] {
        assert!(text.lines().any(|printed| printed == line), "`{line}` is missing in\n{text}");
    }
}

#[test]
fn logs_have_a_line_for_an_interval() {
    let text = "[a]\nsize=1m\nwrite_bw_log=run\nwrite_lat_log=run\nwrite_iops_log=run\nlog_avg_msec=500\n";
    let invocation = file(text).unwrap();
    let files = logs(&invocation, &results(&invocation), &machine());
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["run_bw.1.log", "run_lat.1.log", "run_clat.1.log", "run_iops.1.log"]);
    assert_eq!(files[0].text.lines().next(), Some("500, 2000, 0, 0, 0, 0"));
    assert_eq!(files[0].text.lines().nth(1), Some("500, 2000, 1, 0, 0, 0"), "writes");
    assert_eq!(files[1].text.lines().next(), Some("500, 125500, 0, 0, 0, 0"));
    assert_eq!(files[3].text.lines().count(), 8);
    let fine = section("write_bw_log|log_avg_msec=150").unwrap();
    assert!(fine.meaning.notes.join(" ").contains("200 ms instead of 150 ms"));
    assert_eq!(fine.reported[0].logs.files[0].1, "x", "the job's name unless one is given");
    let epoch = file(&format!("{text}log_unix_epoch=1\nper_job_logs=0\n")).unwrap();
    let files = logs(&epoch, &results(&epoch), &machine());
    assert_eq!(files[0].name, "run_bw.log");
    assert!(files[0].text.starts_with("1795303622500, 2000, 0,"));
}

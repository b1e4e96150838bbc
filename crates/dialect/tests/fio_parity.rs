//! Comparison with the installed fio: equal options for the same job files, no missing key in the JSON, json+
//! that its own reader accepts, and traces that it writes. Guards against output that only resembles fio's.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use plumb_block::{Bytes, Nanos};
use plumb_dialect::Error;
use plumb_dialect::fio::trace::{self, TraceOp};
use plumb_dialect::fio::{Invocation, Surroundings, json, json_text, parse};
use plumb_load::LoadOutcome;
use plumb_load::span::{CpuUse, Part, SpanResult, TargetResult, ThreadResult};
use plumb_measure::{FlushWrites, SeriesEvent, StorageSide};
use plumb_testkit::program::fio_is_here;
use serde_json::Value;

use crate::machine;

/// Job files on files in the current directory, each for a moment.
const JOB_FILES: [&str; 6] = [
    "[global]\nsize=1m\nbs=4k\nioengine=psync\n[a]\nrw=randrw\nfdatasync=4\n[b]\nrw=write\nstonewall\nnumjobs=2\n\
     group_reporting\n",
    "[x]\nrw=randread\nsize=1m\nioengine=libaio\niodepth=4\ndescription=hello\nlat_percentiles=1\n\
     percentile_list=50:99\n",
    "[x]\nrw=randwrite\nsize=2m\nbssplit=4k/60:16k/40\nrandom_distribution=zoned:60/10:40/90\nnorandommap\n\
     continue_on_error=all\n",
    "; comment\n[global]\nsize=256k ; behind\nthread\n\n[one]\nrw=readwrite\nrwmixread=70\n[two]\nrw=read\nnew_group\n",
    "[x]\nrw=randread\nsize=1m\nss=iops:10%\nss_dur=2\nruntime=1\n",
    "[x]\nrw=randread\nsize=1m\nioengine=libaio\ndirect=1\nlatency_target=100s\nlatency_window=100ms\nruntime=1\n",
];

/// Parses the job file `text`.
pub(crate) fn ours(text: &str) -> Result<Invocation, Error> {
    let read_file = |_: &str| Ok(text.to_owned());
    parse(
        &["job.fio".to_owned()],
        &machine(),
        &Surroundings {
            read_file: &read_file,
            environment: &|_| None,
            target_size: &|_| None,
            is_file: &|_| true,
            is_scheme: &|_| false,
            is_directory: &|_| true,
        },
    )
}

fn run_fio(directory: &Path, text: &str, arguments: &[&str]) -> String {
    std::fs::write(directory.join("job.fio"), text).unwrap();
    let output = Command::new("fio").args(arguments).arg("job.fio").current_dir(directory).output().unwrap();
    assert!(output.status.success(), "fio failed on\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns a result in which every thread did operations of every kind.
fn measured(invocation: &Invocation) -> Vec<SpanResult> {
    let thread = |job: usize| {
        let mut outcome = LoadOutcome::empty();
        outcome.length = Nanos::secs(1);
        for nth in 1..=500_u64 {
            let (latency, at) = (Nanos(nth * nth * 10), Nanos::millis(2 * nth - 1));
            for direction in [&mut outcome.read, &mut outcome.write, &mut outcome.trim] {
                direction.latency.record(latency);
                direction.bytes += Bytes(4096);
                direction.series.record(SeriesEvent { at, bytes: 4096, latency });
            }
            outcome.flush.latency.record(latency);
        }
        ThreadResult { job, cpu: Some(CpuUse::default()), parts: vec![Part { target: 0, outcome }] }
    };
    let span = |span: &plumb_workload::Span| SpanResult {
        warmup: Nanos::ZERO,
        window: Nanos::secs(1),
        threads: (0..span.jobs.len())
            .flat_map(|job| (0..span.jobs[job].threads).map(move |_| job))
            .map(thread)
            .collect(),
        targets: vec![target()],
        processors: Vec::new(),
    };
    invocation.meaning.scenario.spans.iter().map(span).collect()
}

fn target() -> TargetResult {
    let device = plumb_block::DeviceCounters {
        name: "vda".into(),
        reads: 10,
        read_merges: 1,
        read_bytes: Bytes(40_960),
        read_time: Nanos::millis(5),
        writes: 20,
        write_merges: 2,
        write_bytes: Bytes(81_920),
        write_time: Nanos::millis(9),
        discards: 0,
        discard_bytes: Bytes(0),
        flushes: Some(3),
        flush_time: Nanos::millis(1),
        in_flight: 0,
        busy_time: Nanos::millis(250),
    };
    let storage = StorageSide {
        iops: 30.0,
        bytes_per_second: 122_880.0,
        io_bytes_mean: Some(4096.0),
        flushes: Some(3),
        flush_mean: None,
        reads: 10,
        writes: 20,
        read_bytes: 40_960,
        write_bytes: 81_920,
        merges: 3,
        flush_writes: FlushWrites::NotCounted,
        devices: vec![device],
        above: Vec::new(),
        attribution: None,
    };
    TargetResult {
        job: 0,
        name: "f".into(),
        opened: "/f".into(),
        size: Bytes::mib(1),
        engine: "pread/pwrite".into(),
        storage: Ok(storage),
    }
}

/// Asserts that `ours` has every key of `theirs`, with values of the same type.
fn covers(ours: &Value, theirs: &Value, place: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                // The keys are values here, and differ between runs.
                if place.ends_with(".bins") || place.ends_with(".percentile") || key == "data" {
                    continue;
                }
                let here = format!("{place}.{key}");
                if place.ends_with(".steadystate")
                    && ["attained", "criterion", "max_deviation", "slope"].contains(&key.as_str())
                {
                    // plumb judges by another criterion.
                    continue;
                }
                let mine = ours.get(key).unwrap_or_else(|| panic!("{here} is missing"));
                covers(mine, value, &here);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            if let (Some(ours), Some(theirs)) = (ours.first(), theirs.first()) {
                covers(ours, theirs, &format!("{place}[0]"));
            }
        }
        (ours, theirs) => {
            assert_eq!(
                std::mem::discriminant(ours),
                std::mem::discriminant(theirs),
                "{place}: {ours} {theirs}"
            );
            assert_eq!(ours.is_f64(), theirs.is_f64(), "{place}: {ours} against {theirs}");
        }
    }
}

#[test]
fn its_json_has_no_key_that_ours_lacks() {
    if !fio_is_here() {
        return;
    }
    for text in JOB_FILES {
        let directory = tempfile::tempdir().unwrap();
        let theirs = run_fio(directory.path(), text, &["--output-format=json+"]);
        let theirs: Value = serde_json::from_str(&theirs).unwrap();
        let invocation = ours(text).unwrap();
        let ours = json(&invocation, &measured(&invocation), &[], &machine(), true);
        let (mine, jobs) = (ours["jobs"].as_array().unwrap(), theirs["jobs"].as_array().unwrap());
        assert_eq!(mine.len(), jobs.len(), "{text}");
        for (nth, (mine, theirs)) in mine.iter().zip(jobs).enumerate() {
            covers(mine, theirs, &format!("jobs[{nth}]"));
            for key in ["jobname", "groupid", "desc", "job options"] {
                assert_eq!(mine[key], theirs[key], "{key} of {text}");
            }
        }
        assert_eq!(ours["global options"], theirs["global options"], "{text}");
        covers(&ours, &theirs, "root");
    }
}

#[test]
fn its_reader_of_bins_takes_our_json_plus() {
    let reader = "fio_jsonplus_clat2csv";
    if Command::new(reader).arg("--help").output().is_err() {
        plumb_testkit::skip("fio_jsonplus_clat2csv is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let invocation = ours(JOB_FILES[0]).unwrap();
    let text = json_text(&invocation, &measured(&invocation), &[], &machine(), true).unwrap();
    std::fs::write(directory.path().join("plumb.json"), text).unwrap();
    for extra in [None, Some("--validate")] {
        let output = Command::new(reader)
            .args(["plumb.json", "plumb.csv"])
            .args(extra)
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let table = std::fs::read_to_string(directory.path().join("plumb_job0.csv")).unwrap();
    let head = table.lines().next().unwrap();
    assert!(head.starts_with("nsec,") && head.contains("read_clat_ns_count"), "{head}");
    assert!(table.lines().count() > 400, "a line for each bin");
}

/// Returns count and bytes of each kind of operation, which `rw` and the sizes of an iolog determine.
fn amounts(trace: &trace::Trace) -> BTreeMap<&'static str, (u64, u64)> {
    let mut amounts = BTreeMap::new();
    for event in &trace.events {
        let kind = match event.op {
            TraceOp::Read => "read",
            TraceOp::Write { .. } => "write",
            TraceOp::Trim => "trim",
            TraceOp::Flush => "flush",
        };
        let (count, bytes) = amounts.entry(kind).or_insert((0, 0));
        *count += 1;
        *bytes += event.length().0;
    }
    amounts
}

#[test]
fn traces_that_it_writes_are_read() {
    if !fio_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let text = "[x]\nrw=randrw\nsize=256k\nbs=4k\nfilename=one:two\nfsync=8\nwrite_iolog=log\nioengine=psync\n\
                rate_iops=400,400\nrandseed=1\n";
    let theirs = run_fio(directory.path(), text, &["--output-format=json"]);
    let theirs: Value = serde_json::from_str(&theirs).unwrap();
    let open = |name: &str| open(&directory.path().join(name));
    let trace = trace::read_named("log", &open).unwrap();
    assert_eq!(trace.targets.len(), 2, "{:?}", trace.targets);
    let amounts = amounts(&trace);
    let job = &theirs["jobs"][0];
    for kind in ["read", "write"] {
        let expected = (job[kind]["total_ios"].as_u64().unwrap(), job[kind]["io_bytes"].as_u64().unwrap());
        assert_eq!(amounts[kind], expected, "{kind}");
    }
    assert_eq!(amounts["flush"].0, job["sync"]["lat_ns"]["N"].as_u64().unwrap());
    // 64 operations at 800 per second take 80 ms; times misread in another unit would give 80 us or 80 s.
    let last = trace.events.last().unwrap().at;
    assert!(last > Nanos::millis(30) && last < Nanos::secs(30), "{last}");
}

fn open(path: &std::path::Path) -> std::io::Result<Box<dyn std::io::BufRead>> {
    Ok(Box::new(std::io::BufReader::new(std::fs::File::open(path)?)))
}

/// Returns a blktrace record: a request of `bytes` at `sector` of device 8:0, queued at `time`.
fn queued(time: u64, sector: u64, bytes: u32, kind: u32) -> Vec<u8> {
    const QUEUED: u32 = 1 | 1 << 20;
    let mut record = Vec::new();
    record.extend(0x6561_7407_u32.to_le_bytes());
    record.extend(0_u32.to_le_bytes());
    record.extend(time.to_le_bytes());
    record.extend(sector.to_le_bytes());
    for field in [bytes, QUEUED | kind, 1, 8 << 20, 0, 0] {
        record.extend(field.to_le_bytes());
    }
    record
}

#[test]
fn a_blktrace_means_the_same_to_both() {
    if !fio_is_here() {
        return;
    }
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 1 << 17;
    let records = [
        queued(1_000_000, 0, 4096, READ),
        queued(1_200_000, 8, 8192, WRITE),
        queued(1_300_000, 64, 4096, READ),
        queued(1_400_000, 32, 512, WRITE),
        queued(1_500_000, 16, 16_384, READ),
    ];
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("trace.bin"), records.concat()).unwrap();
    let text =
        "[x]\nread_iolog=trace.bin\nreplay_redirect=target\nfilename=target\nsize=1m\nioengine=psync\n";
    std::fs::write(directory.path().join("target"), vec![0; 1 << 20]).unwrap();
    let theirs = run_fio(directory.path(), text, &["--output-format=json"]);
    let theirs: Value = serde_json::from_str(&theirs).unwrap();
    let open = |name: &str| open(&directory.path().join(name));
    let job = ours(text).unwrap().meaning.scenario.spans.remove(0).jobs.remove(0);
    let how = job.trace.clone().unwrap();
    let trace = how.apply(trace::read_named(&how.path, &open).unwrap());
    assert_eq!(job.targets[0].name, "target");
    let amounts = amounts(&trace);
    for kind in ["read", "write"] {
        let job = &theirs["jobs"][0][kind];
        let expected = (job["total_ios"].as_u64().unwrap(), job["io_bytes"].as_u64().unwrap());
        assert_eq!(amounts[kind], expected, "{kind}");
    }
}

#[test]
fn what_it_refuses_is_refused() {
    if !fio_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for lines in [
        "random_distribution=zoned:60/10:30/20",
        "random_distribution=zoned:60/10:30/20:8/30:3/40",
        "random_distribution=zipf:1.0",
        "random_distribution=pareto:1.2",
        "bs=0",
        "iodepth=0",
        "direct=2",
        "unlink=2",
        "prio=9",
        "no_such_option=1",
        "direct",
        "rw=sideways",
    ] {
        let text = format!("[x]\nrw=randread\nsize=1m\n{lines}\n");
        std::fs::write(directory.path().join("job.fio"), &text).unwrap();
        let output = Command::new("fio")
            .args(["--parse-only", "job.fio"])
            .current_dir(directory.path())
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let dropped = said.contains("dropped") || !output.status.success();
        assert!(dropped, "fio takes {lines}: {said}");
        assert!(ours(&text).is_err(), "{lines} was taken");
    }
    for lines in [
        "bssplit=4k/50:8k/:16k/",
        "bssplit=4k:8k",
        "bssplit=4k/60:64k/40,8k/100",
        "random_distribution=zoned:60/10:40/",
        "random_distribution=zoned_abs:60/512k:40/512k",
        "random_distribution=zipf",
        "rw=randread:8",
        "rw=read:4k",
        "sync_file_range=wait_before,write,wait_after:8",
        "percentile_list=50:99:99.9",
        "sync=dsync",
        "time_based=0",
        "bs = 8k",
    ] {
        let text = format!("[x]\nrw=randread\nsize=1m\n{lines}\n");
        run_fio(directory.path(), &text, &["--parse-only"]);
        assert!(ours(&text).is_ok(), "{lines}: {}", ours(&text).unwrap_err());
    }
}

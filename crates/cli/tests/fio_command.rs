//! Tests of `plumb fio` as users run it: job files, its outputs, and its own reader.

use std::process::Command;

use crate::common;
use crate::common::{entries, exited, has_run, said};
use crate::load_support::{Place, stderr};
use serde_json::Value;

const JOB: &str = "[global]\nfilename=f\nsize=4m\nbs=4k\ndirect=1\n[w]\nrw=randwrite\nfdatasync=8\n[r]\nstonewall\n\
                   rw=randread\nioengine=libaio\niodepth=8\n";

fn with_job() -> Place {
    let place = Place::new();
    std::fs::write(place.path("job.fio"), JOB).unwrap();
    place
}

#[test]
fn json_is_alone_on_stdout_and_counts_what_the_jobs_did() {
    let place = with_job();
    let output = exited(place.run("fio job.fio --output-format=json"), 0);
    let document = common::document(&output);
    let jobs = document["jobs"].as_array().unwrap();
    let counts = |job: &Value| ["write", "read", "sync"].map(|part| job[part]["total_ios"].as_u64().unwrap());
    assert_eq!(jobs.iter().map(counts).collect::<Vec<_>>(), [[1024, 0, 127], [0, 1024, 0]]);
    assert_eq!(jobs[1]["job options"]["iodepth"], "8");
    assert!(jobs.iter().all(|job| job["error"] == 0));
    let mut left = entries(place.here.path());
    left.sort();
    assert_eq!(left, ["f", "job.fio"]);
}

#[test]
fn a_job_file_may_come_from_standard_input() {
    let place = with_job();
    let job = std::fs::File::open(place.path("job.fio")).unwrap();
    let output = exited(place.command("fio --output-format=json -").stdin(job).output().unwrap(), 0);
    assert_eq!(common::document(&output)["jobs"].as_array().unwrap().len(), 2);
}

#[test]
fn output_goes_whole_to_a_file_and_leaves_stdout_empty() {
    let place = with_job();
    let output = place.run("fio job.fio --output-format=json --output=o.json");
    assert!(has_run(&output), "{}", said(&output));
    assert!(output.stdout.is_empty(), "{}", said(&output));
    let document: Value = serde_json::from_slice(&std::fs::read(place.path("o.json")).unwrap()).unwrap();
    assert_eq!(document["jobs"].as_array().unwrap().len(), 2);
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
    assert!(has_run(&place.run("fio job.fio --output-format=json --output=pipe")));
    let document: Value = serde_json::from_slice(&reader.join().unwrap()).unwrap();
    assert_eq!(
        document["jobs"].as_array().unwrap().len(),
        2,
        "a target that is not a file is written to, not replaced"
    );
    let nowhere = exited(place.run("fio job.fio --output=no/such/o.json"), 2);
    assert!(stderr(&nowhere).contains("no/such/o.json"), "{}", said(&nowhere));
}

#[test]
fn the_usual_text_names_each_job() {
    let place = with_job();
    let output = place.run("fio job.fio");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for words in
        ["w: (g=0)", "r: (g=1)", "write: IOPS=", "read: IOPS=", "clat percentiles", "Run status group 1"]
    {
        assert!(text.contains(words), "{words}: {}", said(&output));
    }
}

#[test]
fn fio_reads_its_own_json_plus() {
    let place = with_job();
    exited(place.run("fio job.fio --output-format=json+ --output=plus.json"), 0);
    let reader = Command::new("fio_jsonplus_clat2csv")
        .args(["plus.json", "clat.csv"])
        .current_dir(place.here.path())
        .output();
    let Ok(reader) = reader else { return plumb_testkit::skip("fio_jsonplus_clat2csv is not installed") };
    assert!(reader.status.success(), "{}", said(&reader));
    let csv: Vec<String> =
        entries(place.here.path()).into_iter().filter(|name| name.ends_with(".csv")).collect();
    assert_eq!(csv.len(), 2, "one for each job: {csv:?}");
    for name in csv {
        let text = std::fs::read_to_string(place.path(&name)).unwrap();
        assert!(text.lines().count() > 10, "{name}: {text}");
    }
}

#[test]
fn a_command_line_is_a_job_too() {
    let place = Place::new();
    let document = place.json(
        "fio --name=a --filename=f --size=4m --rw=write --bs=64k --end_fsync=1 --name=b --filename=g --size=4m \
         --rw=randread --number_ios=50",
        0,
    );
    let targets = document["targets"].as_array().unwrap();
    let of = |index: usize, part: &str| targets[index][part]["ios"].as_u64().unwrap();
    assert_eq!((of(0, "write"), of(0, "sync"), of(1, "read")), (64, 1, 50));
}

#[test]
fn a_job_that_reads_what_the_one_before_it_left_in_memory_reads_what_was_written() {
    let place = Place::new();
    let output = place.run(
        "fio --name=a --filename=f --size=4m --rw=write --verify=crc32c --name=b --stonewall --filename=f \
         --size=4m --rw=read --output-format=json",
    );
    assert_eq!(output.status.code(), Some(0), "all of it was written: {}", said(&output));
    serde_json::from_slice::<Value>(&output.stdout).expect("JSON is alone on stdout");
}

#[test]
fn what_is_only_asked_runs_nothing() {
    let place = with_job();
    for typed in ["fio job.fio --parse-only", "fio job.fio --showcmd"] {
        let output = place.run(typed);
        assert_eq!(output.status.code(), Some(0), "{typed}: {}", said(&output));
        assert_eq!(entries(place.here.path()), ["job.fio"], "{typed}");
    }
    let shown = place.run("fio job.fio --showcmd");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("--rw=randwrite"), "{}", said(&shown));
}

#[test]
fn a_steady_state_shows_its_rounds_and_whether_it_was_attained() {
    let place = Place::new();
    let output = place.run(
        "fio --name=x --filename=f --size=1m --rw=randread --time_based --runtime=2 --steadystate=iops:50% --ss_dur=1 \
         --output-format=json",
    );
    assert!(has_run(&output), "{}", said(&output));
    let document = common::document(&output);
    let steady = &document["jobs"][0]["steadystate"];
    assert_eq!((&steady["ss"], &steady["duration"]), (&Value::from("iops:50%"), &Value::from(1)));
    let rates = |name: &str| steady["data"][name].as_array().unwrap().len();
    assert_eq!((rates("iops"), rates("bw")), (5, 5), "{steady:#}");
    let number = |value: &Value| value.as_f64().unwrap();
    let ratio = number(&steady["data"]["bw_mean"]) / number(&steady["data"]["iops_mean"]);
    assert!((ratio - 4096.0).abs() < 41.0, "{steady:#}");
    assert!(["0", "1"].contains(&steady["attained"].to_string().as_str()), "{steady:#}");
    assert!(steady["criterion"].as_str().unwrap().ends_with('%'), "{steady:#}");
}

/// Jobs of every kind, run for a second: the section `[a]`, and the number of requests in flight.
const KINDS: [(&str, f64); 12] = [
    ("rw=randread\nioengine=psync\ndirect=1", 1.0),
    ("rw=randwrite\nioengine=libaio\niodepth=8\ndirect=1", 8.0),
    ("rw=randrw\nrwmixread=70\nioengine=io_uring\niodepth=16\ndirect=1\nlat_percentiles=1", 16.0),
    ("rw=write\nioengine=psync\nfsync=1", 1.0),
    ("rw=randwrite\nioengine=libaio\niodepth=4\nfdatasync=8", 4.0),
    ("rw=randwrite\nioengine=psync\nsync=dsync", 1.0),
    ("rw=randwrite\nioengine=psync\nrate_iops=100k\nfdatasync=1", 1.0),
    ("rw=randread\nioengine=libaio\niodepth=4\nrate_iops=300\nrate_process=poisson\ndirect=1", 4.0),
    ("rw=randread\nioengine=libaio\niodepth=4\nnumjobs=3\ngroup_reporting\ndirect=1", 12.0),
    (
        "rw=randread\nrate_iops=100\nnumjobs=2\ngroup_reporting\n[b]\nrw=randwrite\nrate_iops=900k\ngroup_reporting",
        3.0,
    ),
    ("rw=randread\nioengine=psync\nthinktime=2000", 1.0),
    ("rw=randread\nioengine=mmap\nramp_time=200ms", 1.0),
];

/// Asserts that the figures of a latency are plausible for real operations. Returns the number of operations,
/// and the sum of their times in seconds.
fn figures(latency: &Value, what: &str) -> (u64, f64) {
    let of = |name: &str| latency[name].as_f64().unwrap_or_else(|| panic!("{what}: no {name}: {latency}"));
    let (count, least, mean, most, deviation) = (of("N"), of("min"), of("mean"), of("max"), of("stddev"));
    assert!(count == 0.0 || (least > 0.0 && least <= mean && mean <= most), "{what}: {latency}");
    assert!(deviation >= 0.0 && deviation <= most - least, "{what}: {latency}");
    if let Some(percentiles) = latency["percentile"].as_object() {
        let mut ranks: Vec<(f64, f64)> = percentiles
            .iter()
            .map(|(percent, value)| (percent.parse().unwrap(), value.as_f64().unwrap()))
            .collect();
        ranks.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(ranks.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{what}: {latency}");
        // The width of a bin is one unit of its last digit.
        assert!(
            ranks.iter().all(|(_, value)| (least * 0.99..=most * 1.01).contains(value)),
            "{what}: {latency}"
        );
    }
    if let Some(bins) = latency["bins"].as_object() {
        assert_eq!(bins.values().map(|bin| bin.as_u64().unwrap()).sum::<u64>() as f64, count, "{what}");
    }
    (count as u64, count * mean / 1e9)
}

/// Latencies of all kinds of jobs are those of operations: as many as were completed, with a sum that does
/// not exceed the time of the threads (Little's law), unlike a backlog behind a schedule.
#[test]
fn latencies_are_of_what_was_done_and_fit_into_the_time_that_it_took() {
    for (kind, in_flight) in KINDS {
        let place = Place::new();
        let text = format!("[global]\nbs=4k\nsize=4m\nruntime=1\ntime_based\n[a]\n{kind}\n");
        std::fs::write(place.path("job.fio"), text).unwrap();
        let output = place.run("fio job.fio --output-format=json+");
        assert!(has_run(&output), "{kind}: {}", said(&output));
        let (mut spent, mut window, mut done) = (0.0, 0.0_f64, 0);
        for job in common::document(&output)["jobs"].as_array().unwrap() {
            for name in ["read", "write", "trim"] {
                let (direction, what) = (&job[name], format!("{kind}: {name}"));
                let ios = direction["total_ios"].as_u64().unwrap();
                let [slat, clat, lat] = ["slat_ns", "clat_ns", "lat_ns"]
                    .map(|key| figures(&direction[key], &format!("{what} {key}")));
                assert_eq!((clat.0, lat.0), (ios, ios), "{what}");
                assert!((lat.1 - slat.1 - clat.1).abs() <= lat.1 * 0.01, "{what}: {slat:?} {clat:?} {lat:?}");
                for key in ["min", "mean", "max"] {
                    let of = |part: &str| direction[part][key].as_f64().unwrap();
                    assert!(of("clat_ns") <= of("lat_ns"), "{what}: {key}");
                }
                let seconds = direction["runtime"].as_f64().unwrap() / 1e3;
                let iops = direction["iops"].as_f64().unwrap();
                assert!((iops * seconds - ios as f64).abs() <= ios as f64 * 0.01, "{what}: {direction}");
                assert!(ios == 0 || seconds >= 0.9, "{what}: {seconds} s");
                (spent, window, done) = (spent + lat.1, window.max(seconds), done + ios);
            }
            let syncs = figures(&job["sync"]["lat_ns"], &format!("{kind}: sync"));
            assert_eq!(syncs.0, job["sync"]["total_ios"].as_u64().unwrap(), "{kind}");
            assert_eq!(syncs.0 > 0, kind.contains("sync=") && !kind.contains("dsync"), "{kind}");
            spent += syncs.1;
        }
        assert!(done > 0, "{kind}");
        assert!(spent <= window * in_flight * 1.05, "{kind}: {spent} s of latencies in {window} s");
    }
}

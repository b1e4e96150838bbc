//! `plumb fio` as people run it: job files, its outputs, and its own reader.

use std::process::Command;

use crate::common;
use crate::common::{entries, has_run, said};
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
    let output = place.run("fio job.fio --output-format=json");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let document = common::document(&output);
    let jobs = document["jobs"].as_array().unwrap();
    let counts = |job: &Value| ["write", "read", "sync"].map(|part| job[part]["total_ios"].as_u64().unwrap());
    assert_eq!(jobs.iter().map(counts).collect::<Vec<_>>(), [[1024, 0, 128], [0, 1024, 0]]);
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
    let output = place.command("fio --output-format=json -").stdin(job).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
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
    assert_eq!(document["jobs"].as_array().unwrap().len(), 2, "what is no file is written to, not replaced");
    let nowhere = place.run("fio job.fio --output=no/such/o.json");
    assert_eq!(nowhere.status.code(), Some(2), "{}", said(&nowhere));
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
    let output = place.run("fio job.fio --output-format=json+ --output=plus.json");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
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

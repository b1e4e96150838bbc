//! Import of results of the installed fio, and of results in the form of other versions. Guards against
//! figures that are added up, in the wrong unit or from the wrong result, and against failures reported as a
//! clean run. The expected values are fio's own.

use std::path::Path;
use std::process::Command;

use plumb_dialect::Error;
use plumb_dialect::imported::read;
use plumb_report::quantity::duration;
use plumb_report::verdict::conclude;
use plumb_report::{Headline, RunDocument, RunRecording, Style, Verbosity};
use plumb_testkit::program::fio_is_here;
use serde_json::{Value, json};

/// Runs fio in `directory` and returns its output, whatever its exit code.
fn fio(directory: &Path, arguments: &str) -> String {
    let output =
        Command::new("fio").args(arguments.split_whitespace()).current_dir(directory).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn one(text: &str) -> RunDocument {
    read(text, "fio.json", None).unwrap()
}

/// Parses all JSON documents of `text`, independently of the import.
fn documents(text: &str) -> Vec<Value> {
    let text = &text[text.find('{').unwrap()..];
    serde_json::Deserializer::from_str(text).into_iter().map(Result::unwrap).collect()
}

const LOAD: &str = "--name=j --filename=t.dat --size=1m --bs=4k --ioengine=psync --output-format=json";

#[test]
fn of_a_run_with_intermediate_results_the_last_counts() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let typed = "--rw=randwrite --time_based --runtime=2 --rate_iops=100 --status-interval=500ms";
    let text = fio(here.path(), &format!("{LOAD} {typed}"));
    let all = documents(&text);
    assert!(all.len() > 2, "{text}");
    let last = &all[all.len() - 1]["jobs"][0]["write"];
    let document = one(&text);
    assert_eq!(Some(document.total.write.ios), last["total_ios"].as_u64());
    assert_eq!(Some(document.duration), last["runtime"].as_f64().map(|milliseconds| milliseconds / 1e3));
    assert!(document.complete && !document.failed, "{:?}", document.incomplete_because);
    // Truncated within a result: the previous one is used, and is incomplete.
    let cut = &text[..text.len() - 1000];
    let before = &all[all.len() - 2]["jobs"][0]["write"];
    let document = one(cut);
    assert_eq!(Some(document.total.write.ios), before["total_ios"].as_u64());
    assert!(!document.complete && document.incomplete_because.is_some());
}

#[test]
fn results_of_several_runs_are_listed_and_chosen() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let runs = ["--rw=write", "--rw=write", "--rw=randread --time_based --runtime=1"];
    let texts = runs.map(|typed| fio(here.path(), &format!("{LOAD} {typed}")));
    let file = format!("note: says fio first\n{}\n{}{}", texts[0], texts[1], texts[2]);
    let list = read(&file, "fio.json", None).unwrap_err().to_string();
    assert!(list.contains("3 results") && list.contains("--result N") && list.contains("\n  3: "), "{list}");
    for (index, text) in texts.iter().enumerate() {
        let chosen = read(&file, "fio.json", Some(index + 1)).unwrap();
        let alone = one(text);
        assert_eq!((&chosen.total, chosen.duration), (&alone.total, alone.duration));
        assert!(chosen.imported_from.unwrap().starts_with(&format!("fio.json#{}", index + 1)));
    }
    for number in [0, 4] {
        let problem = read(&file, "fio.json", Some(number)).unwrap_err().to_string();
        assert!(problem.contains(&format!("no result {number}")), "{problem}");
    }
    // The second job waits for the first: one result with two spans.
    let text = fio(
        here.path(),
        &format!("{LOAD} --rw=write --name=k --stonewall --filename=u.dat --size=1m --bs=4k --rw=read"),
    );
    assert_eq!(one(&text).spans.len(), 2);
}

/// Returns a job with `members` and those that fio prints for every job.
fn job(members: &Value) -> Value {
    let mut job =
        json!({"jobname": "j", "groupid": 0, "error": 0, "job options": {"rw": "randwrite", "bs": "4k"}});
    job.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    job
}

fn result(version: &str, jobs: &[Value]) -> String {
    json!({"fio version": version, "timestamp": 1_795_854_190, "jobs": jobs}).to_string()
}

/// Syncs that fio does not count are recognised by the job's options and by sync latencies.
#[test]
fn writes_that_fio_made_durable_are_not_called_acknowledged_alone() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let cases = [
        ("--fdatasync=16", "15 syncs"),
        ("--fsync=16", "15 syncs"),
        ("--sync=dsync", "256 writes with O_DSYNC or FUA"),
        ("--sync=1", "256 writes with O_DSYNC or FUA"),
        ("--end_fsync=1", "Syncs were asked for; the result does not say how many were made"),
        (
            "--fsync=1 --unified_rw_reporting=1",
            "Syncs were asked for; the result does not say how many were made",
        ),
    ];
    for (option, said) in cases {
        let mut document = one(&fio(here.path(), &format!("{LOAD} --rw=randwrite {option}")));
        conclude(&mut document, Vec::new());
        let meaning = Headline::new(&document).meaning;
        assert!(meaning.contains(said), "{option}: {meaning}");
        assert!(document.verdicts.iter().all(|finding| finding.id != "page-cache"), "{option}");
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(value["total"]["sync"].is_null(), document.total.sync.is_uncounted, "{option}");
        let recording = RunRecording::without_distributions(document);
        let metrics = plumb_report::export::prometheus::prometheus(&recording);
        assert_eq!(metrics.contains("plumb_load_flushes{"), !value["total"]["sync"].is_null(), "{option}");
    }
}

/// The latency of a write with its sync is unknown, as fio times them separately.
#[test]
fn the_time_of_a_write_without_its_sync_is_not_that_of_a_durable_write() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let text = fio(here.path(), &format!("{LOAD} --rw=randwrite --fsync=1"));
    let job = &documents(&text)[0]["jobs"][0];
    let p99 = |times: &Value| duration(times["percentile"]["99.000000"].as_f64().unwrap() / 1e9);
    let (write, sync) = (p99(&job["write"]["clat_ns"]), p99(&job["sync"]["lat_ns"]));
    let style = Style { width: 400, verbosity: Verbosity::Normal, ..Style::PLAIN };
    let shown = plumb_report::terminal::run(&one(&text), style);
    for said in [
        "synced writes per second".to_owned(),
        format!("99 of 100 within {write}; the syncs alone: "),
        format!("99 of 100 within {sync}."),
        format!("Without their syncs, 99 of 100 take at most: {write} "),
        format!("99 of 100 syncs within {sync}"),
    ] {
        assert!(shown.contains(&said), "{said} in {shown}");
    }
}

/// The engine is named in the job's or the global options. A job on a real file in the same run keeps its
/// data.
#[test]
fn a_null_device_keeps_nothing() {
    let write = json!({"total_ios": 100, "io_bytes": 409_600, "io_kbytes": 400, "runtime": 1000});
    let of = |engine: &str| json!({"write": write, "job options": {"rw": "write", "ioengine": engine}});
    let document = one(&result("fio-3.33", &[job(&of("null"))]));
    assert_eq!(document.level, "danger");
    assert!(document.headline.starts_with("ioengine=null keeps nothing"), "{}", document.headline);
    assert!(document.verdicts.iter().any(|found| found.id == "keeps-nothing"), "{:?}", document.verdicts);
    let document = one(&result("fio-3.33", &[job(&of("null")), job(&of("psync"))]));
    let paths = document.targets.iter().map(|target| document.path_of(target).is_some());
    assert_eq!(paths.collect::<Vec<_>>(), [true, false]);
    let of_all = json!({"fio version": "fio-3.33", "timestamp": 1, "jobs": [job(&json!({"write": write}))],
        "global options": {"ioengine": "null"}});
    assert_eq!(one(&of_all.to_string()).level, "danger");
}

#[test]
fn counts_of_the_devices_that_are_not_read_are_not_said_to_be_missing() {
    let write = json!({"total_ios": 100, "io_bytes": 409_600, "io_kbytes": 400, "runtime": 1000});
    let job = |group: u64| job(&json!({"write": write, "groupid": group}));
    let disk = json!({"name": "sda", "read_ios": 0, "write_ios": 100, "write_merges": 0, "write_ticks": 9});
    let mut newer = disk.clone();
    newer
        .as_object_mut()
        .unwrap()
        .extend([("read_sectors".to_owned(), json!(0)), ("write_sectors".to_owned(), json!(800))]);
    let with = |jobs: &[Value], disks: &[&Value]| {
        let text =
            json!({"fio version": "fio-3.33", "timestamp": 1, "jobs": jobs, "disk_util": disks}).to_string();
        one(&text).total
    };
    let cases = [
        (with(&[job(0)], &[&disk]), Some("(disk_util) are not read: they are without bytes")),
        (
            with(&[job(0), job(1)], &[&newer]),
            Some("(disk_util) are not read: those of all phases are together"),
        ),
        (with(&[job(0)], &[]), Some("fio 3.33 does not record what the devices did")),
        (with(&[job(0)], &[&newer]), None),
    ];
    for (total, why) in cases {
        let because = total.storage_unknown_because.as_deref();
        assert_eq!(because.is_some(), why.is_some(), "{because:?}");
        assert!(because.is_none_or(|because| because.contains(why.unwrap())), "{because:?}");
        assert_eq!(total.storage.map(|storage| storage.write_bytes), why.is_none().then_some(409_600));
    }
}

#[test]
fn failures_of_fio_are_found() {
    let limit = "ulimit -f 64; trap '' XFSZ; exec fio \"$@\"";
    if !fio_is_here() {
        return;
    }
    // With a limit of 64 KiB for files, fio's write fails with EFBIG.
    let here = tempfile::tempdir().unwrap();
    let arguments = format!("{LOAD} --rw=write --fallocate=none");
    let output = Command::new("bash")
        .args(["-c", limit, "fio"])
        .args(arguments.split(' '))
        .current_dir(here.path())
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let error = documents(&text)[0]["jobs"][0]["error"].as_i64().unwrap();
    assert!(error > 0, "{text}");
    let document = one(&text);
    assert!(document.failed && !document.complete);
    assert!(
        document.incomplete_because.as_ref().unwrap().contains(&format!("os error {error}")),
        "{document:?}"
    );
    assert_eq!(document.level, "danger");
    assert!(document.verdicts.iter().any(|found| found.id == "load-failed"), "{:?}", document.verdicts);
    // Errors that did not end the job (continue_on_error).
    let write = json!({"total_ios": 100, "io_bytes": 409_600, "io_kbytes": 400, "runtime": 1000});
    let text = result("fio-3.33", &[job(&json!({"total_err": 7, "first_error": 5, "write": write}))]);
    let document = one(&text);
    assert_eq!(
        (document.failed, document.total.write.errors, document.total.application.errors),
        (false, 7, 7)
    );
    assert!(document.verdicts.iter().any(|found| found.id == "operations-failed"), "{:?}", document.verdicts);
    // Interrupted, as reported by fio 3.33 before its JSON.
    let good = result("fio-3.33", &[job(&json!({"write": write}))]);
    assert!(one(&good).complete);
    let document = one(&format!("\nfio: terminating on signal 2\n{good}"));
    assert!(!document.complete && document.incomplete_because.unwrap().contains("signal 2"));
    let options = json!({"rw": "randwrite", "time_based": "1", "runtime": "30"});
    let document = one(&result("fio-3.33", &[job(&json!({"write": write, "job options": options}))]));
    assert!(document.incomplete_because.unwrap().contains("1 s of the 30 s"));
}

#[test]
fn every_version_has_its_units() {
    // Figures as printed by fio 2.15: 64,000 KiB/s for 10 s, times in microseconds.
    let clat = json!({"min": 500, "max": 9000, "mean": 995.0, "stddev": 200.0,
        "percentile": {"1.000000": 510, "50.000000": 980, "99.000000": 2000, "99.900000": 4000}});
    let lat = json!({"min": 504, "max": 9010, "mean": 999.0, "stddev": 201.0});
    let old = json!({"io_bytes": 640_000, "bw": 64_000, "iops": 1000.0, "runtime": 10_000, "total_ios": 10_000, "clat": clat, "lat": lat});
    let document = one(&result("fio-2.15", &[job(&json!({"write": old}))]));
    assert_eq!(document.total.write.bytes_per_second, 64_000.0 * 1024.0);
    let latency = document.total.write.latency.unwrap();
    assert_eq!(
        (latency.mean, latency.p50, latency.p99, latency.p999),
        (999e-6, Some(980e-6), Some(2e-3), Some(4e-3))
    );
    // Versions from 2.21 to 3.0 count bytes without printing KiB; the rate determines the unit.
    let newer = json!({"io_bytes": 655_360_000, "bw": 64_000, "runtime": 10_000, "total_ios": 10_000});
    let document = one(&result("fio-2.99", &[job(&json!({"write": newer}))]));
    assert_eq!(document.total.write.bytes_per_second, 64_000.0 * 1024.0);
}

#[test]
fn figures_of_both_directions_together_and_of_clients_are_read() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let mixed = fio(here.path(), &format!("{LOAD} --rw=randrw --unified_rw_reporting=1"));
    let side = &documents(&mixed)[0]["jobs"][0]["mixed"];
    let document = one(&mixed);
    let of_all = &document.total.application;
    assert_eq!(Some(of_all.operations), side["total_ios"].as_u64());
    assert_eq!(Some(of_all.bytes), side["io_bytes"].as_u64());
    assert_eq!((document.total.read.ios, document.total.write.ios), (0, 0), "how many of each is not known");
    let p99 = side["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap() / 1e9;
    let longest = side["clat_ns"]["max"].as_f64().unwrap() / 1e9;
    assert_eq!(of_all.latency.unwrap().p99, Some(p99.min(longest)));
    let alone = fio(here.path(), &format!("{LOAD} --rw=randwrite --unified_rw_reporting=1"));
    assert_eq!(one(&alone).total.write.ios, 256);
    let both = fio(here.path(), &format!("{LOAD} --rw=randrw --unified_rw_reporting=both"));
    let document = one(&both);
    assert_eq!(document.total.read.ios + document.total.write.ios, 256);
    assert_eq!(document.total.application.operations, 256);
    // Two hosts, and their sum, which is not a host.
    let write = json!({"total_ios": 100, "io_bytes": 409_600, "io_kbytes": 400, "runtime": 1000});
    let mut hosts = ["a", "b", "a"].map(|host| job(&json!({"write": write, "hostname": host})));
    hosts[2]["jobname"] = json!("All clients");
    let text = json!({"fio version": "fio-3.33", "timestamp": 1, "client_stats": hosts}).to_string();
    let document = one(&text);
    assert_eq!((document.total.write.ios, document.targets.len()), (200, 2));
    assert_eq!(document.targets[0].name, "a: j");
}

#[test]
fn a_percentile_beyond_the_end_of_the_histogram_is_not_known() {
    // Printed by fio 3.33 for a write that a frozen file system delayed by 19 s.
    let clat = json!({"min": 1000, "max": 19_000_000_000_u64, "mean": 5e7, "stddev": 9e8, "N": 460, "percentile": {
        "50.000000": 20_000, "99.000000": 30_000, "99.900000": 17_112_760_320_u64, "99.950000": 17_112_760_320_u64}});
    let write = json!({"total_ios": 460, "io_bytes": 1_884_160, "io_kbytes": 1840, "runtime": 23_000, "clat_ns": clat});
    let document = one(&result("fio-3.33", &[job(&json!({"write": write}))]));
    let latency = document.total.write.latency.unwrap();
    assert_eq!((latency.p99, latency.p999, latency.max), (Some(30e-6), None, 19.0));
    let because = document.total.percentiles_unknown_because.unwrap();
    assert!(because.contains("p99.9: at least 17.1 s") && because.contains("at most 19 s"), "{because}");
    assert!(document.notes.iter().any(|note| note.contains("at least 17.1 s")), "{:?}", document.notes);
}

/// Output of fio 3.33 with `--rw=randread --ioengine=libaio` through the page cache: the submission waits for
/// the disk.
#[test]
fn percentiles_of_the_completion_alone_are_not_those_of_the_operation() {
    let clat = json!({"min": 1000, "max": 87_500, "mean": 1900.0, "stddev": 2100.0, "N": 4096, "percentile": {
        "50.000000": 2024, "99.000000": 11_584, "99.900000": 87_552}});
    let lat = json!({"min": 39_398, "max": 50_400_000, "mean": 235_000.0, "stddev": 503_616.0, "N": 4096});
    let slat = |mean: f64| json!({"min": 0, "max": 50_300_000, "mean": mean, "stddev": 9.0, "N": 4096});
    let of = |lat: &Value, slat: &Value| {
        let read = json!({"total_ios": 4096, "io_bytes": 16_777_216, "runtime": 965, "clat_ns": clat, "lat_ns": lat, "slat_ns": slat});
        one(&result("fio-3.33", &[job(&json!({"read": read, "job options": {"rw": "randread"}}))]))
    };
    let document = of(&lat, &slat(233_000.0));
    let latency = document.total.read.latency.unwrap();
    assert_eq!((latency.min, latency.mean, latency.std), (39_398e-9, 235e-6, 503_616e-9));
    assert_eq!((latency.max, latency.p50, latency.p999), (50.4e-3, None, None));
    assert!(document.verdicts.iter().all(|found| found.id != "page-cache"), "{:?}", document.verdicts);
    let because = document.total.percentiles_unknown_because.unwrap();
    assert!(because.contains("the submission takes 233 µs of 235 µs"), "{because}");
    // If the submission does not wait, percentiles of the completion apply, limited by the longest operation.
    let lat = json!({"min": 1010, "max": 87_500, "mean": 1910.0, "stddev": 2100.0, "N": 4096});
    let latency = of(&lat, &slat(10.0)).total.read.latency.unwrap();
    assert_eq!((latency.mean, latency.p50, latency.p999), (1910e-9, Some(2024e-9), Some(87.5e-6)));
}

/// With `disable_slat` and `disable_lat` the same run as above has no other time than the completion's.
#[test]
fn times_that_fio_was_told_not_to_take_are_not_replaced_by_others() {
    let clat = json!({"min": 1000, "max": 87_500, "mean": 1900.0, "stddev": 2100.0, "N": 4096, "percentile": {
        "50.000000": 2024, "99.000000": 11_584, "99.900000": 87_552}});
    let none = json!({"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0});
    let long = json!({"min": 39_398, "max": 50_400_000, "mean": 235_000.0, "stddev": 503_616.0, "N": 4096});
    let of = |lat: &Value, slat: &Value, option: &str| {
        let read = json!({"total_ios": 4096, "io_bytes": 16_777_216, "runtime": 965, "clat_ns": clat, "lat_ns": lat, "slat_ns": slat});
        let options = json!({"rw": "randread", (option): "1"});
        one(&result("fio-3.33", &[job(&json!({"read": read, "job options": options}))]))
    };
    let document = of(&long, &none, "disable_slat");
    let latency = document.total.read.latency.unwrap();
    assert_eq!((latency.mean, latency.p50, latency.p999), (235e-6, None, None));
    let because = document.total.percentiles_unknown_because.unwrap();
    assert!(because.contains("the submission takes 233 µs of 235 µs"), "{because}");
    // A synchronous engine has no submission to time.
    assert_eq!(of(&long, &none, "direct").total.read.latency.unwrap().p50, Some(2024e-9));
    let alone = |document: &RunDocument| {
        document.notes.iter().find(|note| note.contains("those of the completion (clat) alone")).cloned()
    };
    let document = of(&none, &long, "disable_lat");
    assert_eq!(document.total.read.latency.unwrap().p50, Some(2024e-9));
    let note = alone(&document).unwrap();
    assert!(note.starts_with("Times of reads") && note.contains("took 235 µs more"), "{note}");
    assert!(alone(&of(&none, &none, "disable_lat")).is_some());
    let short = json!({"min": 1, "max": 20, "mean": 10.0, "stddev": 1.0, "N": 4096});
    assert_eq!(alone(&of(&none, &short, "disable_lat")), None);
    assert_eq!(alone(&of(&long, &short, "direct")), None);
}

#[test]
fn a_percentile_that_is_not_listed_is_not_taken_from_another() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let text = fio(here.path(), &format!("{LOAD} --rw=randwrite --percentile_list=50:99.9"));
    let listed = &documents(&text)[0]["jobs"][0]["write"]["clat_ns"];
    let latency = one(&text).total.write.latency.unwrap();
    assert_eq!((latency.p99, latency.p25), (None, None));
    let longest = listed["percentile"]["99.900000"].as_f64().unwrap().min(listed["max"].as_f64().unwrap());
    assert_eq!(latency.p999, Some(longest / 1e9));
    let none = fio(here.path(), &format!("{LOAD} --rw=randwrite --clat_percentiles=0"));
    let latency = one(&none).total.write.latency.unwrap();
    assert!(latency.mean > 0.0 && latency.p50.is_none());
}

#[test]
fn bins_of_several_jobs_give_the_percentiles_of_all() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let list = "--rw=randrw --numjobs=3 --percentile_list=25:50:75:99:99.9";
    let text = fio(here.path(), &format!("{} {list}", LOAD.replace("json", "json+")));
    let jobs = documents(&text)[0]["jobs"].as_array().unwrap().clone();
    let document = one(&text);
    for (job, target) in jobs.iter().zip(&document.targets) {
        for (side, of) in [("read", &target.sides.read), ("write", &target.sides.write)] {
            let (listed, latency) = (&job[side]["clat_ns"], of.latency.unwrap());
            let own = [("25.000000", latency.p25), ("50.000000", latency.p50), ("99.900000", latency.p999)];
            for (name, ours) in own {
                let listed =
                    listed["percentile"][name].as_f64().unwrap().min(listed["max"].as_f64().unwrap());
                assert_eq!(ours, Some(listed / 1e9), "{side} {name}");
            }
        }
    }
    // Computed by definition, over all operations of all jobs.
    let mut all: Vec<u64> = Vec::new();
    for bins in jobs
        .iter()
        .flat_map(|job| ["read", "write"].map(|side| job[side]["clat_ns"]["bins"].as_object().unwrap()))
    {
        for (length, count) in bins {
            all.extend(vec![length.parse::<u64>().unwrap(); count.as_u64().unwrap() as usize]);
        }
    }
    all.sort_unstable();
    let latency = document.total.application.latency.unwrap();
    let rank = |percent: f64| {
        let length = all[(percent / 100.0 * all.len() as f64).ceil() as usize - 1] as f64 / 1e9;
        length.min(latency.max)
    };
    assert_eq!(latency.count, 3 * 256);
    assert_eq!(
        (latency.p50, latency.p99, latency.p999),
        (Some(rank(50.0)), Some(rank(99.0)), Some(rank(99.9)))
    );
    // Listed percentiles cannot be combined; means and extremes can.
    let text = fio(here.path(), &format!("{LOAD} {list}"));
    let document = one(&text);
    let latency = document.total.application.latency.unwrap();
    assert_eq!(latency.p50, None);
    assert!(document.total.percentiles_unknown_because.unwrap().contains("cannot be added up"));
    let longest = document
        .targets
        .iter()
        .map(|target| target.sides.application.latency.unwrap().max)
        .fold(0.0, f64::max);
    assert_eq!(latency.max, longest);
}

#[test]
fn reading_back_is_a_phase_of_its_own() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let text = fio(here.path(), &format!("{LOAD} --size=16m --rw=write --verify=md5"));
    let job = &documents(&text)[0]["jobs"][0];
    let document = one(&text);
    let [work, verification] = &document.spans[..] else { panic!("{:?}", document.spans) };
    assert_eq!((work.total.read.ios, work.total.write.ios), (0, 4096));
    assert_eq!((verification.total.read.ios, verification.total.write.ios), (4096, 0));
    let rate = job["write"]["io_bytes"].as_f64().unwrap() / (job["write"]["runtime"].as_f64().unwrap() / 1e3);
    assert!((work.total.write.bytes_per_second / rate - 1.0).abs() < 1e-9);
    // Verifying reads between writes cannot be separated from the writes in time.
    let text = fio(here.path(), &format!("{LOAD} --rw=write --verify=md5 --verify_backlog=16"));
    let document = one(&text);
    assert_eq!((document.spans.len(), document.total.read.ios), (1, 256));
}

#[test]
fn a_job_of_fio_that_only_computes_is_left_out() {
    if !fio_is_here() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let busy = "--output-format=json --name=busy --ioengine=cpuio --cpuload=5 --runtime=1 --time_based";
    let load = "--name=j --filename=t.dat --size=1m --bs=4k --ioengine=psync --rw=write";
    let document = one(&fio(here.path(), &format!("{busy} {load}")));
    assert_eq!((document.total.application.operations, document.total.write.ios), (256, 256));
    let said = "Left out: busy, which did no I/O (ioengine=cpuio).";
    assert!(document.notes.iter().any(|note| note == said), "{:?}", document.notes);
    let error = read(&fio(here.path(), busy), "fio.json", None).unwrap_err().to_string();
    assert!(error.contains("nothing was measured in it: cpuio does no I/O"), "{error}");
}

#[test]
fn impossible_values_are_refused_with_their_place() {
    let write = |name: &str, value: Value| {
        let mut write = json!({"total_ios": 100, "io_bytes": 409_600, "io_kbytes": 400, "runtime": 1000,
            "clat_ns": {"min": 10, "max": 30, "mean": 20.0, "N": 100, "percentile": {"50.000000": 20}}});
        let place = name.split('.').fold(&mut write, |at, name| &mut at[name]);
        *place = value;
        read(&result("fio-3.33", &[job(&json!({"write": write, "elapsed": 2}))]), "fio.json", None)
    };
    let cases: [(&str, Value, &str); 16] = [
        ("total_ios", json!(-5), "fio.json: jobs[0].write.total_ios: -5: expected a whole number from 0"),
        ("total_ios", json!(u64::MAX), "jobs[0].write.total_ios: 18446744073709551615: expected"),
        ("total_ios", json!(1.5), "jobs[0].write.total_ios: 1.5: expected"),
        ("io_bytes", json!("many"), "jobs[0].write.io_bytes: \"many\": expected"),
        (
            "total_ios",
            Value::Null,
            "jobs[0].write.total_ios: null: expected the operations that moved 409600",
        ),
        ("io_bytes", json!(0), "jobs[0].write.io_bytes: 0: expected the bytes of 100 operations"),
        ("runtime", json!(-1), "jobs[0].write.runtime: -1: expected a number from 0 on"),
        ("runtime", json!(1e40), "jobs[0].write.runtime: 1e+40: expected a time from 0 to 100 years"),
        ("total_ios", json!(4_000_000_000_000_u64), "fio.json: 4,000,000,000,000 operations in 1 s are more"),
        ("clat_ns.max", json!(1e40), "write.clat_ns.max: 1e+40: expected a time from 0 to 100 years"),
        (
            "clat_ns.max",
            json!(3_100_000_000_u64),
            "write.clat_ns.max: 3100000000: expected at most the 3 s that",
        ),
        ("clat_ns.max", json!(-30), "jobs[0].write.clat_ns.max: -30: expected"),
        ("clat_ns.mean", json!(4000), "jobs[0].write.clat_ns.mean: 4000: expected a mean"),
        (
            "clat_ns.percentile",
            json!({"150.0": 3}),
            "jobs[0].write.clat_ns.percentile.150.0: 3: expected a percentile",
        ),
        (
            "clat_ns.percentile",
            json!({"99.000000": 10, "50.000000": 20, "1.000000": 5}),
            "jobs[0].write.clat_ns.percentile.99.000000: 10: expected at least the percentile 50",
        ),
        ("clat_ns.percentile", json!({"50.0": -3}), "percentile.50.0: -3: expected a number from 0 on"),
    ];
    for (name, value, expected) in cases {
        let error: Error = write(name, value).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(write("runtime", json!(1000)).is_ok());
    // Counters of several devices would not even add up.
    let job = job(
        &json!({"write": {"total_ios": 1, "io_bytes": 4096, "io_kbytes": 4, "runtime": 1000}, "elapsed": 2}),
    );
    let disk = json!({"name": "sda", "read_sectors": 0, "write_sectors": 0, "write_ios": i64::MAX});
    let whole = json!({"fio version": "fio-3.36", "jobs": [job], "disk_util": [disk, disk, disk]});
    let error = read(&whole.to_string(), "fio.json", None).unwrap_err().to_string();
    let expected = "fio.json: disk_util[0].name: \"sda\": 9,223,372,036,854,775,80";
    assert!(error.starts_with(expected), "{error}");
    for time in ["-3", "1e40", "nan"] {
        let text = format!("\nactual test time:\t{time}s\nTotal IO\n");
        let error = read(&text, "diskspd.txt", None).unwrap_err().to_string();
        assert!(error.contains(&format!("diskspd.txt:1: '{time}': expected seconds")), "{error}");
    }
}

#[test]
fn impossible_figures_of_diskspd_are_refused_with_their_line() {
    let whole = "<Results><TimeSpan>\n<TestTimeSeconds>10.00</TestTimeSeconds>\n<Latency>\n\
        <AverageReadMilliseconds>5.000</AverageReadMilliseconds>\n\
        <Bucket><Percentile>0</Percentile><ReadMilliseconds>1.000</ReadMilliseconds></Bucket>\n\
        <Bucket><Percentile>100</Percentile><ReadMilliseconds>9.000</ReadMilliseconds></Bucket>\n</Latency>\n\
        <Thread><Target><Path>f</Path>\n<ReadCount>100</ReadCount>\n<ReadBytes>409600</ReadBytes>\n\
        </Target></Thread></TimeSpan>\n\
        <Profile><TimeSpans><TimeSpan><Duration>10</Duration>\n<Warmup>5</Warmup>\n</TimeSpan></TimeSpans></Profile></Results>";
    assert!(read(whole, "d.xml", None).is_ok(), "{:?}", read(whole, "d.xml", None));
    let time = "expected a time from 0 to 100 years";
    let cases = [
        (">10.00<", ">1e40<", format!("d.xml:2: <TestTimeSeconds>: '1e40': {time}")),
        (">10.00<", ">-1<", format!("d.xml:2: <TestTimeSeconds>: '-1': {time}")),
        (">10.00<", ">NaN<", format!("d.xml:2: <TestTimeSeconds>: 'NaN': {time}")),
        (">10.00<", ">1e-300<", "d.xml: 100 operations in".to_owned()),
        (">5.000<", ">inf<", format!("d.xml:4: <AverageReadMilliseconds>: 'inf': {time}")),
        (">9.000<", ">1e40<", format!("d.xml:6: <ReadMilliseconds>: '1e40': {time}")),
        (">9.000<", ">16001<", "the maximum is longer than the whole run".to_owned()),
        (">9.000<", ">2.000<", "the mean is not between the extremes".to_owned()),
        (">100</R", ">18446744073709551615</R", "d.xml:9: <ReadCount>: '18446744073709551615'".to_owned()),
        (">409600<", ">0<", "d.xml:8: <ReadBytes>: 0: expected the bytes of 100 operations".to_owned()),
        (">100</R", ">0</R", "d.xml:8: <ReadCount>: 0: expected the operations that moved 409600".to_owned()),
        (">100</R", ">90000000000000</R", "d.xml: 90,000,000,000,000 operations in 10 s".to_owned()),
        ("<Warmup>5<", "<Warmup>1e300<", format!("<Warmup>: '1e300': {time}")),
    ];
    for (there, instead, expected) in cases {
        let error = read(&whole.replacen(there, instead, 1), "d.xml", None).unwrap_err().to_string();
        assert!(error.contains(&expected), "{instead}: {error}");
    }
}

#[test]
fn impossible_figures_in_the_text_of_diskspd_are_refused_with_their_line() {
    let whole = "Results for timespan 1:\nactual test time:\t10.00s\nTotal IO\n\
        thread | bytes | I/Os | MiB/s | I/O per s | AvgLat | LatStdDev | file\n0 | 409600 | 100 | 1 | 1 | 5.0 | 1.0 | f\n\
        total: 409600 | 100 | 1 | 1 | 5.0 | 1.0\nRead IO\nthread | bytes | I/Os | MiB/s | I/O per s | AvgLat | LatStdDev | file\n\
        total: 409600 | 100 | 1 | 1 | 5.0 | 1.0\nWrite IO\nthread | bytes | I/Os | file\ntotal: 0 | 0\n\
        %-ile | Read (ms) | Write (ms) | Total (ms)\nmin | 1.0 | N/A | 1.0\n50th | 4.0 | N/A | 4.0\nmax | 9.0 | N/A | 9.0\n";
    let document = read(whole, "d.txt", None).unwrap();
    assert_eq!(document.total.read.latency.and_then(|latency| latency.p50), Some(0.004));
    let cases = [
        ("total: 409600 | 100", "total: 409600 | 18446744073709551615", "d.txt:6: '18446744073709551615'"),
        (
            "total: 409600 | 100",
            "total: 0 | 100",
            "d.txt:6: 0 in the table Total IO: expected the bytes of 100",
        ),
        ("max | 9.0", "max | 1e40", "d.txt:16: '1e40 ms': expected a time"),
        ("max | 9.0", "max | 2.0", "d.txt:13: the table of percentiles: the mean is not between"),
        ("50th | 4.0", "50th | 40", "d.txt:13: the table of percentiles: a percentile is longer"),
        ("| 5.0 |", "| inf |", "ms': expected a time"),
    ];
    for (there, instead, expected) in cases {
        let error = read(&whole.replacen(there, instead, 2), "d.txt", None).unwrap_err().to_string();
        assert!(error.contains(expected), "{instead}: {error}");
    }
}

#[test]
fn results_of_diskspd_in_one_file_are_told_apart() {
    let text = |operations: u64, seconds: f64| {
        format!(
            "Command Line: diskspd -d30 f\n\tduration: 30s\nResults for timespan 1:\nactual test time:\t{seconds}s\n\nTotal IO\nthread | bytes | I/Os | file\n\
             0 | {0} | {operations} | f (1GiB)\ntotal: {0} | {operations}\n\nRead IO\nthread | bytes | I/Os | file\n0 | {0} | {operations} | f (1GiB)\n\
             total: {0} | {operations}\n\nWrite IO\nthread | bytes | I/Os | file\n0 | 0 | 0 | f (1GiB)\ntotal: 0 | 0\n",
            operations * 4096
        )
    };
    let both = format!("{}\n{}", text(100, 30.0), text(500, 12.0));
    assert!(read(&both, "d.txt", None).unwrap_err().to_string().contains("2 results"));
    let first = read(&both, "d.txt", Some(1)).unwrap();
    assert_eq!((first.total.read.ios, first.complete), (100, true));
    let second = read(&both, "d.txt", Some(2)).unwrap();
    assert_eq!(second.total.read.ios, 500);
    assert!(second.incomplete_because.unwrap().contains("12 s of the 30 s"));
    let xml = |operations: u64| {
        format!(
            "<Results><TimeSpan><TestTimeSeconds>10</TestTimeSeconds><Thread><Target><Path>f</Path><ReadCount>{operations}</ReadCount>\
             <ReadBytes>{}</ReadBytes></Target></Thread></TimeSpan></Results>\n",
            operations * 4096
        )
    };
    let both = format!("{}{}", xml(3), xml(4));
    assert_eq!(read(&both, "d.xml", Some(2)).unwrap().total.read.ios, 4);
    assert_eq!(read(&xml(3), "d.xml", None).unwrap().total.read.ios, 3);
}

/// Compares plumb's own result, exported as fio's JSON and imported, with the original document.
#[test]
fn a_result_that_was_exported_in_fio_s_json_comes_back_the_same() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/tests/samples/load/side-by-side.json");
    let mut own = RunDocument::from_json(&std::fs::read_to_string(sample).unwrap()).unwrap();
    // 8.54 ms are rounded to 9 ms.
    own.duration = 8.54e-3;
    own.targets.truncate(1);
    let sides = &mut own.targets[0].sides;
    (sides.application.seconds, sides.cpu) = (own.duration, None);
    for side in [&mut sides.read, &mut sides.write, &mut sides.trim] {
        side.ios /= 1000;
        side.bytes = side.ios * 4096;
        side.iops = side.ios as f64 / own.duration;
        side.bytes_per_second = side.bytes as f64 / own.duration;
    }
    let moved = sides.read.iops + sides.write.iops + sides.trim.iops;
    let recording = RunRecording::without_distributions(own);
    let text = plumb_report::export::fio::fio(&recording).unwrap();
    let own = &recording.document;
    let document = one(&text);
    assert_eq!(document.environment.started_at, own.environment.started_at);
    assert!((document.total.application.iops / moved - 1.0).abs() < 1e-9, "{moved}: {:?}", document.total);
    let counts = |document: &RunDocument| {
        let devices = document.total.storage.clone().unwrap().devices.into_iter();
        devices.map(|of| (of.name, of.reads, of.read_bytes, of.writes, of.write_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(counts(&document), counts(own));
    // Seconds since 1970 as by date(1): 2026-03-14T09:26:53Z.
    assert_eq!(documents(&text)[0]["timestamp"], 1_773_480_413);
}

//! Tests of `plumb load`: the effect of each word, the file of words, seeds, and the document.

use crate::common::{document, entries, exited, plumb, said, valid_document};
use crate::load_support::{Place, stderr};
use serde_json::Value;

#[test]
fn the_document_is_all_that_stdout_has_and_the_recording_says_the_same() {
    let place = Place::new();
    let output = place.run("load --json f --size 4M --write 50 --count 400 --sync-every 10 --seed 3");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let document = valid_document("load", &output);
    assert_eq!((&document["schema"], &document["complete"]), (&"plumb/load/1".into(), &true.into()));
    let target = &document["targets"][0];
    assert_eq!(target["application"]["operations"], 400);
    let (reads, writes) = (target["read"]["ios"].as_u64().unwrap(), target["write"]["ios"].as_u64().unwrap());
    assert_eq!(reads + writes, 400);
    assert_eq!(target["sync"]["ios"].as_u64().unwrap(), writes / 10);
    let again = plumb().args(["report", "--json"]).arg(place.run_directory()).output().unwrap();
    assert_eq!(again.stdout, output.stdout, "the recording says something else");
    assert_eq!(entries(place.here.path()), ["f"], "the file and nothing else");
}

type Holds = fn(&Value) -> bool;

/// Words for a file of 4 MiB, with the expected values of target, job and span in the document.
const WORDS: &[(&str, Holds)] = &[
    ("--count 50", |d| d["targets"][0]["application"]["io_bytes_mean"] == 4096.0),
    ("--count 50 --block-size 16k", |d| d["targets"][0]["application"]["io_bytes_mean"] == 16384.0),
    ("--count 50", |d| d["targets"][0]["read"]["ios"] == 50 && d["targets"][0]["write"]["ios"] == 0),
    ("--count 50 --write 100", |d| d["targets"][0]["write"]["ios"] == 50),
    ("--count 50 --random", |d| described(d, "random")),
    ("--count 50 --sequential", |d| described(d, "sequential")),
    ("--count 50 --stride 64k", |d| described(d, "sequential") && described(d, "every 64 KiB")),
    ("--count 2000 --depth 8", |d| in_flight_max(d) > 1 && in_flight_max(d) <= 8),
    ("--count 50", |d| in_flight_max(d) == 1),
    ("--count 77 --threads 3", |d| {
        job(d)["threads"] == 3 && d["targets"][0]["application"]["operations"] == 77
    }),
    ("--count 50", |d| job(d)["caching"] == "direct"),
    ("--count 50 --direct", |d| job(d)["caching"] == "direct"),
    ("--count 50 --cached", |d| job(d)["caching"] == "cached"),
    ("--count 50 --write 100 --dsync", |d| job(d)["durable_write_every"] == 1 && syncs(d) == 0),
    ("--count 50 --write 100 --sync-every 5", |d| syncs(d) == 10 && flushed_by(d, "fdatasync")),
    ("--count 50 --write 100 --sync-every 5 --sync-kind fdatasync", |d| syncs(d) == 10),
    ("--count 50 --write 100 --sync-every 5 --sync-kind fsync", |d| syncs(d) == 10 && flushed_by(d, "fsync")),
    ("--count 50 --write 100 --cached --sync-every 5 --sync-kind range", |d| {
        syncs(d) == 10 && flushed_by(d, "range")
    }),
    ("--count 50 --write 100 --sync-every 5 --sync-kind dsync", |d| {
        syncs(d) == 0 && job(d)["durable_write_every"] == 5
    }),
    ("--count 55 --write 100 --sync-every 50 --sync-at-end", |d| syncs(d) == 2),
    ("--count 50 --rate 5000iops", |d| job(d)["scheduled"] == true),
    ("--count 50 --rate 100MiB", |d| job(d)["scheduled"] == true),
    ("--count 50", |d| job(d)["scheduled"] == false),
    ("--count 50", |d| d["targets"][0]["size"] == 4 << 20),
    ("--count 50 --offset 1M --length 64k", |d| d["targets"][0]["range_bytes"] == 64 << 10),
    ("--duration 150ms", |d| d["duration"].as_f64().unwrap() >= 0.15),
    ("--duration 100ms --warmup 150ms", |d| d["spans"][0]["warmup"].as_f64().unwrap() >= 0.15),
    ("--duration 100ms --cooldown 50ms", |d| d["spans"][0]["cooldown"].as_f64().unwrap() >= 0.05),
    ("--duration 100ms --warmup auto --cached --rate 100iops", |d| d["spans"][0]["settled"].is_boolean()),
    ("--count 50 --seed 9", |d| d["seed"] == 9),
    ("--count 50", |d| d["targets"][0]["verified"].is_null()),
    ("--count 200 --write 50 --verify", |d| d["targets"][0]["verified"].is_object()),
    ("--count 50 --engine synchronous", |d| d["targets"][0]["engine"] == "pread/pwrite"),
];

fn job(document: &Value) -> &Value {
    &document["spans"][0]["jobs"][0]
}

fn described(document: &Value, word: &str) -> bool {
    job(document)["description"].as_str().unwrap().contains(word)
}

fn flushed_by(document: &Value, call: &str) -> bool {
    job(document)["flush"].to_string().contains(call)
}

fn in_flight_max(document: &Value) -> u64 {
    document["spans"][0]["total"]["in_flight_max"].as_u64().unwrap()
}

fn syncs(document: &Value) -> u64 {
    document["targets"][0]["sync"]["ios"].as_u64().unwrap()
}

#[test]
fn each_word_does_what_it_says() {
    let place = Place::new();
    for (words, holds) in WORDS {
        let document = place.json(&format!("load f --size 4M {words}"), 0);
        assert!(holds(&document), "{words}: {document:#}");
    }
}

#[test]
fn a_rate_is_never_exceeded_and_what_did_not_start_is_counted() {
    let place = Place::new();
    let document = place.json("load f --size 4M --rate 200iops --duration 500ms --threads 2", 0);
    let total = &document["total"];
    let done = total["application"]["operations"].as_u64().unwrap();
    let unstarted = total["schedule"]["unstarted"].as_u64().unwrap();
    assert_eq!(done + unstarted, 100, "{total:#}");
    assert!(total["application"]["latency_from_intended_start"]["count"] == done, "{total:#}");
}

/// On a disk that cannot keep the rate, the first line of the report has the latency that `compare` uses.
#[test]
fn the_latency_of_a_rate_that_is_not_kept_is_the_same_everywhere() {
    let place = Place::new();
    let load = "load sim:sas-15k --random --rate 5000iops --duration 1s --json";
    let run = |name: &str, seed: u64| {
        let typed = format!("{load} --seed {seed} --out {name}");
        let output = plumb().args(typed.split(' ')).current_dir(place.here.path()).output().unwrap();
        document(&output)
    };
    let (a, _) = (run("a", 1), run("b", 2));
    let total = &a["total"]["application"];
    let p99 = |name: &str| total[name]["p99"].as_f64().unwrap();
    assert!(p99("latency_from_intended_start") > 2.0 * p99("latency"), "{total:#}");
    let shown = plumb().args(["report", "a"]).current_dir(place.here.path()).output().unwrap();
    let shown = said(&shown);
    assert!(shown.contains("since the intended start; the service alone:"), "{shown}");
    let mut compare = plumb();
    compare.args(["compare", "a", "--against", "b", "--figure", "p99", "--json", "--no-record"]);
    let compared = document(&compare.current_dir(place.here.path()).output().unwrap());
    let figure = compared["levels"][1]["figures"]["p99"].as_f64().unwrap();
    assert!((figure - p99("latency_from_intended_start")).abs() < 1e-9, "{compared:#}");
}

#[test]
fn a_file_of_words_does_what_the_words_do() {
    let place = Place::new();
    std::fs::write(
        place.path("words.toml"),
        "targets = ['f', 'g']\nsize = '4M'\nwrite = 40\ncount = 120\nthreads = 2\nseed = 11\nsync-every = 4\n",
    )
    .unwrap();
    let typed = "load f g --size 4M --write 40 --count 120 --threads 2 --seed 11 --sync-every 4";
    let shown = place.run(&format!("{typed} --show-workload"));
    let from_file = place.run("load words.toml --show-workload");
    assert_eq!(String::from_utf8_lossy(&from_file.stdout), String::from_utf8_lossy(&shown.stdout));
    let document = place.json("load words.toml", 0);
    let typed = place.json(typed, 0);
    for index in 0..2 {
        for key in ["/read/ios", "/write/ios", "/sync/ios", "/application/bytes"] {
            let of = |document: &Value| document["targets"][index].pointer(key).cloned();
            assert_eq!(of(&document), of(&typed), "{key} of target {index}");
        }
    }
}

#[test]
fn what_is_shown_reads_back_identically_and_nothing_is_run() {
    let place = Place::new();
    std::fs::write(place.path("job.fio"), JOB).unwrap();
    std::fs::write(place.path("param.txt"), "a 2 0x0 8\nb 1 0x1 4\n").unwrap();
    for typed in [
        "load f --write 30 --duration 1s --depth 4 --sequential",
        "load f g --stride 64k --threads 3 --rate 100MiB --warmup auto --write 10 --sync-every 3 --sync-kind range",
        "load f --block-size 4k/60,64k/40 --distribution zipf:1.1 --count 10 --bytes 1G --content reducible:40%/20%",
        "load f --cached --write 100 --sync-at-end --burst 8 --pause 10ms --verify --size 1G",
        "diskspd -b4k -r4k -rs30 -w30 -t2 -g100i -Zr -Sh -W1 -C2 f",
        "diskspd -F2 -O8 -r -rdpct90/10:0/10 -c1G f g",
        "diskspd -si -t4 -Sm -Nv -w100 -I1 -n f",
        "diskspd -T1M -t2 -i10 -j5 -B1M:8M -w50 -Z1M f",
        "sqlio -kW -s5 -b8 -frandom -o16 f",
        "sqlio -kR -Fparam.txt",
        "fio job.fio",
        "fio --name=x --filename=f --size=1g --rw=randrw --rwmixread=70 --bssplit=4k/60:64k/40 --fsync=8 --runtime=3",
    ] {
        let (command, rest) = typed.split_once(' ').unwrap();
        let shown = place.run(&format!("{command} --show-workload {rest}"));
        assert_eq!(shown.status.code(), Some(0), "{typed}: {}", said(&shown));
        assert!(!shown.stdout.is_empty(), "{typed}");
        std::fs::write(place.path("shown.toml"), &shown.stdout).unwrap();
        let again = place.run("load shown.toml --show-workload");
        assert_eq!(
            String::from_utf8_lossy(&again.stdout),
            String::from_utf8_lossy(&shown.stdout),
            "{typed}: {}",
            said(&again)
        );
    }
    let mut left = entries(place.here.path());
    left.sort();
    assert_eq!(left, ["job.fio", "param.txt", "shown.toml"], "nothing is run");
    assert!(!place.run_directory().exists());
}

const JOB: &str = "[global]\nsize=4m\nbs=4k\nfilename=f\n[w]\nrw=randwrite\nfdatasync=8\n[r]\nstonewall\nrw=randread\n\
                   numjobs=2\niodepth=16\nioengine=libaio\nrate_iops=100\nrate_process=poisson\n";

#[test]
fn a_seed_gives_the_same_bytes_at_the_same_places() {
    let place = Place::new();
    let written = |seed: u64| {
        std::fs::write(place.path("zeroes"), vec![0; 4 << 20]).unwrap();
        let words = "--overwrite --write 60 --count 300 --threads 2 --depth 4 --division parts";
        place.json(&format!("load zeroes {words} --seed {seed}"), 0);
        std::fs::read(place.path("zeroes")).unwrap()
    };
    let first = written(5);
    assert!(first.iter().any(|byte| *byte != 0), "something was written");
    assert!(first == written(5), "a seed gives one stream");
    assert!(first != written(6), "another seed gives another");
}

#[test]
fn a_stride_leaves_out_what_lies_between() {
    let place = Place::new();
    std::fs::write(place.path("zeroes"), vec![0; 1 << 20]).unwrap();
    place.json("load zeroes --overwrite --write 100 --stride 64k --count 16", 0);
    let bytes = std::fs::read(place.path("zeroes")).unwrap();
    let written: Vec<usize> = bytes
        .chunks(4096)
        .enumerate()
        .filter(|(_, block)| block.iter().any(|byte| *byte != 0))
        .map(|one| one.0)
        .collect();
    assert_eq!(written, (0..16).map(|place| place * 16).collect::<Vec<_>>());
}

#[test]
fn targets_are_counted_apart_and_together() {
    let place = Place::new();
    let document = place.json("load a b c --size 4M --count 90 --threads 3 --write 50 --sync-every 2", 0);
    let targets = document["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 3);
    let operations = |part: &Value| part["application"]["operations"].as_u64().unwrap();
    let sum: u64 = targets.iter().map(operations).sum();
    assert!(sum == operations(&document["total"]) && sum == 270, "{sum}");
    for name in ["a", "b", "c"] {
        assert_eq!(std::fs::metadata(place.path(name)).unwrap().len(), 4 << 20, "{name}");
    }
}

#[test]
fn verification_reads_back_all_that_was_written() {
    let place = Place::new();
    let document = place.json("load f --size 4M --write 70 --count 500 --verify --threads 2", 0);
    let verified = &document["targets"][0]["verified"];
    assert!(verified.is_object(), "{document:#}");
    assert!(verified["blocks"].as_u64().unwrap() > 0, "{verified:#}");
    for wrong in ["lost", "torn", "misdirected", "stale"] {
        assert_eq!(verified[wrong], 0, "{verified:#}");
    }
}

#[test]
fn the_terminal_report_names_application_and_storage() {
    let place = Place::new();
    let output = exited(place.run("load -v f --size 4M --write 100 --count 100 --sync-every 1"), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["application", "storage", "flushes", "report.html"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn targets_on_the_same_devices_say_so_once() {
    let shared = |document: &Value| -> Vec<String> {
        let notes = document["notes"].as_array().unwrap().iter().filter_map(Value::as_str);
        notes.filter(|note| note.contains("of all of them together")).map(str::to_owned).collect()
    };
    let place = Place::new();
    let document = place.json("load a --size 256k --count 4", 0);
    assert_eq!(shared(&document), Vec::<String>::new(), "one alone shares nothing");
    let devices = document["targets"][0]["storage"]["devices"].as_array();
    if devices.is_none_or(Vec::is_empty) {
        return plumb_testkit::skip("no device is counted beneath the temporary directory");
    }
    let place = Place::new();
    let notes = shared(&place.json("load a b c d --size 256k --count 4", 0));
    assert!(notes.len() == 1 && notes[0].contains(" and 1 more share "), "{notes:?}");
    let place = Place::new();
    let output = place.run("load -v a b --size 256k --count 4");
    let told = stderr(&output).matches("of all of them together").count();
    let text = String::from_utf8(output.stdout).unwrap();
    let said =
        text.split_whitespace().collect::<Vec<_>>().join(" ").matches("of all of them together").count();
    assert_eq!((said, told), (1, 1), "{text}");
}

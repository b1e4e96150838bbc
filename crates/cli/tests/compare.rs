//! Tests of `plumb compare` on simulated drives: known differences are found and explained, none is found
//! where there is none, a limit determines the exit code, and a recording can be shown again.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use crate::common::{document, exited, holds, plumb, said, valid_document};
use crate::load_support::{Place, start};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SCHEMA: &str = "compare";

/// Runs a comparison with these words, separated by bars, and returns the document and the exit code.
fn compared(place: &Place, typed: &str) -> (Value, Option<i32>) {
    let mut command = plumb();
    command.args(["compare", "--json", "--replace", "--out"]).arg(place.run_directory());
    command.args(typed.split('|').map(str::trim)).current_dir(place.here.path());
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{typed}: {}", said(&output));
    let document = valid_document(SCHEMA, &output);
    (document, output.status.code())
}

fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {document:#}"))
}

fn share(document: &Value, terms: &[&str]) -> f64 {
    let all = document["explanation"].as_array().unwrap();
    let named = all.iter().filter(|term| terms.contains(&term["term"].as_str().unwrap()));
    named.map(|term| term["share"].as_f64().unwrap()).sum()
}

#[test]
fn flushes_explain_what_a_write_cache_costs() {
    let place = Place::new();
    let typed = "--factor|policy=on,off|sim:he8-media-cache|--random|--write|100|--sync-every|1|--duration|400ms|--budget|12s";
    let (document, code) = compared(&place, typed);
    assert_eq!(code, Some(0));
    assert_eq!(document["outcome"], "different", "{document:#}");
    assert!(number(&document, "/ratio/median") > 1.5, "{document:#}");
    assert!(number(&document, "/ratio/low") <= number(&document, "/ratio/median"));
    assert!(share(&document, &["flushes-per-sync", "flush-cost", "sync-calls"]) > 0.8, "{document:#}");
    let shares: f64 = share(
        &document,
        &[
            "depth",
            "sync-count",
            "flushes-per-sync",
            "flush-cost",
            "sync-calls",
            "device-ios",
            "device-io-cost",
            "queueing",
            "processor",
            "remainder",
        ],
    );
    assert!((shares - 1.0).abs() < 1e-6, "the terms make {shares} of the difference");
    let shown = plumb().arg("report").arg(place.run_directory()).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("DIFFERENT"), "{}", said(&shown));
    let page = std::fs::read_to_string(place.run_directory().join("report.html")).unwrap();
    assert!(page.contains(">Blocks</h2>"), "the table of the blocks is not on the page");
    assert!(page.contains("<svg") && page.len() < 1 << 20, "{} bytes", page.len());
}

#[test]
fn a_level_against_itself_is_equivalent_and_keeps_a_limit() {
    let typed = "--factor|drive=plp-nvme-ssd,plp-nvme-ssd|--random|--write|100|--duration|50ms|--budget|5s|--fail-if|p99 ratio > 1.1";
    let (document, code) = compared(&Place::new(), typed);
    assert_eq!(document["outcome"], "equivalent", "{document:#}");
    assert_eq!((code, &document["limits"][0]["exceeded"]), (Some(0), &Value::from(false)));
    assert_eq!(document["design"]["ended_early"], true, "it is clear at the first look");
}

#[test]
fn a_level_whose_writes_need_not_be_durable_is_told() {
    let lost =
        "made nothing durable: a power cut takes what volatile caches or memory still hold, synced or not";
    let unasked = "asked for no durable write: a power cut takes what a drive's cache still has";
    for (typed, told, loses, why) in [
        (
            "--factor|drive=null,memory|--sync-every|1|--duration|50ms|--budget|5s",
            "null",
            [true, false],
            lost,
        ),
        (
            "--factor|policy=on,protected|sim:ata-40gb|--random|--sync-every|1|--duration|400ms|--budget|20s",
            "protected",
            [false, true],
            lost,
        ),
        (
            "--factor|drive=null,null|--sync-every|1|--duration|50ms|--budget|5s",
            "every level",
            [true, true],
            lost,
        ),
        (
            "--factor|buffering=direct,dsync|sim:ata-40gb|--duration|400ms|--budget|20s",
            "direct",
            [false, false],
            unasked,
        ),
    ] {
        let typed = format!("{typed}|--write|100");
        let (document, code) = compared(&Place::new(), &typed);
        assert_eq!(code, Some(0));
        let levels = document["levels"].as_array().unwrap();
        assert_eq!(levels.iter().map(|level| &level["loses_synced"]).collect::<Vec<_>>(), loses, "{typed}");
        let end = format!("; {told} {why}");
        assert!(document["headline"].as_str().unwrap().contains(&end), "{document:#}");
    }
}

#[test]
fn a_limit_that_is_exceeded_is_a_finding_and_the_same_seed_gives_the_same_document() {
    let typed = "--a|--depth 1|--b|--depth 8|sim:sas-15k|--random|--duration|400ms|--budget|12s|--seed|7|--fail-if|p50 ratio > 1.5|--whole-budget";
    let place = Place::new();
    let (one, code) = compared(&place, typed);
    assert_eq!((code, &one["level"]), (Some(1), &Value::from("warning")));
    assert!(number(&one, "/ratios/iops/median") > 1.2, "{one:#}");
    let (other, _) = compared(&place, typed);
    assert_eq!(one["measured"], other["measured"]);
}

#[test]
fn recorded_runs_are_compared_and_labelled() {
    let place = Place::new();
    let mut names = Vec::new();
    for (number, depth) in [1, 1, 1, 1, 8, 8, 8, 8].into_iter().enumerate() {
        let name = format!("run{number}");
        let typed = format!("sim:sas-15k?seed={number} --random --duration 1s --depth {depth} --out {name}");
        let mut command = plumb();
        let output =
            command.arg("load").args(typed.split(' ')).current_dir(place.here.path()).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{}", said(&output));
        names.push(name);
    }
    let (document, _) =
        compared(&place, &format!("{}|--against|{}", names[4..].join("|"), names[..4].join("|")));
    assert_eq!(document["design"]["interleaved"], false);
    assert_eq!(document["outcome"], "different", "{document:#}");
    // Differences of the workloads come first.
    let notes = document["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("not interleaved")), "{notes:?}");
    // A run is one measurement, even if it is named twice or by another name.
    let copied = Command::new("cp").args(["-r", "run0", "copy"]).current_dir(place.here.path()).status();
    assert!(copied.unwrap().success());
    for typed in [
        "run4|run4|--against|run0|run1",
        "run4|run5|--against|run0|./run0",
        "run4|--against|run0|copy",
        "run0|run0",
        "run4|--against|run4",
    ] {
        let mut command = plumb();
        command.arg("compare").args(typed.split('|')).current_dir(place.here.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        assert!(said(&output).contains("a run counts as one measurement"), "{typed}: {}", said(&output));
    }
    let mistyped = ["compare", "run4", "--against", "run0", "--format", "jsno"];
    let output = plumb().args(mistyped).current_dir(place.here.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(!place.here.path().join("plumb-runs").exists(), "nothing was to be recorded");
    // Runs of different block sizes are comparable by their bytes alone.
    let larger = "load sim:sas-15k --random --block-size 64k --duration 1s --out larger";
    let output = plumb().args(larger.split(' ')).current_dir(place.here.path()).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", said(&output));
    let (document, _) = compared(&place, "larger|--against|run0");
    assert_eq!(document["figure"], "bytes-per-second");
    // The name of a file is not capitalised at the start of a sentence.
    std::fs::rename(place.here.path().join("run1"), place.here.path().join("off")).unwrap();
    let output =
        plumb().args(["compare", "off", "--against", "run0"]).current_dir(place.here.path()).output();
    let text = said(&output.unwrap());
    assert!(text.contains("\noff has"), "{text}");
}

#[test]
fn whole_rounds_are_kept_when_it_is_interrupted() {
    let place = Place::new();
    let mut command = plumb();
    let typed =
        "--a|--depth 1|--b|--depth 2|t.dat|--size|4M|--random|--duration|100ms|--whole-budget|--json|--out";
    command.arg("compare").args(typed.split('|')).arg(place.run_directory()).current_dir(place.here.path());
    let mut child = start(&mut command);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let measuring = |line: &std::io::Result<String>| line.as_ref().unwrap().contains("measuring");
    // The pilot blocks, and six complete blocks.
    assert!(lines.by_ref().filter(measuring).nth(16).is_some(), "it ended early");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let reader = std::thread::spawn(move || lines.count());
    let output = child.wait_with_output().unwrap();
    reader.join().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let document = valid_document(SCHEMA, &output);
    assert_eq!(document["complete"], false);
    assert!(number(&document, "/blocks") >= 3.0, "{document:#}");
    let kept = std::fs::read(place.run_directory().join("result.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), document);
}

/// A log file gets one progress line every ten seconds, not one for each block.
#[test]
fn progress_floods_no_log() {
    let place = Place::new();
    let typed = "compare|--a|--depth 1|--b|--depth 2|t.dat|--size|1M|--random|--duration|50ms|--budget|3s|--json|--no-record";
    let begun = std::time::Instant::now();
    let mut command = plumb();
    command.args(typed.split('|')).current_dir(place.here.path()).env_remove("PLUMB_PROGRESS");
    let output = command.output().unwrap();
    assert!(number(&document(&output), "/blocks") >= 8.0, "{}", said(&output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines = stderr.lines().filter(|line| line.contains("measuring") || line.contains("laying out"));
    let most = 1 + begun.elapsed().as_secs() / 10;
    assert!(lines.count() as u64 <= most, "{stderr}");
}

#[test]
fn rounds_are_judged_where_a_file_cannot_be_removed_in_the_end() {
    let place = Place::new();
    let path = |name: &str| place.here.path().join(name);
    std::fs::create_dir(path("d")).unwrap();
    let mut command = plumb();
    let typed = "compare|--a|--depth 1|--b|--depth 2|d/t.dat|--size|1M|--random|--duration|100ms|--budget|3s|--remove-after|--json|--out";
    let mut child =
        start(command.args(typed.split('|')).arg(place.run_directory()).current_dir(place.here.path()));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let measuring = |line: &std::io::Result<String>| line.as_ref().unwrap().contains("measuring");
    assert!(lines.by_ref().any(|line| measuring(&line)), "it ended early");
    std::fs::rename(path("d"), path("e")).unwrap();
    std::fs::write(path("d"), "no directory").unwrap();
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).last());
    let output = child.wait_with_output().unwrap();
    let last = reader.join().unwrap();
    assert_eq!(output.status.code(), Some(5), "{} {last:?}", said(&output));
    let document = valid_document(SCHEMA, &output);
    assert!(number(&document, "/blocks") >= 8.0 && document["outcome"].is_string(), "{document:#}");
    assert_eq!((&document["complete"], &document["failed"]), (&false.into(), &true.into()));
    assert!(document["incomplete_because"].as_str().unwrap().contains("remove"), "{document:#}");
    let kept = std::fs::read(place.run_directory().join("result.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), document);
}

#[test]
fn a_count_ends_no_block_and_dsync_has_the_figure_of_a_durable_write() {
    let typed = "--a|--sync-every 1|--b|--dsync|sim:sas-15k|--random|--write|100|--count|100|--figure|durable-mean|--duration|400ms|--budget|12s";
    let (document, code) = compared(&Place::new(), typed);
    assert_eq!((code, number(&document, "/blocks") >= 8.0), (Some(0), true), "{document:#}");
    assert!(number(&document, "/ratio/median") > 0.0);
    let lengths =
        document["measured"].as_array().unwrap().iter().map(|block| block["seconds"].as_f64().unwrap());
    assert!(lengths.clone().all(|seconds| seconds >= 0.4), "{:?}", lengths.collect::<Vec<_>>());
    let notes = document["notes"].to_string();
    assert!(notes.contains("--count"), "{notes}");
}

#[test]
fn a_figure_that_a_level_lacks_is_refused_after_practice() {
    let typed = "compare|--a|--depth 1|--b|--depth 2|sim:sas-15k|--random|--duration|400ms|--budget|1h|--no-record|--figure|sync-p99";
    let output = exited(plumb().args(typed.split('|')).output().unwrap(), 3);
    assert!(said(&output).contains("level --depth 1 has no sync-p99"), "{}", said(&output));
}

#[test]
fn levels_run_at_the_same_time_each_on_a_target_of_its_own() {
    let typed = "--together|--a|sim:sas-15k --depth 1|--b|sim:sas-15k?seed=2 --depth 8|--random|--duration|400ms|--budget|10s";
    let (document, code) = compared(&Place::new(), typed);
    assert_eq!((code, &document["design"]["together"]), (Some(0), &Value::from(true)));
    assert_eq!(document["outcome"], "different", "{document:#}");
    assert!(number(&document, "/ratios/iops/low") > 1.2, "{document:#}");
    let blocks = document["measured"].as_array().unwrap().len() as f64;
    // Pilot blocks are included.
    assert_eq!(blocks, 2.0 * (number(&document, "/blocks") + 5.0));
    assert!(document["levels"][1]["distribution"].as_array().unwrap().len() > 10);
    assert!(document["measured"][0]["rates"][0].as_f64().unwrap() > 0.0);
}

#[test]
fn each_workload_is_a_chapter_that_is_judged_alone() {
    let place = Place::new();
    let typed = "--factor|policy=on,off|sim:nearline-4tb|--random|--write|100|--workload|--depth 4|--workload|--sync-every 1|\
                 --duration|400ms|--budget|30s|--fail-if|iops ratio > 1.5";
    let (document, code) = compared(&place, typed);
    let chapters = document["chapters"].as_array().unwrap();
    let names: Vec<&str> = chapters.iter().map(|chapter| chapter["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["--depth 4", "--sync-every 1"]);
    for chapter in chapters {
        holds(SCHEMA, chapter);
        assert!(number(chapter, "/blocks") >= 10.0 && chapter["measured"].as_array().unwrap().len() >= 30);
        assert!(
            chapter["workload"].as_str().unwrap().contains("depth = 4") == (chapter["name"] == "--depth 4")
        );
    }
    let exceeded: Vec<bool> = chapters.iter().map(|chapter| chapter["level"] == "warning").collect();
    assert_eq!(
        (exceeded[0], code, &document["level"]),
        (false, Some(i32::from(exceeded[1])), &chapters[1]["level"])
    );
    assert_eq!(document["outcome"], chapters[0]["outcome"]);
    let shown = plumb().arg("report").arg(place.run_directory()).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let page = std::fs::read_to_string(place.run_directory().join("report.html")).unwrap();
    for title in ["--depth 4: The difference", "--sync-every 1: The difference"] {
        assert!(shown.contains(title) && page.contains(title), "{title}: {shown}");
    }
}

#[test]
fn profiles_are_workloads_over_blocks_and_over_files() {
    let place = Place::new();
    for name in ["one", "two"] {
        std::fs::create_dir(place.here.path().join(name)).unwrap();
    }
    let typed = "--a|one|--b|two|--profile|save|--profile|pg-wal:single|--duration|50ms|--budget|4s";
    let (document, _) = compared(&place, typed);
    let chapters = document["chapters"].as_array().unwrap();
    assert_eq!(chapters.iter().map(|of| &of["name"]).collect::<Vec<_>>(), ["save", "pg-wal:single"]);
    for chapter in chapters {
        assert_eq!(chapter["figure"], "transactions");
        assert!(number(chapter, "/ratio/median") > 0.0 && number(chapter, "/blocks") >= 10.0, "{chapter:#}");
        assert!(number(chapter, "/levels/0/counts/syncs") > 0.0, "{chapter:#}");
        assert!(!chapter["explanation"].as_array().unwrap().is_empty());
    }
    let typed = "--factor|drive=sas-15k,plp-nvme-ssd|--profile|vm-64k|--duration|400ms|--budget|12s";
    let (document, _) = compared(&place, typed);
    assert_eq!((&document["outcome"], document.get("chapters")), (&Value::from("different"), None));
    for refused in [
        "--factor|buffering=cached,direct|one|--profile|save",
        "--factor|cache=none,wb:1M|one|--profile|save",
        "--factor|policy=on,off|sim:sas-15k|--profile|save",
        "--a|one|--b|two|--profile|save|--depth|4",
        "--a|one|--b|two|--profile|no-such",
    ] {
        let mut command = plumb();
        let output =
            command.arg("compare").args(refused.split('|')).current_dir(place.here.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{refused}: {}", said(&output));
    }
}

#[test]
fn practice_predicts_what_finds_a_difference() {
    let place = Place::new();
    let words = "--a|--depth 4|--b|--depth 4|sim:sas-15k|--random|--duration|400ms|--budget|15s";
    let (document, code) = compared(&place, &format!("{words}|--find|10%|--dry-run"));
    let predicted = |pointer: &str| number(&document, &format!("/design/prediction/{pointer}"));
    assert_eq!((code, &document["blocks"], predicted("difference")), (Some(0), &Value::from(0), 0.1));
    assert_eq!(document["measured"].as_array().unwrap().len(), 10, "practice and no more");
    assert_eq!((&document["outcome"], &document["ratio"]), (&Value::from("not-measured"), &Value::Null));
    let shown = plumb().arg("report").arg(place.run_directory()).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("No round that counts was run"), "{shown}");
    for words in ["looked at after", "stopped before", "no difference", "The levels\n"] {
        assert!(!shown.contains(words), "{words}: {shown}");
    }
    assert!(
        document["headline"]
            .as_str()
            .unwrap()
            .contains("to detect a difference of 10% with a probability of 80%")
    );
    assert!(predicted("rounds") >= 10.0 && predicted("seconds") > 10.0 * 2.0 * 0.4);
    // A smaller difference takes longer, and the budget detects the same.
    let (finer, _) = compared(&place, &format!("{words}|--find|0.1%|--dry-run"));
    assert!(number(&finer, "/design/prediction/seconds") > 3.0 * predicted("seconds"), "{finer:#}");
    assert_eq!(
        finer["design"]["prediction"]["smallest_detectable"],
        document["design"]["prediction"]["smallest_detectable"]
    );
}

/// Returns `plumb compare` with the caches and records of this place.
fn here(place: &Place) -> std::process::Command {
    let mut command = plumb();
    command.current_dir(place.here.path()).env("STATE_DIRECTORY", place.here.path());
    command
}

/// Returns the number of files in a directory of the place.
fn files(place: &Place, directory: &str) -> usize {
    std::fs::read_dir(place.here.path().join(directory)).map_or(0, Iterator::count)
}

#[test]
fn a_cache_before_a_simulated_drive_is_new_in_each_block() {
    let typed = "--factor|cache=none,wb:1G|sim:nearline-4tb|--random|--write|100|--block-size|64k|--depth|8|--duration|400ms|--budget|12s";
    let (document, _) = compared(&Place::new(), typed);
    assert_eq!(document["outcome"], "different", "{document:#}");
    assert!(number(&document, "/ratio/low") > 2.0, "{document:#}");
}

#[test]
fn a_cache_before_a_file_goes_at_the_end_and_after_a_kill_by_the_next_command() {
    let place = Place::new();
    let words = "compare|--factor|cache=none,wb:16M|t.dat|--size|4M|--random|--write|100|--duration|100ms|--no-record|--json";
    let whole = here(&place).args(words.split('|')).args(["--budget", "3s"]).output().unwrap();
    let compared = document(&whole);
    assert_eq!(compared["levels"][1]["name"], "wb:16M", "{}", said(&whole));
    assert!(number(&compared, "/blocks") >= 8.0, "{compared:#}");
    let nothing_left = || {
        let is_there = place.here.path().join("t.dat.plumb-log").exists();
        assert_eq!((files(&place, "cache"), files(&place, "restore"), is_there), (0, 0, false));
    };
    nothing_left();
    let mut child = start(here(&place).args(words.split('|')).args(["--budget", "1m", "--whole-budget"]));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let behind =
        |line: &std::io::Result<String>| line.as_ref().unwrap().contains("wb:16M (2 of 2): measuring");
    assert!(lines.by_ref().any(|line| behind(&line)), "it ended early");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    drop(lines);
    // The configuration of the cache and the lock of orders on it.
    assert_eq!((files(&place, "cache"), files(&place, "restore")), (2, 1));
    // A command that only reads reports leftovers, and changes nothing.
    let reading = here(&place).arg("explain").output().unwrap();
    let told = String::from_utf8_lossy(&reading.stderr).into_owned();
    assert!(told.contains("left the cache compare-") && told.contains("`plumb restore`"), "{told}");
    let listed =
        valid_document("restore", &here(&place).args(["restore", "--dry-run", "--json"]).output().unwrap());
    let settings = |listed: &Value| -> Vec<Value> {
        let all = listed["left"].as_array().unwrap().iter();
        all.filter(|left| left["kind"] == "setting").map(|left| left["outcome"].clone()).collect()
    };
    assert_eq!(settings(&listed), ["left"], "{listed:#}");
    // The configuration of the cache and the lock of orders on it.
    assert_eq!((files(&place, "cache"), files(&place, "restore")), (2, 1));
    // A command that writes restores them first.
    let writing =
        ["load", "other.dat", "--size", "1M", "--write", "100", "--duration", "100ms", "--no-record"];
    let next = here(&place).args(writing).output().unwrap();
    assert!(
        said(&next).contains("restored what a killed plumb had left: the cache compare-"),
        "{}",
        said(&next)
    );
    nothing_left();
}

#[test]
fn a_file_of_words_has_the_levels_of_its_targets() {
    let place = Place::new();
    let file = place.here.path().join("w.toml");
    std::fs::write(&file, "targets = [\"sim:sas-15k\"]\nwrite = 37\nsize = \"1M\"\n").unwrap();
    let shown = |typed: &str| {
        let mut command = plumb();
        command.args(["compare", "--show-workload", "w.toml"]).args(typed.split('|'));
        String::from_utf8(command.current_dir(place.here.path()).output().unwrap().stdout).unwrap()
    };
    for (typed, wanted) in [
        ("--factor|policy=off,on", "sim:sas-15k?wce=off sim:sas-15k?wce=on"),
        ("--factor|drive=null,plp-nvme-ssd", "sim:null sim:plp-nvme-ssd"),
        ("--factor|cache=none,wb:16M", "sim:sas-15k cache:backing=sim:sas-15k,"),
        ("--a|x.dat|--b|y.dat", "x.dat y.dat"),
    ] {
        let words = shown(typed);
        let all_in = wanted.split(' ').all(|target| words.contains(&format!("\"{target}")));
        assert!(all_in && words.contains("write = 37"), "{typed}: {words}");
    }
    // Both draw the same offsets, although no seed was given.
    let words = shown("--a|x.dat|--b|y.dat");
    assert_eq!(words.matches("seed = ").count(), 1, "{words}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for typed in [
        "sim:null",
        "--factor|buffering=cached|sim:null",
        "--factor|buffering=cached,warm|sim:null",
        "--factor|buffering=cached,direct|sim:null",
        "--factor|buffering=direct,cached|--together|sim:sas-15k|--random|--write|100",
        "--factor|policy=on,off|nbd:127.0.0.1:1",
        "--factor|scheduler=none,none|sim:null",
        "--factor|cache=wb:1G,none|x.dat|--size|1M",
        "--factor|cache=none,wb|x.dat|--size|1M",
        "--factor|cache=none,wb:1M|x.dat|y.dat|--size|1M",
        "--factor|fs=ext4,xfs|no-directory|--size|1M",
        "--a|--depth 1|sim:null",
        "--a|--dept 1|--b|--depth 2|sim:null",
        "--a|--depth 1|--b|--depth 2|sim:null|--fail-if|p98 ratio > 1",
        "--a|--depth 1|--b|--depth 2|sim:null|--fail-if|iops > 1",
        "--a|--depth 1|--b|--steady 9|sim:null",
        "--a|--depth 1|--b|--depth 2|sim:null|--budget|23s",
        "--factor|drive=null,sas-15k|x.dat",
        "--factor|cache=none,wb:1K|sim:sas-15k",
        "--factor|cache=none,wb:100T|sim:sas-15k",
        "--factor|cache=none,wb:1G|--cache-log|sim:nosuch|sim:sas-15k",
        "--factor|buffering=direct,dsync|--cached|sim:sas-15k|--write|100",
        "--factor|buffering=cached,direct|--mapped|x.dat|--size|1M",
        "--factor|buffering=direct,dsync|--dsync-every|4|sim:sas-15k|--write|100",
        "--factor|policy=on,off|sim:sas-15k?size=1G&wce=on",
    ] {
        let place = Place::new();
        let mut command = plumb();
        let output =
            command.arg("compare").args(typed.split('|')).current_dir(place.here.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
        assert!(!place.here.path().join("plumb-runs").exists(), "{typed}: nothing was to be recorded");
        let twice = [("|--cached|", "--cached"), ("&wce", "wce= of sim:sas-15k?size=1G&wce=on")];
        for (_, option) in twice.iter().filter(|(word, _)| typed.contains(word)) {
            let named = format!("=: its levels replace {option}, which would do nothing: leave it out");
            assert!(said(&output).contains(&named), "{typed}: {}", said(&output));
        }
    }
}

#[test]
fn a_file_system_that_does_not_fit_is_named_with_its_place() {
    let place = Place::new();
    let directory = place.here.path().join("full");
    std::fs::create_dir(&directory).unwrap();
    let script = "command -v mkfs.ext4 mkfs.xfs >&2 && mount -t tmpfs -o size=1M none full || exit 77; \
                  exec \"$0\" compare --factor fs=ext4,xfs full --fs-size 512M --write 100 --sync-every 1 --no-record";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_plumb")]);
    let output = command.current_dir(place.here.path()).env("STATE_DIRECTORY", place.here.path()).output();
    let output = output.unwrap();
    if !rustix::process::geteuid().is_root() || output.status.code() == Some(77) {
        plumb_testkit::skip("a tmpfs and file systems take root, mkfs.ext4 and mkfs.xfs");
        return;
    }
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let place = "cannot reserve 512 MiB for ";
    let told = said(&output);
    assert!(told.contains(place) && told.contains("full/plumb-compare-"), "{told}");
}

//! `plumb compare` on simulated drives: known differences are found and explained, none is found where there is none, a limit sets
//! the exit code, and what was recorded is shown again.

use std::io::{BufRead as _, BufReader};

use crate::common::{document, holds, plumb, said};
use crate::load_support::{Place, start};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SCHEMA: &str = "../report/schemas/compare.schema.json";

/// Compares what was typed, parted at bars; the document and the exit code.
fn compared(place: &Place, typed: &str) -> (Value, Option<i32>) {
    let mut command = plumb();
    command.args(["compare", "--json", "--replace", "--out"]).arg(place.run_directory());
    command.args(typed.split('|').map(str::trim)).current_dir(place.here.path());
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{typed}: {}", said(&output));
    let document = document(&output);
    holds(SCHEMA, &document);
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
    assert!(share(&document, &["flush-count", "flush-cost", "sync-calls"]) > 0.8, "{document:#}");
    let shares: f64 = share(
        &document,
        &[
            "depth",
            "flush-count",
            "flush-cost",
            "sync-calls",
            "device-ios",
            "device-io-cost",
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
fn a_limit_that_is_exceeded_is_a_finding_and_the_same_seed_gives_the_same_document() {
    let typed = "--a|--depth 1|--b|--depth 8|sim:sas-15k|--random|--duration|400ms|--budget|10s|--seed|7|--fail-if|p50 ratio > 1.5|--whole-budget";
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
    assert!(document["notes"][0].as_str().unwrap().contains("not interleaved"));
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
    // Practice, and six blocks that are over.
    assert!(lines.by_ref().filter(measuring).nth(8).is_some(), "it ended early");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let reader = std::thread::spawn(move || lines.count());
    let output = child.wait_with_output().unwrap();
    reader.join().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let document = document(&output);
    holds(SCHEMA, &document);
    assert_eq!(document["complete"], false);
    assert!(number(&document, "/blocks") >= 3.0, "{document:#}");
    let kept = std::fs::read(place.run_directory().join("result.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), document);
}

#[test]
fn levels_run_at_the_same_time_each_on_a_target_of_its_own() {
    let typed = "--together|--a|sim:sas-15k --depth 1|--b|sim:sas-15k?seed=2 --depth 8|--random|--duration|400ms|--budget|10s";
    let (document, code) = compared(&Place::new(), typed);
    assert_eq!((code, &document["design"]["together"]), (Some(0), &Value::from(true)));
    assert_eq!(document["outcome"], "different", "{document:#}");
    assert!(number(&document, "/ratios/iops/low") > 1.2, "{document:#}");
    let blocks = document["measured"].as_array().unwrap().len() as f64;
    // And practice.
    assert_eq!(blocks, 2.0 * (number(&document, "/blocks") + 1.0));
    assert!(document["levels"][1]["distribution"].as_array().unwrap().len() > 10);
    assert!(document["measured"][0]["rates"][0].as_f64().unwrap() > 0.0);
}

/// `plumb compare` as it finds caches and records of this place.
fn here(place: &Place) -> std::process::Command {
    let mut command = plumb();
    command.current_dir(place.here.path()).env("STATE_DIRECTORY", place.here.path());
    command
}

/// How many files of a directory of the place there are.
fn files(place: &Place, directory: &str) -> usize {
    std::fs::read_dir(place.here.path().join(directory)).map_or(0, Iterator::count)
}

#[test]
fn a_cache_before_a_simulated_drive_is_new_in_each_block() {
    let typed = "--factor|cache=none,wb:1G|sim:nearline-4tb|--random|--write|100|--block-size|64k|--depth|8|--duration|800ms|--budget|20s";
    let (document, _) = compared(&Place::new(), typed);
    assert_eq!(document["outcome"], "different", "{document:#}");
    assert!(number(&document, "/ratio/low") > 2.0, "{document:#}");
}

#[test]
fn a_cache_before_a_file_goes_at_the_end_and_after_a_kill_by_the_next_command() {
    let place = Place::new();
    let words = "compare|--factor|cache=none,wb:16M|t.dat|--size|4M|--random|--write|100|--duration|100ms|--no-record|--json";
    let whole = here(&place).args(words.split('|')).args(["--budget", "2s"]).output().unwrap();
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
    assert_eq!((files(&place, "cache"), files(&place, "restore")), (1, 1));
    let next = here(&place).args(["survey", "."]).output().unwrap();
    assert!(
        said(&next).contains("a comparison was killed; put back as it was: the cache compare-"),
        "{}",
        said(&next)
    );
    nothing_left();
}

#[test]
fn what_makes_no_sense_is_refused() {
    for typed in [
        "sim:null",
        "--factor|buffering=cached|sim:null",
        "--factor|buffering=cached,warm|sim:null",
        "--factor|policy=on,off|nbd:127.0.0.1:1",
        "--factor|scheduler=none,none|sim:null",
        "--factor|cache=wb:1G,none|x.dat|--size|1M",
        "--factor|cache=none,wb|x.dat|--size|1M",
        "--factor|cache=none,wb:1M|x.dat|y.dat|--size|1M",
        "--factor|fs=ext4,xfs|no-directory|--size|1M",
        "--a|--depth 1|sim:null",
        "--a|--dept 1|--b|--depth 2|sim:null",
        "--a|--depth 1|--b|--depth 2|sim:null|--fail-if|p98 ratio > 1",
        "--a|--depth 1|--b|--steady 9|sim:null",
    ] {
        let output = plumb().arg("compare").args(typed.split('|')).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{typed}: {}", said(&output));
    }
}

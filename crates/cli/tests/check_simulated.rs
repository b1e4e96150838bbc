//! Tests of simulated drives and NBD exports as arguments of `plumb check` and `plumb survey`.

use std::process::Output;

use crate::common::{document, exited, holds, plumb, said, scratch, verdict_ids};
use crate::drive_support::Server;
use serde_json::Value;

/// Returns the output of a check of `target`, recorded in a directory of its own.
fn check(target: &str) -> Output {
    let runs = scratch();
    plumb()
        .args(["check", "--json", "--seconds", "4", "--size", "16M", "--seed", "7", "--out"])
        .arg(runs.path().join("run"))
        .arg(target)
        .current_dir(runs.path())
        .output()
        .unwrap()
}

fn survey(target: &str, more: &[&str]) -> Output {
    plumb().args(["survey", "--json", target]).args(more).output().unwrap()
}

fn assert_refused(output: &Output, code: i32, word: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(word) && !stderr.contains("panic"), "{stderr}");
    assert!(output.stdout.is_empty(), "{}", said(output));
}

#[test]
fn a_simulated_drive_is_checked_and_the_same_seed_gives_the_same_figures() {
    let run = || {
        let output = exited(check("sim:sas-15k?seed=3"), 0);
        document(&output)
    };
    let (one, other) = (run(), run());
    for part in ["sync", "io", "path", "accounting"] {
        assert_eq!(one[part], other[part], "{part}");
    }
    holds("check", &one);
    let names: Vec<&Value> = one["io"].as_array().unwrap().iter().map(|io| &io["name"]).collect();
    assert_eq!(names, ["read-direct", "write-direct"], "a drive has no page cache");
    for sync in one["sync"].as_array().unwrap() {
        assert_eq!(
            sync["flushes_per_sync"].as_f64(),
            Some(0.0),
            "this drive reports no volatile cache: {sync:#}"
        );
        assert!(sync["latency"]["mean"].as_f64().unwrap() > 1e-3, "a disk of 15,000 rpm turns in 4 ms");
    }
    assert_eq!(one["complete"], true);
    assert_eq!(one["path"]["durable_at"]["fsync"], "sim:sas-15k?seed=3");
}

#[test]
fn a_cache_over_simulated_drives_is_checked_as_they_are() {
    let run = || {
        let output = exited(check("cache:backing=sim:nearline-4tb,log=sim:plp-nvme-ssd,size=256MiB"), 0);
        document(&output)
    };
    let (one, other) = (run(), run());
    assert_eq!((&one["sync"], &one["io"]), (&other["sync"], &other["io"]));
    let sync = &one["sync"][0];
    assert!(sync["latency"]["mean"].as_f64() < Some(1e-3), "of a disk it would take a turn: {sync:#}");
}

#[test]
fn the_flush_that_stands_for_fua_is_counted_with_its_time() {
    let output = check("sim:ata-40gb");
    let found = document(&output);
    let dsync =
        found["sync"].as_array().unwrap().iter().find(|sync| sync["method"] == "direct-dsync").unwrap();
    assert_eq!(dsync["flushes_per_sync"].as_f64(), Some(1.0), "this drive takes no FUA: {dsync:#}");
    let (flush, whole) = (&dsync["storage"]["flush_mean"], &dsync["latency"]["mean"]);
    let share = flush.as_f64().unwrap() / whole.as_f64().unwrap();
    assert!((0.5..1.0).contains(&share), "a write goes to the cache and the flush to the platter: {dsync:#}");
}

#[test]
fn a_driver_that_drops_flushes_is_a_finding() {
    let place = scratch();
    let model = place.path().join("vendor.toml");
    let text = include_str!("../../sim/models/ata-40gb.toml")
        .replace("[behaviour]", "[behaviour]\ndriver_drops_flush = true");
    std::fs::write(&model, text).unwrap();
    let output = exited(check(&format!("sim:{}", model.display())), 1);
    let found = document(&output);
    assert!(verdict_ids(&found).contains(&"flush-dropped"), "{found:#}");
}

#[test]
fn what_cannot_be_checked_is_refused_with_a_reason() {
    assert_refused(&check("sim:no-such-drive"), 2, "no-such-drive");
    assert_refused(&check("sim:sas-15k?size=8M"), 2, "--size 16 MiB is more than the 8 MiB");
    assert_refused(&check("nbd+unix:///?socket=/nowhere"), 5, "/nowhere");
}

#[test]
fn the_way_to_a_simulated_drive_is_what_it_reports() {
    for (target, write, cache) in [
        ("sim:consumer-nvme-ssd?wce=off", Some("sim:consumer-nvme-ssd?wce=off"), "none"),
        ("sim:consumer-nvme-ssd", None, "volatile"),
        ("sim:plp-nvme-ssd", Some("sim:plp-nvme-ssd"), "none"),
    ] {
        let output = exited(survey(target, &[]), 0);
        let path = &document(&output)["paths"][0];
        assert_eq!(path["target"], target);
        assert_eq!(path["layers"][1]["kind"], "simulated-drive");
        assert_eq!(path["layers"][1]["cache"], cache, "{target}");
        assert_eq!(path["durable_at"]["write"].as_str(), write, "{target}");
        assert_eq!(path["durable_at"]["fsync"], target);
    }
    assert_refused(&survey("sim:null", &["--record", "/tmp/never-made"]), 2, "--record");
    assert!(!std::path::Path::new("/tmp/never-made").exists());
}

#[test]
fn an_export_is_looked_at_and_never_written_by_a_check() {
    let place = scratch();
    let socket = place.path().join("nbd");
    let server = Server::start(&["consumer-nvme-ssd", "--size", "32M", "--nbd", socket.to_str().unwrap()]);
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let output = exited(survey(&uri, &[]), 0);
    let path = &document(&output)["paths"][0];
    assert_eq!(path["layers"][1]["kind"], "nbd");
    assert_eq!(path["layers"][1]["cache"], "volatile");
    assert_eq!(path["durable_at"]["fsync"], Value::Null, "what the server does is not claimed");
    assert!(path["unknown_below"].as_str().unwrap().contains("NBD server"));
    assert_refused(&check(&uri), 4, "plumb load");
    let status = server.order("status", &[]);
    assert_eq!(status["writes"], 0, "{status:#}");
    server.detach();
}

#[test]
fn without_a_seed_of_its_own_a_check_takes_that_of_the_drive() {
    let run = |target: &str| {
        let runs = scratch();
        let output = plumb()
            .args(["check", "--json", "--seconds", "1", "--size", "16M", "--out", "run", target])
            .current_dir(runs.path())
            .output()
            .unwrap();
        document(&output)
    };
    let (one, other) = (run("sim:sas-15k?seed=3"), run("sim:sas-15k?seed=3"));
    for part in ["sync", "io"] {
        assert!(one[part].is_array(), "{part}");
        assert_eq!(one[part], other[part], "{part}");
    }
}

#[test]
fn a_drive_that_honours_one_of_flush_and_fua_is_found() {
    for (target, said_of_it) in [
        ("sim:consumer-nvme-ssd?behaviour.ignores_fua=true", "only flushes are honoured"),
        ("sim:he8-media-cache?behaviour.ignores_flush=always", "only FUA is honoured"),
    ] {
        let output = exited(check(target), 1);
        let found = document(&output);
        let verdicts = found["verdicts"].as_array().unwrap();
        let verdict = verdicts.iter().find(|verdict| verdict["id"] == "one-of-flush-and-fua").unwrap();
        assert!(verdict["sentence"].as_str().unwrap().contains(said_of_it), "{verdict:#}");
    }
    for honest in ["sim:consumer-nvme-ssd", "sim:he8-media-cache", "sim:usb-stick", "sim:plp-nvme-ssd"] {
        let output = check(honest);
        assert!(!verdict_ids(&document(&output)).contains(&"one-of-flush-and-fua"), "{honest}");
    }
}

#[test]
fn a_survey_says_which_pages_a_drive_tears() {
    let drive = "sim:consumer-nvme-ssd?geometry.atomic_unit=16KiB";
    let pages = |more: &[&str]| document(&survey(drive, more))["paths"][0]["untorn"].clone();
    let answers = |pages: &Value| {
        let page = |page: &Value| {
            (page["page_bytes"].as_u64().unwrap(), page["answer"].as_str().unwrap().to_owned())
        };
        pages.as_array().unwrap().iter().map(page).collect::<Vec<_>>()
    };
    let all = pages(&[]);
    let said: Vec<String> = answers(&all).into_iter().map(|(_, answer)| answer).collect();
    assert_eq!(said, ["yes", "yes", "yes", "no", "no"]);
    assert_eq!((&all[2]["rank"], &all[3]["rank"]), (&Value::from("declared"), &Value::Null));
    let chosen = pages(&["--page-size", "16k,32k"]);
    assert_eq!(answers(&chosen), [(16384, "yes".to_owned()), (32768, "no".to_owned())]);
    assert_refused(&survey(drive, &["--page-size", "5k"]), 2, "4k, 8k, 16k, 32k or 64k");
}

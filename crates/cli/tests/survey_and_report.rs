//! Tests that a recorded survey reads the same elsewhere, and that `plumb report` creates every format from a
//! recording.

use std::io::BufRead as _;

use crate::common;
use crate::common::{check, document, exited, has_run, plumb, said, scratch};

#[test]
fn a_recorded_survey_says_what_the_live_one_said() {
    let directory = scratch();
    let recorded =
        plumb().args(["survey", ".", "--json", "--record"]).arg(directory.path()).output().unwrap();
    assert!(matches!(recorded.status.code(), Some(0 | 1)), "{}", said(&recorded));
    let again = plumb().args(["survey", ".", "--json", "--from"]).arg(directory.path()).output().unwrap();
    let paths = |output: &std::process::Output| common::document(output)["paths"].clone();
    assert_eq!(paths(&again)[0]["layers"], paths(&recorded)[0]["layers"], "{}", said(&again));
    assert_eq!(again.status, recorded.status);
}

#[test]
fn surveying_everything_finds_every_mounted_disk() {
    let output = plumb().args(["survey", "--all", "--json"]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    let document = common::document(&output);
    assert_eq!(document["schema"], "plumb/survey/1");
    let targets: Vec<&str> =
        document["paths"].as_array().unwrap().iter().map(|path| path["target"].as_str().unwrap()).collect();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root_is_a_disk = mounts.lines().any(|line| line.contains(" / / ") && line.contains(" - ext4 /dev/"));
    if root_is_a_disk {
        assert!(targets.contains(&"/"), "{targets:?}");
    }
}

/// QEMU itself accepts these options; the machine is stopped before its first instruction. QEMU greets on its
/// control channel after it has opened its disks; before that the kernel may not show its command line yet.
#[test]
fn the_disks_of_a_running_qemu_are_surveyed_from_the_host() {
    let directory = scratch();
    let image = |name: &str| directory.path().join(name).display().to_string();
    for name in ["unsafe", "none"] {
        std::fs::write(image(name), vec![0; 1 << 20]).unwrap();
    }
    let name = format!("plumb-test-{}", std::process::id());
    let drive = |mode: &str| format!("file={},format=raw,if=none,id={mode},cache={mode}", image(mode));
    let started = std::process::Command::new("qemu-system-x86_64")
        .args(["-S", "-display", "none", "-nodefaults", "-machine", "none", "-name", &name])
        .args(["-drive", &drive("unsafe"), "-drive", &drive("none"), "-qmp", "stdio"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let mut qemu = match started {
        Ok(qemu) => qemu,
        Err(error) => return plumb_testkit::skip(&format!("qemu-system-x86_64: {error}")),
    };
    let mut greeting = String::new();
    std::io::BufReader::new(qemu.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
    let output = plumb().args(["survey", "--guests", "--json"]).output();
    let ended = qemu.try_wait();
    qemu.kill().and_then(|()| qemu.wait()).unwrap();
    assert!(ended.unwrap().is_none(), "QEMU takes the options");
    let output = exited(output.unwrap(), 1);
    let document = common::document(&output);
    let path = |mode: &str| {
        let target = format!("{name}, disk {mode}: {}", image(mode));
        let found = document["paths"].as_array().unwrap().iter().find(|path| path["target"] == target);
        found.unwrap_or_else(|| panic!("{target}: {document:#}")).clone()
    };
    let drops = |path: &serde_json::Value| {
        path["findings"].as_array().unwrap().iter().any(|finding| finding["id"] == "flush-dropped")
    };
    let (dropped, kept) = (path("unsafe"), path("none"));
    assert!(drops(&dropped) && !drops(&kept), "{document:#}");
    assert_eq!(dropped["layers"][1]["kind"], "page-cache");
    assert_ne!(kept["layers"][1]["kind"], "page-cache");
    // A guest accepts only this survey of its host.
    let file = directory.path().join("host.json");
    std::fs::write(&file, &output.stdout).unwrap();
    let joined = ["survey", ".", "--json", "--host-survey", file.to_str().unwrap()];
    let output = plumb().args(joined).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    std::fs::write(&file, &output.stdout).unwrap();
    let output = exited(plumb().args(joined).output().unwrap(), 2);
    assert!(
        said(&output).contains("make it on the host with `plumb survey --guests --json`"),
        "{}",
        said(&output)
    );
}

#[test]
fn every_format_is_made_from_the_recording_alone() {
    let (place, run) = (scratch(), scratch());
    let checked = check(place.path(), run.path()).output().unwrap();
    for (format, holds) in [
        ("terminal", "overwrite-fdatasync"),
        ("html", "<!doctype html>"),
        ("json", "\"plumb/check/1\""),
        ("csv", "overwrite-fdatasync"),
        ("prometheus", "# type plumb_"),
        ("fio", "\"jobs\""),
    ] {
        let report = plumb().args(["report", "-v", "--format", format]).arg(run.path()).output().unwrap();
        assert_eq!(report.status, checked.status, "{format}: {}", said(&report));
        let text = String::from_utf8(report.stdout).unwrap();
        assert!(text.to_lowercase().contains(holds), "{format}: {}", &text[..text.len().min(400)]);
        if format == "json" {
            assert_eq!(text.as_bytes(), checked.stdout, "the recording says something else");
        }
    }
    let file = run.path().join("again.html");
    let written =
        plumb().args(["report", "--format", "html", "-o"]).args([&file, run.path()]).output().unwrap();
    assert_eq!(written.status, checked.status);
    let first = std::fs::read(run.path().join("report.html")).unwrap();
    assert_eq!(std::fs::read(file).unwrap(), first, "the page cannot be made again");
}

#[test]
fn a_guest_and_its_host_are_one_path_if_they_ran_at_the_same_time() {
    let place = scratch();
    let run = |name: &str, target: &str| {
        let mut load = plumb();
        load.args(["load", target, "--write", "100", "--duration", "1h", "--rate", "10iops"]);
        load.args(["--sync-every", "1", "--out", name]);
        let output = load.current_dir(place.path()).output().unwrap();
        assert!(has_run(&output), "{}", said(&output));
    };
    run("guest", "sim:nearline-4tb");
    run("host", "sim:nearline-4tb?wce=off");
    let report = |guest: &str| {
        let mut report = plumb();
        report
            .args(["report", guest, "--beneath", "host", "--json"])
            .current_dir(place.path())
            .output()
            .unwrap()
    };
    let joined = document(&report("guest"));
    let notes = joined["notes"].to_string();
    assert!(
        notes.contains("ran together for") && notes.contains("there for each operation in the guest"),
        "{notes}"
    );
    let layers = joined["path"]["layers"].as_array().unwrap();
    assert!(layers.iter().any(|layer| layer["name"].as_str().unwrap().contains(": ")), "{layers:#?}");
    // A recording from another time.
    let manifest = place.path().join("guest/result.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let year = joined["environment"]["started_at"].as_str().unwrap()[..4].to_owned();
    std::fs::write(&manifest, text.replace(&format!("\"{year}-"), "\"1999-")).unwrap();
    let refused = exited(report("guest"), 2);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("do not overlap"), "{}", said(&refused));
}

/// The cache of a simulated drive has the same name everywhere.
#[test]
fn a_protected_cache_is_called_so_by_survey_list_and_policy() {
    let answer = |typed: &str| document(&plumb().args(typed.split(' ')).output().unwrap());
    let surveyed = answer("survey sim:enterprise-sata-ssd --json");
    assert_eq!(surveyed["paths"][0]["layers"][1]["cache"], "protected", "{surveyed:#}");
    let models = answer("drive list --json");
    let models = models["models"].as_array().unwrap();
    let model = models.iter().find(|model| model["name"] == "enterprise-sata-ssd").unwrap();
    assert_eq!(model["write_cache"], "on, protected");
    let shown = answer("policy show sim:enterprise-sata-ssd --json");
    assert_eq!(shown["devices"][0]["protection"]["rank"], "declared", "{shown:#}");
}

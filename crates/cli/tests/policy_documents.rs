//! Tests of the promised keys in the documents of `plumb policy`, and of its metrics in the format of
//! Prometheus.

use std::process::Output;

use crate::common;
use crate::common::{document, exited, holds, plumb, said, scratch, valid_document};
use serde_json::Value;

/// Runs `plumb policy` without the claims of this machine.
pub(crate) fn policy(arguments: &[&str]) -> Output {
    let mut command = plumb();
    command.arg("policy").args(arguments);
    if !arguments.contains(&"--claims") {
        command.args(["--claims", "/nonexistent/claims.toml"]);
    }
    command.output().unwrap()
}

fn has_keys(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "{key} is missing: {value}");
    }
}

#[test]
fn show_holds_what_is_promised_of_every_disk_and_of_what_is_none() {
    let directory = scratch();
    let path = directory.path().to_str().unwrap();
    for arguments in [&["show", "--json"][..], &["show", path, "--json"]] {
        let output = policy(arguments);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
        let document = document(&output);
        assert_eq!(document["schema"], "plumb/policy/1");
        holds("policy", &document);
        for device in document["devices"].as_array().unwrap() {
            has_keys(
                device,
                &[
                    "name",
                    "identity",
                    "transport",
                    "state",
                    "device",
                    "kernel",
                    "holders",
                    "protection",
                    "findings",
                    "changeable_by",
                    "refusal",
                    "health",
                ],
            );
            has_keys(&device["device"], &["wce", "changeable", "default", "saved"]);
            has_keys(&device["kernel"], &["write_cache", "cache_type", "fua"]);
            let states = ["off", "on", "protected", "none", "unknown"];
            assert!(states.contains(&device["state"].as_str().unwrap()), "{device}");
            let is_explained =
                !device["device"]["wce"].is_null() || device["device"]["wce_unknown_because"].is_string();
            assert!(is_explained, "{device}");
        }
    }
    let shown = document(&policy(&["show", path, "--json"]));
    assert_eq!(shown["devices"][0]["state"], "none");
}

#[test]
fn a_plan_is_the_same_document_on_stdout_and_in_its_file() {
    let directory = scratch();
    let file = directory.path().join("plan.json");
    let path = directory.path().to_str().unwrap();
    let output = policy(&["plan", "better performance", path, "--json", "--out", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let plan = document(&output);
    has_keys(&plan, &["schema", "hash", "asked", "changes", "refused", "unchanged", "boot_id", "made_at"]);
    has_keys(&plan["refused"][0], &["name", "reason", "remedy"]);
    assert_eq!(plan["asked"], "on");
    holds("policy-plan", &plan);
    assert!(plan["hash"].as_str().unwrap().starts_with("sha256:"));
    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(written, plan);
}

#[test]
fn a_watch_ends_when_it_was_told_to_and_leaves_metrics() {
    let directory = scratch();
    let file = directory.path().join("plumb.prom");
    let watch = ["watch", "--interval", "100ms", "--looks", "2", "--json"];
    let output = policy(&[&watch[..], &["--prometheus-file", file.to_str().unwrap()]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let change: Value = serde_json::from_str(line).unwrap();
        assert_eq!(change["schema"], "plumb/policy-change/1");
        holds("policy-change", &change);
        has_keys(&change, &["at", "name", "identity", "what"]);
    }
    let watched = std::fs::read_to_string(&file).unwrap();
    assert!(watched.contains("plumb_policy_looks_total 2\n"), "{watched}");
    let shown = policy(&["show", "--prometheus"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    let families = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
    };
    assert_eq!(families(&shown), families(&watched), "both are scraped into one panel");
}

#[test]
fn what_is_kept_and_enforced_nowhere_is_said_so() {
    let root = scratch();
    let place = root.path().to_str().unwrap();
    let kept = exited(policy(&["persist", "--root", place, "--json"]), 0);
    let kept = valid_document("policy-persist", &kept);
    assert_eq!(
        (&kept["schema"], kept["kept"].as_array().unwrap().len()),
        (&"plumb/policy-persist/1".into(), 0)
    );
    exited(policy(&["persist", "naa.5000c500a1b2c3d4", "--remove", "--root", place]), 2);
    assert_eq!(common::entries(root.path()), Vec::<String>::new(), "nothing was written");
}

#[test]
fn what_a_raid_program_says_is_said_beside_the_disks() {
    let directory = scratch();
    let file = directory.path().join("storcli.json");
    let report = |cache: &str, battery: &str| {
        std::fs::write(
            &file,
            format!(
                r#"{{"Controllers":[{{"Response Data":{{
                "VD LIST":[{{"DG/VD":"0/1","TYPE":"RAID6","State":"Optl","Cache":"{cache}"}}],
                "BBU_Info":[{{"Model":"BBU","State":"{battery}"}}]}}}}]}}"#
            ),
        )
        .unwrap();
        policy(&["show", "--json", "--raid-report", file.to_str().unwrap()])
    };
    let good = report("NRWBD", "Optimal");
    assert_eq!(document(&good)["raid"]["volumes"][0]["write_policy"], "write-back", "{}", said(&good));
    holds("policy", &document(&good));
    let risky = report("NRAWBD", "Failed");
    assert_eq!(
        document(&risky)["raid"]["volumes"][0]["write_policy"],
        "always-write-back",
        "{}",
        said(&risky)
    );
    assert_eq!(risky.status.code(), Some(1), "{}", said(&risky));
    std::fs::write(&file, "{}").unwrap();
    exited(policy(&["show", "--raid-report", file.to_str().unwrap()]), 2);
}

#[test]
fn a_simulated_drive_is_shown_and_never_planned() {
    let root = scratch();
    let place = root.path().to_str().unwrap();
    for (name, state) in
        [("sim:hdd-space", "on"), ("sim:hdd-space?wce=off", "off"), ("sim:plp-nvme-ssd", "off")]
    {
        let shown = valid_document("policy", &policy(&["show", name, "--json"]));
        let device = &shown["devices"][0];
        assert_eq!((&device["name"], &device["state"]), (&name.into(), &state.into()), "{shown:#}");
        assert_eq!(device["transport"], "sim");
        assert_eq!(device["device"]["wce"], state == "on");
        // `plumb drive list` says `none` for this drive, too.
        let has_none = name == "sim:plp-nvme-ssd";
        assert_eq!(device["device"]["is_absent"] == true, has_none, "{shown:#}");
        let text = said(&policy(&["show", name]));
        assert_eq!(text.contains("write cache none ("), has_none, "{text}");
        assert_eq!(text.contains(": off, it has no volatile write cache"), has_none, "{text}");
        assert!(device["kernel"]["write_cache"].is_null() && device["findings"][0]["id"] == "no-kernel-view");
        for command in [&["plan", "off", name][..], &["persist", name, "--root", place], &["heal", name]] {
            let refused = policy(command);
            assert_eq!(refused.status.code(), Some(4), "{command:?}: {}", said(&refused));
            assert!(said(&refused).contains("is a simulated drive"), "{command:?}: {}", said(&refused));
        }
    }
    let output = exited(policy(&["show", "sim:no-such-model"]), 2);
    assert!(said(&output).contains("plumb drive list"), "{}", said(&output));
}

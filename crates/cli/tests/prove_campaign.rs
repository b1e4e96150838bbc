//! Tests of campaigns, writers and witnesses as users run them, on drives served over NBD.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::{document, exited, holds, plumb, said, valid_document};
use crate::drive_support::Server;

struct Bench {
    directory: tempfile::TempDir,
    server: Server,
}

impl Bench {
    fn new(model: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nbd");
        let server = Server::start(&[model, "--size", "4M", "--nbd", socket.to_str().unwrap()]);
        Self { directory, server }
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.directory.path().join("nbd").display())
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn campaign(&self, cycles: &str, aim: &str) -> Output {
        let power = format!("drive:{}", self.server.name);
        plumb()
            .args([
                "prove",
                "campaign",
                &self.uri(),
                "--dir",
                &self.path("campaign"),
                "--cycles",
                cycles,
                "--json",
            ])
            .args(["--power", &power, "--aim", aim, "--cut-after", "0s..30s", "--size", "1M", "--overwrite"])
            .output()
            .unwrap()
    }
}

fn witness(directory: &str) -> String {
    format!("{} prove witness --dir {directory}", env!("CARGO_BIN_EXE_plumb"))
}

/// Returns a command that kills its witness after two answers: to the run, and to a batch.
fn mortal_witness(directory: &str) -> String {
    let witness = witness(directory);
    format!(
        "exec 3<&0; mkfifo {directory}.$$; {witness} <&3 >{directory}.$$ & witness=$!; \
         dd bs=4096 count=2 status=none <{directory}.$$; kill -KILL $witness; rm {directory}.$$"
    )
}

#[test]
fn a_campaign_finds_nothing_on_an_honest_drive_and_goes_on_where_it_was_left() {
    let bench = Bench::new("consumer-nvme-ssd");
    for (cycles, clean) in [("2", 2), ("5", 5)] {
        let output = exited(bench.campaign(cycles, "flush:20:submitted..flush:20:completed"), 0);
        let found = valid_document("prove-campaign", &output);
        assert_eq!((&found["clean"], &found["losses"]), (&Value::from(clean), &Value::from(0)), "{found:#}");
    }
    let cuts = bench.server.order("status", &[])["cuts"].as_u64().unwrap();
    assert_eq!(cuts, 5, "cycles that were done were done again");
    let output = exited(bench.campaign("6", "flush=2"), 3);
    assert!(said(&output).contains("another campaign"), "{}", said(&output));
    bench.server.detach();
}

#[test]
fn a_campaign_finds_a_drive_that_lies() {
    let bench = Bench::new("liar");
    let output = exited(bench.campaign("4", "flush=25"), 1);
    let found = document(&output);
    assert!(found["losses"].as_u64().unwrap() > 0, "{found:#}");
    assert_eq!((&found["level"], &found["loss_rate_below"]), (&Value::from("danger"), &Value::Null));
    bench.server.detach();
}

#[test]
fn a_witness_that_is_killed_again_and_again_loses_nothing() {
    let bench = Bench::new("plp-nvme-ssd");
    let uri = bench.uri();
    let records = bench.path("records");
    let mortal = mortal_witness(&records);
    let writer = ["prove", "writer", &uri, "--witness", &mortal];
    exited(
        plumb().args(writer).args(["--seconds", "1s", "--size", "1M", "--overwrite"]).output().unwrap(),
        0,
    );
    assert!(Path::new(&records).read_dir().unwrap().count() > 1, "the witness was never killed");
    let verify = || {
        plumb().args(["prove", "verify", &uri, "--witness", &witness(&records), "--json"]).output().unwrap()
    };
    let output = exited(verify(), 0);
    assert!(document(&output)["required"].as_u64().unwrap() > 0);
    // The blocks were overwritten, so acknowledged data is missing.
    let load = ["load", &uri, "--write", "100", "--random", "--duration", "200ms"];
    let output = plumb().args(load).args(["--overwrite", "--no-record"]).output().unwrap();
    assert_eq!(output.status.code().filter(|code| *code < 2), output.status.code(), "{}", said(&output));
    let output = exited(verify(), 1);
    holds("prove-verify", &document(&output));
    bench.server.detach();
}

#[test]
fn what_would_test_nothing_or_endanger_this_machine_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let records = witness(&at("records"));
    let (file, there) = (at("file"), at("there"));
    std::fs::write(&there, [0; 4096]).unwrap();
    let campaign = at("campaign");
    for (arguments, code, words) in [
        (vec!["writer", "sim:liar", "--witness", &records], 2, "serve it"),
        (
            vec!["writer", &file, "--witness", &records, "--size", "1M", "--block-size", "100"],
            2,
            "multiple of",
        ),
        (vec!["writer", &file, "--witness", "exit 1", "--size", "1M"], 3, "no witness"),
        (vec!["verify", &there, "--witness", &records], 3, "has no run"),
        (vec!["campaign", &file, "--dir", &campaign, "--power", "sysrq"], 2, "--on"),
        (vec!["campaign", &file, "--dir", &campaign, "--power", "lever"], 2, "ipmi:USER@HOST"),
        (
            vec!["campaign", &file, "--dir", &campaign, "--cut-with", "true", "--aim", "now"],
            2,
            "served drive",
        ),
    ] {
        let output = plumb().arg("prove").args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments:?}: {}", said(&output));
        assert!(!Path::new(&file).exists(), "{arguments:?}: nothing was written to what was made");
    }
    // A witness that stops answering after its first answers.
    let mortal = format!("mkdir {} || exit; {}", at("once"), mortal_witness(&at("records")));
    let words = ["writer", &file, "--witness", &mortal, "--size", "1M", "--patience", "1s"];
    let output = exited(plumb().arg("prove").args(words).output().unwrap(), 3);
    let is_said = said(&output).contains(&format!("{file}, which this run made, stays"));
    assert_eq!(is_said, Path::new(&file).exists(), "{}", said(&output));
}

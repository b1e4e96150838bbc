//! Many hosts: delays of their starts, durations of a survey over ssh and of a change by Ansible, and the
//! cost for the controller.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use plumb_testkit::sshd::Sshds;
use serde_json::Value;

use super::machine::MEMORY;
use super::paired::verdict;
use crate::process;

/// Number of agents that start together.
const AGENTS: usize = 100;
/// Limit of the 99th percentile of the delay of a start, in milliseconds.
const LATE_BAR: f64 = 20.0;
/// Limit for a survey of all hosts over ssh, in seconds.
const SURVEY_BAR: f64 = 40.0;

/// Starts agents on this machine, then simulates increasing numbers of hosts.
pub(super) fn run(root: &Path, plumb: &Path) -> Result<()> {
    super::machine::print_load_average();
    starts(plumb, &["sim:memory"])?;
    let memory = tempfile::tempdir_in(MEMORY).context("a directory in memory")?;
    starts(plumb, &[&format!("{}/{{host}}", memory.path().display()), "--size", "1M"])?;
    survey(plumb)?;
    ansible(root)?;
    let bench = ["bench", "--quiet", "--package", "plumb-fleet", "--bench", "hosts"];
    for line in process::text(Command::new("cargo").args(bench).current_dir(root))?.lines() {
        println!("  {line}");
    }
    Ok(())
}

/// Measures a load per target that all agents of this machine start at one moment.
fn starts(plumb: &Path, target: &[&str]) -> Result<()> {
    let mut load = Command::new(plumb);
    load.args(["fleet", "load", "--hosts", &format!("a[1-{AGENTS}]"), "--remote-plumb"]).arg(plumb);
    load.args(["--launcher", "sh -c 'exec sh -c \"$1\"' {host}", "--json", "--no-record"]).args(target);
    // A low rate, so that the first loads do not take the processors from the others.
    load.args(["--random", "--rate", "100iops", "--duration", "1s", "--warmup", "0"]);
    let began = Instant::now();
    let document = process::document(&mut load)?;
    let took = began.elapsed().as_secs_f64();
    let hosts = document["hosts"].as_array().context("hosts of the document")?;
    let mut late: Vec<f64> = hosts.iter().filter_map(|host| host["start_late"].as_f64()).collect();
    late.sort_by(f64::total_cmp);
    let p99 = late.get(late.len() * 99 / 100).or(late.last()).context("no host has started")? * 1e3;
    let met = verdict(p99 <= LATE_BAR);
    println!(
        "  {} of {AGENTS} agents started on {}, 99 of 100 within {p99:.2} ms (bar {LATE_BAR}): {met}; {took:.1} s in all",
        late.len(),
        target[0]
    );
    Ok(())
}

/// Measures a survey through local sshds.
fn survey(plumb: &Path) -> Result<()> {
    let place = tempfile::tempdir().context("a directory for sshds")?;
    let Some(sshds) = Sshds::start(place.path(), AGENTS, false) else {
        println!("  survey over ssh: SKIPPED, there is no sshd here");
        return Ok(());
    };
    let mut survey = Command::new(plumb);
    survey
        .args(["fleet", "survey", "--hosts", &format!("127.0.1.[1-{AGENTS}]"), "--remote-plumb"])
        .arg(plumb);
    survey.args(["--launcher", &format!("ssh -F {} {{host}}", sshds.config)]);
    survey.args(["--json", "--no-record", "--", "/"]);
    let began = Instant::now();
    let output = process::captured(&mut survey, &[0, 1, 3])?;
    let took = began.elapsed().as_secs_f64();
    let document: Value = serde_json::from_slice(&output.stdout).context("the document of the survey")?;
    let hosts = document["hosts"].as_array().context("hosts of the document")?;
    let done = hosts.iter().filter(|host| host["ok"] == true).count();
    let met = verdict(done == AGENTS && took <= SURVEY_BAR);
    println!("  {done} of {AGENTS} sshds surveyed in {took:.1} s (bar {SURVEY_BAR}): {met}");
    Ok(())
}

/// Runs the test of a change of 400 disks, with the number of hosts in the limit. The test prints its times.
fn ansible(root: &Path) -> Result<()> {
    let test = "test_policy.Policy.test_four_hundred_disks";
    let mut command = Command::new("python3");
    command.args(["-m", "unittest", test]).env("PLUMB_TEST_HOSTS", AGENTS.to_string());
    let output = process::captured(command.current_dir(root.join("integrations/tests")), &[0, 1])?;
    let said = String::from_utf8_lossy(&output.stderr);
    let told = said.lines().find(|line| line.contains("hosts by Ansible"));
    println!("  {}", told.unwrap_or_else(|| said.lines().last().unwrap_or("the test has said nothing")));
    Ok(())
}

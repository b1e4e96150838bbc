//! Job files and command lines with their expected scenarios.

mod accepted;
mod command_lines;
mod fuzzed;
#[path = "../../../tests/machine.rs"]
mod machine;
mod outputs;
mod refusals;
mod spans;

use std::collections::BTreeMap;
use std::io;

use plumb_block::Bytes;
use plumb_workload::{Job, Workload};

use super::{Invocation, Surroundings, parse};
use crate::{Error, Machine, ProcessorPlace};

pub(super) fn machine() -> Machine {
    Machine {
        host: "host".into(),
        kernel: "6.1".into(),
        uptime_ms: 12_345,
        started_at: "2026-11-21T23:27:02Z".into(),
        started_unix: 1_795_303_622,
        started_unix_ms: 1_795_303_622_000,
        zone_offset_seconds: 0,
        argv: vec!["plumb".into(), "fio".into()],
        ..machine::machine()
    }
}

/// Parses a command line with these files, one variable and one device of 1 GiB.
pub(super) fn parse_in(arguments: &[&str], files: &[(&str, &str)]) -> Result<Invocation, Error> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let read_file = |name: &str| {
        files.get(name).map(|text| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let surroundings = Surroundings {
        read_file: &read_file,
        environment: &|name| (name == "DISK").then(|| "/dev/vdb".to_owned()),
        target_size: &|name| match name {
            "/dev/vdb" => Some(Bytes::gib(1)),
            "/there" => Some(Bytes::mib(3)),
            _ => None,
        },
        is_file: &|name| !name.starts_with("/dev/"),
        is_scheme: &|word| ["sim", "nbd", "nbd+unix"].contains(&word),
        is_directory: &|name| name.starts_with("/d"),
    };
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    parse(&arguments, &machine(), &surroundings)
}

/// Parses a job file.
pub(super) fn file(text: &str) -> Result<Invocation, Error> {
    parse_in(&["job.fio"], &[("job.fio", text)])
}

/// Parses a section with these lines, and with a filename, a size, a time and random reads unless they set
/// others.
pub(super) fn section(lines: &str) -> Result<Invocation, Error> {
    let lines: Vec<&str> = lines.split('|').collect();
    file(&format!("[x]\nfilename=/f\nsize=64m\nrw=randread\n{}\n", lines.join("\n")))
}

pub(super) fn only_job(invocation: &Invocation) -> &Job {
    let [span] = &invocation.meaning.scenario.spans[..] else { panic!("not one span") };
    let [job] = &span.jobs[..] else { panic!("not one job: {:?}", span.jobs) };
    job
}

pub(super) fn job(lines: &str) -> Job {
    match section(lines) {
        Ok(invocation) => only_job(&invocation).clone(),
        Err(error) => panic!("{lines}: {error}"),
    }
}

pub(super) fn workload(lines: &str) -> Workload {
    job(lines).workload
}

pub(super) fn notes(lines: &str) -> String {
    section(lines).unwrap_or_else(|error| panic!("{lines}: {error}")).meaning.notes.join("\n")
}

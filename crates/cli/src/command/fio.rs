//! `plumb fio`: fio's command line and job files, with its text, JSON and logs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_dialect::fio::{self, Format, Invocation, SteadyRound, Surroundings};
use plumb_load::SpanResult;
use plumb_state::OutputFile;
use plumb_targets::{Name, size_of};
use plumb_trial::{Round, Trial, make_folders};

use crate::arguments::output::OutputArguments;
use crate::command::running::RunningCommand;
use crate::exit::{Exit, usage};
use crate::{files, own_options, terminal};

/// Runs the command line as typed.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<Exit> {
    let (own, arguments) = own_options::take(arguments)?;
    let asks = |words: &[&str]| arguments.iter().any(|typed| words.contains(&typed.as_str()));
    if asks(&["--help", "-h"]) {
        return own_options::usage(fio::USAGE);
    }
    if asks(&["--version", "-v"]) {
        terminal::print(fio::VERSION)?;
        return Ok(Exit::Done);
    }
    let running = RunningCommand::begin("fio", own);
    let machine = running.machine.clone();
    let read = RefCell::new(Vec::new());
    let surroundings = Surroundings {
        read_file: &|name| {
            read.borrow_mut().push(PathBuf::from(name));
            files::read_or_stdin(name)
        },
        environment: &|name| std::env::var(name).ok(),
        target_size: &size_of,
        is_file: &is_file,
        is_scheme: &|word| matches!(Name::parse(format!("{word}:")), Ok(Name::Scheme { .. })),
        is_directory: &|name| std::path::Path::new(name).is_dir(),
    };
    let invocation = fio::parse(&arguments, &machine, &surroundings).map_err(usage)?;
    if invocation.output.show_command {
        terminal::print(&fio::command(&invocation))?;
        return Ok(Exit::Done);
    }
    if invocation.output.parse_only {
        return Ok(Exit::Done);
    }
    let logs = BTreeSet::from_iter(fio::log_names(&invocation));
    let named = invocation.output.file.iter().chain(&logs).map(Path::new);
    let targets = invocation.meaning.scenario.targets().into_iter().map(PathBuf::from);
    let reads: Vec<PathBuf> = read.take().into_iter().chain(targets).collect();
    let writing = OutputArguments { overwrite: running.own.overwrite };
    let outputs = writing.each(named, &reads)?;
    if !running.own.show_workload {
        make_folders(&invocation.meaning.scenario)?;
    }
    let running = RunningCommand { remove_after: invocation.remove_after.clone(), ..running };
    running.run(invocation.meaning.clone(), &|trial| print(&invocation, trial, &machine, &outputs))
}

fn print(
    invocation: &Invocation,
    trial: &Trial,
    machine: &plumb_dialect::Machine,
    outputs: &[OutputFile<'_>],
) -> anyhow::Result<()> {
    let results: Vec<SpanResult> = trial.spans.iter().map(|span| span.ran.result.clone()).collect();
    let round = |of: &Round| SteadyRound { iops: of.iops, bytes_per_second: of.bytes_per_second };
    let rounds = trial.spans.iter().map(|span| span.rounds.iter().map(round).collect());
    let rounds: Vec<Vec<SteadyRound>> = rounds.collect();
    let mut text = String::new();
    for format in &invocation.output.formats {
        text += &match format {
            Format::Normal => fio::normal(invocation, &results, machine),
            Format::Json => fio::json_text(invocation, &results, &rounds, machine, false)?,
            Format::JsonPlus => fio::json_text(invocation, &results, &rounds, machine, true)?,
        };
    }
    for log in fio::logs(invocation, &results, machine) {
        let named = |output: &&OutputFile<'_>| output.path == Path::new(&log.name);
        let output = outputs.iter().find(named).context("a log has a name that was not checked")?;
        output.write(log.text.as_bytes())?;
    }
    let output = invocation.output.file.as_ref().and_then(|_| outputs.first().copied());
    files::write_or_print(output, &text)
}

/// Returns true if a target is a regular file, or would be created as one.
fn is_file(name: &str) -> bool {
    let path = Path::new(name);
    matches!(Name::parse(name), Ok(Name::Path(_))) && (path.is_file() || !path.exists())
}

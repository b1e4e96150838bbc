//! `plumb fio`: fio's command line and job files, its text, JSON and logs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_block::Bytes;
use plumb_dialect::fio::{self, Format, Invocation, SteadyRound, Surroundings};
use plumb_linux::pagecache;
use plumb_load::SpanResult;
use plumb_state::OutputFile;
use plumb_targets::Name;
use plumb_trial::{Round, Trial};
use plumb_workload::Scenario;

use crate::arguments::output::OutputArguments;
use crate::command::running::{RunningCommand, target_size};
use crate::exit::{Exit, Refusal, usage};
use crate::{files, own, terminal};

/// Runs the command line as typed.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<Exit> {
    let (own, arguments) = own::take(arguments)?;
    let asks = |words: &[&str]| arguments.iter().any(|typed| words.contains(&typed.as_str()));
    if asks(&["--help", "-h"]) {
        return own::usage(fio::USAGE);
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
        target_size: &target_size,
        is_file: &is_file,
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
    let targets = invocation.meaning.scenario.spans.iter().flat_map(|span| &span.jobs);
    let targets = targets.flat_map(|job| &job.targets).map(|target| PathBuf::from(&target.name));
    let reads: Vec<PathBuf> = read.take().into_iter().chain(targets).collect();
    let writing = OutputArguments { overwrite: running.own.overwrite };
    let outputs = writing.each(named, &reads)?;
    if !running.own.show_workload {
        make_folders(&invocation.meaning.scenario)?;
        forget_cached(&invocation.meaning.scenario);
    }
    let running = running.removing(&invocation.remove_after);
    running.run(invocation.meaning.clone(), &|trial| print(&invocation, trial, &machine, &outputs))
}

fn print(
    invocation: &Invocation,
    trial: &Trial,
    machine: &plumb_dialect::Machine,
    outputs: &[OutputFile<'_>],
) -> anyhow::Result<()> {
    let results: Vec<SpanResult> = trial.spans.iter().map(|span| span.ran.result.clone()).collect();
    let rounds: Vec<Vec<SteadyRound>> = trial.spans.iter().map(|span| steady_rounds(&span.rounds)).collect();
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
        output.write(log.text.as_bytes()).map_err(Refusal::from)?;
    }
    let output = invocation.output.file.as_ref().and_then(|_| outputs.first().copied());
    files::write_or_print(output, &text)
}

/// Returns the rounds of a trial in the terms of fio.
fn steady_rounds(rounds: &[Round]) -> Vec<SteadyRound> {
    let of = |round: &Round| SteadyRound { iops: round.iops, bytes_per_second: round.bytes_per_second };
    rounds.iter().map(of).collect()
}

/// Makes the folders that names of files lead through, with the mode that fio gives them.
fn make_folders(scenario: &Scenario) -> Result<(), Refusal> {
    const MODE: u32 = 0o700;
    let jobs = scenario.spans.iter().flat_map(|span| &span.jobs);
    for target in jobs.flat_map(|job| &job.targets) {
        let Ok(Name::Path(path)) = Name::parse(&target.name) else { continue };
        let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        else {
            continue;
        };
        let made = DirBuilder::new().recursive(true).mode(MODE).create(folder);
        made.map_err(|error| {
            Refusal::new(Exit::NotMeasured, format!("cannot make {}: {error}", folder.display()))
        })?;
    }
    Ok(())
}

/// Returns true if a target is a regular file, or would be made as one.
fn is_file(name: &str) -> bool {
    let path = Path::new(name);
    matches!(Name::parse(name), Ok(Name::Path(_))) && (path.is_file() || !path.exists())
}

/// Takes the clean pages of all files out of the page cache, as fio does before it begins. A file that cannot
/// be opened is said when it is.
fn forget_cached(scenario: &Scenario) {
    let jobs = scenario.spans.iter().flat_map(|span| &span.jobs);
    for target in jobs.flat_map(|job| &job.targets) {
        // Opening some things already does something; regular files are safe.
        if !Path::new(&target.name).is_file() {
            continue;
        }
        let (Ok(file), Some(size)) = (File::open(&target.name), target_size(&target.name)) else { continue };
        if let Err(error) = pagecache::drop_clean(&file, Bytes(0), size, &target.name) {
            terminal::say(&format!("plumb: {error}"));
        }
    }
}

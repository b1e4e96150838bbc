//! `plumb fio`: fio's command line and job files, its text, JSON and logs.

use plumb_block::Bytes;
use plumb_dialect::fio::{self, Format, Invocation, Surroundings};
use plumb_load::SpanResult;
use plumb_measure::run::replace::replace;
use plumb_trial::Trial;

use crate::command::running::{Running, read_file, usage};
use crate::exit::Exit;
use crate::{own, terminal};

/// Runs what was typed.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<Exit> {
    let (own, arguments) = own::take(arguments)?;
    let running = Running::begin("fio", own);
    let machine = running.machine.clone();
    let surroundings = Surroundings {
        read_file: &read_file,
        environment: &|name| std::env::var(name).ok(),
        target_size: &target_size,
    };
    let invocation = fio::parse(&arguments, &machine, &surroundings).map_err(usage)?;
    if invocation.output.show_command {
        terminal::print(&fio::command(&invocation))?;
        return Ok(Exit::Done);
    }
    if invocation.output.parse_only {
        return Ok(Exit::Done);
    }
    running.run(invocation.meaning.clone(), &|trial| print(&invocation, trial, &machine))
}

fn print(invocation: &Invocation, trial: &Trial, machine: &plumb_dialect::Machine) -> anyhow::Result<()> {
    let results: Vec<SpanResult> = trial.spans.iter().map(|span| span.ran.result.clone()).collect();
    let mut text = String::new();
    for format in &invocation.output.formats {
        text += &match format {
            Format::Normal => fio::normal(invocation, &results, machine),
            Format::Json => fio::json_text(invocation, &results, machine, false)?,
            Format::JsonPlus => fio::json_text(invocation, &results, machine, true)?,
        };
    }
    for log in fio::logs(invocation, &results, machine) {
        replace(log.name.as_ref(), log.text.as_bytes())?;
    }
    match &invocation.output.file {
        Some(path) => Ok(replace(path.as_ref(), text.as_bytes())?),
        None => terminal::print(&text),
    }
}

/// How large a file is now.
fn target_size(name: &str) -> Option<Bytes> {
    Some(Bytes(std::fs::metadata(name).ok()?.len())).filter(|size| size.0 > 0)
}

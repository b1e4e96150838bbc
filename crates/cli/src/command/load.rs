//! `plumb load`: a workload in plumb's own words.

use plumb_dialect::{Meaning, native};
use plumb_report::{Format, render};

use crate::arguments::LoadArguments;
use crate::command::running::{Running, read_file, usage};
use crate::exit::{Exit, Refusal};
use crate::surroundings::seed_from_clock;
use crate::terminal;

/// Runs what was typed, as words or as a file of them.
pub(crate) fn run(arguments: &LoadArguments) -> anyhow::Result<Exit> {
    let running = Running::begin("load", arguments.own.clone());
    running.run(meaning(arguments)?, &|trial| {
        terminal::print(&render(&trial.recording, Format::Terminal, terminal::style())?)
    })
}

fn meaning(arguments: &LoadArguments) -> Result<Meaning, Refusal> {
    let Some(file) = arguments.words.file() else {
        return arguments.words.meaning(seed_from_clock()).map_err(usage);
    };
    let text = read_file(file).map_err(|error| Refusal::new(Exit::Usage, format!("{file}: {error}")))?;
    let scenario = native::read(&text, file, seed_from_clock()).map_err(usage)?;
    Ok(Meaning { scenario, notes: Vec::new() })
}

//! `plumb load`: a workload in plumb's own words.

use plumb_dialect::{Meaning, native};
use plumb_report::{Format, render};

use crate::arguments::LoadArguments;
use crate::command::profile;
use crate::command::running::{Running, usage};
use crate::exit::{Exit, Refusal};
use crate::surroundings::seed_from_clock;
use crate::terminal;

/// What to do about a file of words that cannot be read.
const UNREAD: &str = "check the name: what ends in .toml is a file of words, not a target";

/// Runs what was typed, as words or as a file of them.
pub(crate) fn run(arguments: &LoadArguments) -> anyhow::Result<Exit> {
    if arguments.explain {
        return profile::explain(arguments.profile.as_deref().unwrap_or("list"));
    }
    let running = Running::begin("load", arguments.own.clone());
    if let Some(name) = &arguments.profile {
        return profile::run(running, name, &arguments.words);
    }
    running.run(meaning(arguments)?, &|trial| {
        terminal::print(&render(&trial.recording, Format::Terminal, terminal::style())?)
    })
}

fn meaning(arguments: &LoadArguments) -> Result<Meaning, Refusal> {
    let Some(file) = arguments.words.file() else {
        refuse_company(&arguments.words.targets)?;
        return arguments.words.meaning(seed_from_clock()).map_err(usage);
    };
    let text = crate::text_file::read(file)
        .map_err(|error| Refusal::new(Exit::Usage, format!("{file}: {error}; {UNREAD}")))?;
    let scenario = native::read(&text, file, seed_from_clock()).map_err(usage)?;
    Ok(Meaning { scenario, notes: Vec::new() })
}

/// A file of words is not to be taken for a target, and perhaps overwritten, because other words stand beside it.
fn refuse_company(targets: &[String]) -> Result<(), Refusal> {
    let Some(file) = targets.iter().find(|target| native::is_file_of_words(target)) else { return Ok(()) };
    let problem = "a file of words stands alone; put the other words into it, or name the target otherwise";
    Err(Refusal::new(Exit::Usage, format!("{file}: {problem}")))
}

//! `plumb load`: a workload in plumb's own language.

use plumb_block::FailureKind;
use plumb_dialect::{Meaning, native};
use plumb_report::Format;

use crate::arguments::load::LoadArguments;
use crate::command::profile;
use crate::command::running::{RunningCommand, default_seed};
use crate::exit::{Exit, Refusal, usage};
use crate::terminal;

/// Remedy for an unreadable file of words.
const UNREAD: &str = "check the name: what ends in .toml is a file of words, not a target";

/// Runs the typed workload, or the one in a file.
pub(crate) fn run(arguments: &LoadArguments) -> anyhow::Result<Exit> {
    if arguments.explain {
        return profile::explain(arguments.profile.as_deref().unwrap_or("list"));
    }
    let running = RunningCommand::begin("load", arguments.own.clone());
    if let Some(name) = &arguments.profile {
        return profile::run(running, name, &arguments.words, arguments.detail.style());
    }
    running.run(meaning(&arguments.words)?, &|trial| {
        terminal::show(&trial.recording, Format::Terminal, arguments.detail.style())
    })
}

/// Interprets words, or the file of words that is named among their targets.
///
/// # Errors
/// If a word is invalid; the message names it.
pub(super) fn meaning(words: &native::Words) -> anyhow::Result<Meaning> {
    let Some((file, typed)) = &words.file().map_err(usage)? else {
        let seed = default_seed(words.targets().iter().map(String::as_str));
        return Ok(words.meaning(seed).map_err(usage)?);
    };
    let text = crate::files::read(file)
        .map_err(|error| Refusal::new(FailureKind::Usage, format!("{file}: {error}; {UNREAD}")))?;
    let first = native::read_under(&text, file, typed, 0).map_err(usage)?;
    let jobs = first.spans.iter().flat_map(|span| &span.jobs);
    let seed = default_seed(jobs.flat_map(|job| job.targets.iter().map(|target| target.name.as_str())));
    let scenario = native::read_under(&text, file, typed, seed).map_err(usage)?;
    Ok(Meaning { scenario, notes: Vec::new() })
}

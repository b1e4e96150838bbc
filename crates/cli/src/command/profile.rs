//! `plumb load --profile`: application profiles.

use plumb_application::{self as application, Profile};
use plumb_dialect::{Meaning, native::Words};
use plumb_report::{Format, Style};
use plumb_trial::Trial;
use plumb_workload::Scenario;

use crate::command::running::{RunningCommand, default_seed};
use crate::exit::{Exit, usage};
use crate::terminal;

/// Prints the explanation of a profile; `list` prints a line per profile.
pub(crate) fn explain(name: &str) -> anyhow::Result<Exit> {
    if name == "list" {
        let line = |profile: &Profile| {
            format!("{:18} {:10} {}\n", profile.name, profile.provenance.name(), profile.summary)
        };
        terminal::print(&application::profiles().iter().map(line).collect::<String>())?;
        return Ok(Exit::Done);
    }
    let (profile, _) = application::find(name).map_err(usage)?;
    terminal::print(&application::explain(profile))?;
    Ok(Exit::Done)
}

/// Runs a profile.
pub(crate) fn run(running: RunningCommand, name: &str, words: &Words, style: Style) -> anyhow::Result<Exit> {
    let print = |trial: &Trial| terminal::show(&trial.recording, Format::Terminal, style);
    let scenario = scenario(name, words)?;
    let running = RunningCommand { profile: Some(name.to_owned()), ..running };
    running.run(Meaning { scenario, notes: Vec::new() }, &print)
}

/// Returns the scenario of a profile, with the targets and limits in `words`.
///
/// # Errors
/// If a name or a limit is invalid; the message names it.
pub(crate) fn scenario(name: &str, words: &Words) -> anyhow::Result<Scenario> {
    application::find(name).map_err(usage)?;
    let targets = words.targets();
    let seed = default_seed(targets.iter().map(String::as_str));
    let limits = words.profile_limits(seed).map_err(usage)?;
    Ok(plumb_trial::profile_scenario(name, &targets, &limits)?)
}

//! `plumb sqlio`: SQLIO's command line and parameter file, with its text result.

use plumb_dialect::sqlio;

use crate::command::running::RunningCommand;
use crate::exit::{Exit, usage};
use crate::{files, own_options, terminal};

/// Runs the command line as typed.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<Exit> {
    let (own, arguments) = own_options::take(arguments)?;
    if arguments.iter().any(|typed| ["-?", "--help"].contains(&typed.as_str())) {
        return own_options::usage(sqlio::USAGE);
    }
    let running = RunningCommand::begin("sqlio", own);
    let machine = running.machine.clone();
    let invocation = sqlio::parse(&arguments, &machine, &files::read).map_err(usage)?;
    let meaning = invocation.meaning().map_err(usage)?;
    running.run(meaning, &|trial| match trial.spans.first() {
        Some(span) => terminal::print(&sqlio::text(&invocation, &span.ran.result, &machine)),
        None => Ok(()),
    })
}

//! `plumb diskspd`: DiskSpd's command line, with its text and XML results.

use plumb_dialect::diskspd::{self, Command, ResultFormat};
use plumb_load::SpanResult;
use plumb_targets::size_of;

use crate::command::running::RunningCommand;
use crate::exit::{Exit, usage};
use crate::{files, own_options, terminal};

/// Runs the command line as typed.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<Exit> {
    let (own, arguments) = own_options::take(arguments)?;
    if arguments.iter().any(|typed| typed == "--help") {
        return own_options::usage(diskspd::USAGE);
    }
    let running = RunningCommand::begin("diskspd", own);
    let command = diskspd::parse(&arguments, &running.machine, &files::read).map_err(usage)?;
    let invocation = match command {
        Command::Usage => return own_options::usage(diskspd::USAGE),
        Command::Run(invocation) => invocation,
    };
    let machine = running.machine.clone();
    if invocation.profile_only {
        terminal::print(&invocation.profile_output(&machine))?;
        return Ok(Exit::Done);
    }
    let meaning = invocation.meaning(&machine, &size_of).map_err(usage)?;
    // Progress dots would corrupt an XML document on stdout.
    let every = invocation.profile.progress;
    let dots = (invocation.profile.result_format == ResultFormat::Text && every > 0).then_some(every);
    RunningCommand { dots, ..running }.run(meaning, &|trial| {
        let results: Vec<SpanResult> = trial.spans.iter().map(|span| span.ran.result.clone()).collect();
        terminal::print(&invocation.output(&results, &machine))
    })
}

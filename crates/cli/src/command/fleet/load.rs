//! `plumb fleet load`: a workload on all hosts simultaneously.

use clap::Args;
use plumb_dialect::native::{Words, write};
use plumb_fleet::LoadTask;
use plumb_report::Kind;

use super::ending::{begun_now, conclude};
use super::progress::Progress;
use super::reach::Reach;
use crate::arguments::running::{Detail, OwnArguments};
use crate::command::load::meaning;
use crate::exit::Exit;
use crate::terminal;

/// Arguments of `plumb fleet load`.
#[derive(Debug, Args)]
pub(super) struct LoadArguments {
    #[command(flatten)]
    reach: Reach,

    /// Run it on these numbers of hosts, one after the other, such as 1,2,4,8, and show the rate of each host
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    scale: Vec<u32>,

    #[command(flatten)]
    words: Words,

    #[command(flatten)]
    own: OwnArguments,

    #[command(flatten)]
    detail: Detail,
}

/// Runs the load, on increasing numbers of hosts if requested.
pub(super) fn run(arguments: &LoadArguments) -> anyhow::Result<Exit> {
    let scenario = meaning(&arguments.words)?.scenario;
    if arguments.own.show_workload {
        terminal::print(&write(&scenario))?;
        return Ok(Exit::Done);
    }
    let format = arguments.own.printed.format(Kind::Fleet)?;
    let mut session = arguments.reach.session(&arguments.own.recording)?;
    let mut progress = Progress::of_load(arguments.own.tui, scenario.duration(), &session.stop);
    let load = load_of(&arguments.own);
    let ran =
        session.run_load(&scenario, &load, &arguments.scale, begun_now(), &mut |hosts, now, trouble| {
            progress.look(hosts, now, trouble)
        });
    let (answers, recording) = ran?;
    progress.end();
    conclude(recording, answers, format, arguments.detail.style(), arguments.own.strictness)
}

/// Returns the task of a host, without its words.
pub(super) fn load_of(own: &OwnArguments) -> LoadTask {
    let OwnArguments { overwrite, destroy, remove_after, .. } = own.clone();
    LoadTask { overwrite, destroy, remove_after, ..LoadTask::default() }
}

//! `plumb drive`: simulated drives.

mod control;
mod list;
mod model;
mod serve;
mod show;

use plumb_report::Kind;

use crate::arguments::drive::{DriveArguments, DriveCommand};
use crate::exit::Exit;

/// Runs the command as typed.
pub(crate) fn run(arguments: &DriveArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Status)?;
    match &arguments.command {
        DriveCommand::List => list::run(format),
        DriveCommand::Show(show) => show::run(show, format),
        DriveCommand::Serve(serve) => serve::run(serve, format),
        command => control::run(command, format),
    }
}

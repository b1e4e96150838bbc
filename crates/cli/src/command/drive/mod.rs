//! `plumb drive`: simulated drives.

mod control;
mod list;
mod serve;
mod show;

use plumb_sim::model::{Model, ModelError, Typed};

use crate::arguments::drive::{DriveArguments, DriveCommand};
use crate::exit::{Exit, Refusal};

/// Does what was typed.
pub(crate) fn run(arguments: &DriveArguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        DriveCommand::List { json } => list::run(*json),
        DriveCommand::Show(show) => show::run(show),
        DriveCommand::Serve(serve) => serve::run(serve),
        command => control::run(command),
    }
}

/// The model of this name, or in this file.
fn model(typed: &str) -> anyhow::Result<Model> {
    let named = Typed { model: typed.to_owned(), wce: None, seed: 0, size: None, faults: Vec::new() };
    Ok(named.resolve().map_err(|error: ModelError| Refusal::because(Exit::Usage, error))?)
}

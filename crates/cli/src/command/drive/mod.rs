//! `plumb drive`: simulated drives.

mod control;
mod list;
mod serve;
mod show;

use plumb_report::Kind;
use plumb_sim::model::{Model, ModelError, Typed, TypedError};

use crate::arguments::drive::{DriveArguments, DriveCommand};
use crate::exit::{Exit, Refusal};

/// Does what was typed.
pub(crate) fn run(arguments: &DriveArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Status)?;
    match &arguments.command {
        DriveCommand::List => list::run(format),
        DriveCommand::Show(show) => show::run(show, format),
        DriveCommand::Serve(serve) => serve::run(serve, format),
        command => control::run(command, format),
    }
}

/// The model of this name, or in this file, with the parameters that are typed behind it.
fn model(typed: &str) -> anyhow::Result<Model> {
    let named: Typed = typed.parse().map_err(|error: TypedError| Refusal::because(Exit::Usage, error))?;
    if named != (Typed { model: named.model.clone(), changes: named.changes.clone(), ..Typed::default() }) {
        let message = format!(
            "`{typed}`: only parameters of the model are typed behind it here; for the rest there are --wce, --seed, \
             --size and --fault"
        );
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    Ok(named.resolve().map_err(|error: ModelError| Refusal::because(Exit::Usage, error))?)
}

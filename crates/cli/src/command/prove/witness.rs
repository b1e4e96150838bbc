//! `plumb prove witness`.

use clap::Args;

use crate::exit::{Exit, Refusal};

/// What `plumb prove witness` takes.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct WitnessArguments {}

/// Does what was typed.
pub(crate) fn run(_arguments: WitnessArguments) -> anyhow::Result<Exit> {
    Err(Refusal::new(Exit::Failed, "plumb prove witness is not in this version").into())
}

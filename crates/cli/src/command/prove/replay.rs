//! `plumb prove replay`.

use clap::Args;

use crate::exit::{Exit, Refusal};

/// What `plumb prove replay` takes.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct ReplayArguments {}

/// Does what was typed.
pub(crate) fn run(_arguments: ReplayArguments) -> anyhow::Result<Exit> {
    Err(Refusal::new(Exit::Failed, "plumb prove replay is not in this version").into())
}

//! `plumb prove writer`.

use clap::Args;

use crate::exit::{Exit, Refusal};

/// What `plumb prove writer` takes.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct WriterArguments {}

/// Does what was typed.
pub(crate) fn run(_arguments: WriterArguments) -> anyhow::Result<Exit> {
    Err(Refusal::new(Exit::Failed, "plumb prove writer is not in this version").into())
}

//! `plumb prove trace`.

use clap::Args;

use crate::exit::{Exit, Refusal};

/// What `plumb prove trace` takes.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct TraceArguments {}

/// Does what was typed.
pub(crate) fn run(_arguments: TraceArguments) -> anyhow::Result<Exit> {
    Err(Refusal::new(Exit::Failed, "plumb prove trace is not in this version").into())
}

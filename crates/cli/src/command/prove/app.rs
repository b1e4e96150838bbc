//! `plumb prove app`.

use clap::Args;

use crate::exit::{Exit, Refusal};

/// What `plumb prove app` takes.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct AppArguments {}

/// Does what was typed.
pub(crate) fn run(_arguments: AppArguments) -> anyhow::Result<Exit> {
    Err(Refusal::new(Exit::Failed, "plumb prove app is not in this version").into())
}

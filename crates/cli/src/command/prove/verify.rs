//! `plumb prove verify`.

use clap::Args;

use crate::exit::{Exit, Refusal};

/// What `plumb prove verify` takes.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct VerifyArguments {}

/// Does what was typed.
pub(crate) fn run(_arguments: VerifyArguments) -> anyhow::Result<Exit> {
    Err(Refusal::new(Exit::Failed, "plumb prove verify is not in this version").into())
}

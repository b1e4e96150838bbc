//! `plumb prove campaign`.

use clap::Args;

use crate::exit::{Exit, Refusal};

/// What `plumb prove campaign` takes.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct CampaignArguments {}

/// Does what was typed.
pub(crate) fn run(_arguments: CampaignArguments) -> anyhow::Result<Exit> {
    Err(Refusal::new(Exit::Failed, "plumb prove campaign is not in this version").into())
}

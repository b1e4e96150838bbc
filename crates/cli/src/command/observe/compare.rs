//! `plumb observe compare`: comparison of two recorded observations.

use std::path::PathBuf;

use clap::Args;
use plumb_report::{Kind, ObservationPair, RenderInput};

use super::recorded::recorded;
use crate::arguments::output::PrintFormat;
use crate::arguments::running::Detail;
use crate::exit::Exit;
use crate::terminal;

/// Arguments of `plumb observe compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The recording before
    #[arg(value_name = "RUN-BEFORE")]
    before: PathBuf,

    /// The recording after
    #[arg(value_name = "RUN-AFTER")]
    after: PathBuf,

    #[command(flatten)]
    printed: PrintFormat,

    #[command(flatten)]
    detail: Detail,
}

/// Compares the observations.
pub(super) fn run(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Status)?;
    let (before, after) = (recorded(&arguments.before)?, recorded(&arguments.after)?);
    let pair = ObservationPair::new(&before, &after);
    terminal::show(RenderInput::Status(&pair), format, arguments.detail.style())?;
    Ok(Exit::Done)
}

//! `plumb observe compare`: two recorded observations.

use std::path::PathBuf;

use clap::Args;
use plumb_compare::Terms;

use crate::arguments::{Detail, RecordingArguments};
use crate::command::compare::{Earlier, compare_earlier};
use crate::exit::Exit;

/// What `plumb observe compare` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Each observation is one value, and they were not interleaved: what else changed between them is taken for a \
                        difference, and no interval can be given. With several of each, plumb compare A1 A2 --against B1 B2 gives intervals."
)]
pub(crate) struct CompareArguments {
    /// The recording before
    #[arg(value_name = "RUN-BEFORE")]
    before: PathBuf,

    /// The recording after
    #[arg(value_name = "RUN-AFTER")]
    after: PathBuf,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    recording: RecordingArguments,

    #[command(flatten)]
    detail: Detail,
}

/// Compares them.
pub(super) fn run(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    compare_earlier(&Earlier {
        runs: vec![arguments.after.clone()],
        against: vec![arguments.before.clone()],
        figure: None,
        terms: Terms { error: 0.05, equivalent: 1.05 },
        limits: Vec::new(),
        recording: &arguments.recording,
        as_json: arguments.json,
        style: arguments.detail.style(),
    })
}

//! `plumb restore`: restores the leftovers of killed plumb processes on this machine.

use clap::Args;
use plumb_report::Kind;
use plumb_report::document::restore::RestoreDocument;

use crate::arguments::output::PrintFormat;
use crate::exit::Exit;
use crate::leftovers::{self, Attempt};
use crate::terminal;

/// The arguments of `plumb restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// Only list what is left; nothing is changed
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    printed: PrintFormat,
}

/// Restores all leftovers, or lists them.
pub(crate) fn run(arguments: &RestoreArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Status)?;
    let attempt = if arguments.dry_run { Attempt::Look } else { Attempt::PutBack };
    let document = RestoreDocument {
        schema: RestoreDocument::SCHEMA,
        dry_run: arguments.dry_run,
        as_root: rustix::process::geteuid().is_root(),
        left: leftovers::all(attempt),
    };
    terminal::show_status(&document, format)?;
    Ok(leftovers::exit_of(&document.left))
}

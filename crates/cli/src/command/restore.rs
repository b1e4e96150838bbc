//! `plumb restore`: puts back what killed plumb processes left on this machine.

use clap::Args;
use serde::Serialize;

use crate::exit::Exit;
use crate::leftovers::{self, Attempt, Leftover, Outcome};
use crate::terminal;

/// The arguments of `plumb restore`.
#[derive(Debug, Args)]
#[command(
    after_help = "A killed plumb may leave settings of a comparison (policies, schedulers, caches, file systems), instances of the \
                  kernel's tracing, and block devices and sockets of its servers. What a living plumb holds is never touched. Root's \
                  leftovers take root.\n\nExit codes: 0 nothing is left, 1 something is left (--dry-run), 4 something is in use and \
                  stays, 5 something could not be put back."
)]
pub(crate) struct RestoreArguments {
    /// Only list what is left; nothing is changed
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    dry_run: bool,
    as_root: bool,
    left: &'a [Leftover],
}

/// Puts back everything, or lists it.
pub(crate) fn run(arguments: &RestoreArguments) -> anyhow::Result<Exit> {
    let attempt = if arguments.dry_run { Attempt::Look } else { Attempt::PutBack };
    let left = leftovers::all(attempt);
    let as_root = rustix::process::geteuid().is_root();
    if arguments.json {
        let dry_run = arguments.dry_run;
        terminal::print_json(&Document { schema: "plumb/restore/1", dry_run, as_root, left: &left })?;
    } else {
        terminal::print(&text(&left, as_root))?;
    }
    Ok(leftovers::exit_of(&left))
}

fn text(left: &[Leftover], as_root: bool) -> String {
    let line = |left: &Leftover| {
        let outcome = match left.outcome {
            Outcome::Left => "left",
            Outcome::PutBack => "put back",
            Outcome::InUse => "in use",
            Outcome::Failed => "FAILED",
        };
        format!("{outcome:8}  {}{}\n", left.words(), left.reason())
    };
    let mut text: String = left.iter().map(line).collect();
    if left.is_empty() {
        text.push_str("nothing is left of a killed plumb\n");
    }
    if !as_root {
        text.push_str("not looked for without root: policies of disks, tracing, block devices\n");
    }
    text
}

//! `plumb prove trace`: the files that a program syncs, and its operations without a sync.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use clap::Args;
use plumb_prove::proof::{TracePlace, trace_program};
use plumb_report::Kind;
use plumb_report::document::power::TraceStates;

use crate::arguments::output::PrintFormat;
use crate::exit::Exit;
use crate::{stop, terminal};

/// Arguments of `plumb prove trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Look at files beneath this directory; default: the one where the program starts
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "fail_fsync")]
    beneath: Option<PathBuf>,
    /// Start the program in an empty ext4 file system on a simulated drive whose first write of file data
    /// fails, so that an fsync fails as on a broken drive: see whether the program ignores that, or tries
    /// again and believes it (takes root)
    #[arg(long)]
    fail_fsync: bool,
    /// Explore the states that a power cut may leave on a file system that promises only POSIX, and compare
    /// each with the files that the program had made visible. Its end with exit status 0 is an
    /// acknowledgement. What is in the directory is read into memory
    #[arg(long, conflicts_with = "fail_fsync")]
    explore: bool,
    #[command(flatten)]
    printed: PrintFormat,
    /// The program and its arguments. What it writes to stdout goes to stderr
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Traces the program, and prints its operations without a sync.
pub(crate) fn run(arguments: &TraceArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Status)?;
    let stop = stop::on_signals()?;
    let here = std::env::current_dir().context("cannot find the current directory")?;
    let root = arguments.beneath.as_deref().unwrap_or(&here);
    let place = match (arguments.fail_fsync, arguments.explore) {
        (true, _) => TracePlace::FailingDrive,
        (_, true) => TracePlace::Explored(root),
        _ => TracePlace::Beneath(root),
    };
    let document = trace_program(&arguments.command, place, &stop)?;
    terminal::show_status(&document, format)?;
    let has_failing = |states: &TraceStates| states.failing > 0;
    if !document.findings.is_empty() || document.states.as_ref().is_some_and(has_failing) {
        return Ok(Exit::Finding);
    }
    if document.states.as_ref().is_some_and(|states| states.incomplete_because.is_some()) {
        return Ok(Exit::NOT_MEASURED);
    }
    if stop.load(Ordering::Acquire) || document.failed_writes == Some(0) || !document.not_seen.is_empty() {
        return Ok(Exit::NOT_MEASURED);
    }
    // On a failing drive, a program is right to end with an error.
    if !document.succeeded && !arguments.fail_fsync {
        terminal::say("plumb: the program failed, so this trace does not show what it does when it succeeds");
        return Ok(Exit::NOT_MEASURED);
    }
    Ok(Exit::Done)
}

//! `plumb prove trace`: which files a program syncs, and what it leaves unsynced.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_block::Bytes;
use plumb_linux::child::{self, Limits};
use plumb_prove::proof::traced_states;
use plumb_prove::session::{follow, followed};
use plumb_prove::trace::{TraceDocument, TraceStates, Tracer};
use plumb_report::Kind;
use plumb_report::document::power::TraceShown;
use plumb_report::status::Read;

use super::failing_drive;
use crate::arguments::output::PrintFormat;
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// Memory that the files of the directory and what is written to them may take where states are explored.
const RECORDING_MAX: Bytes = Bytes::mib(512);
/// Time limit of exploring the states.
const EXPLORING_MAX: Duration = Duration::from_secs(60);

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

/// Traces the program, and prints what it leaves unsynced.
pub(crate) fn run(arguments: TraceArguments) -> anyhow::Result<Exit> {
    let format = arguments.printed.format(Kind::Status)?;
    let stop = stop::on_signals()?;
    let mut document = if arguments.fail_fsync {
        failing_drive::with(&|place| {
            let tracer = Tracer::start(place, Vec::new(), None)?;
            traced(&arguments.command, tracer, Some(place), &stop)
        })?
    } else {
        let here = std::env::current_dir().context("cannot find the current directory")?;
        let root = arguments.beneath.as_deref().unwrap_or(&here);
        let tracer = match arguments.explore {
            true => follow(root, RECORDING_MAX)?,
            false => Tracer::start(root, Vec::new(), None)?,
        };
        traced(&arguments.command, tracer, None, &stop)?
    };
    document.command = arguments.command;
    terminal::show_status(&Read::<TraceShown>::new(&document)?, format)?;
    let has_failing = |states: &TraceStates| states.failing > 0;
    if !document.findings.is_empty() || document.states.as_ref().is_some_and(has_failing) {
        return Ok(Exit::Finding);
    }
    if document.states.as_ref().is_some_and(|states| states.incomplete_because.is_some()) {
        return Ok(Exit::NotMeasured);
    }
    if stop.load(Ordering::Acquire) || document.failed_writes == Some(0) || !document.not_seen.is_empty() {
        return Ok(Exit::NotMeasured);
    }
    // On a drive that fails, a program that ends with an error does what it should.
    if !document.succeeded && !arguments.fail_fsync {
        terminal::say("plumb: the program failed, so this trace does not show what it does when it succeeds");
        return Ok(Exit::NotMeasured);
    }
    Ok(Exit::Done)
}

/// Runs the program to its end, in `directory` if one is given, and audits what it does.
fn traced(
    typed: &[String],
    tracer: Tracer,
    directory: Option<&Path>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<TraceDocument> {
    let (program, rest) = typed.split_first().context("no program was given")?;
    let mut command = Command::new(program);
    command.args(rest);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    // A group of its own does not get what the terminal reads, but can be ended as a whole.
    let stdin = if std::io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
    let mut command = tracer.command(&command);
    command.stdin(stdin).stdout(std::io::stderr());
    let limits = Limits { timeout: None, stop: &[stop], grace: Duration::ZERO, kills_leftovers: false };
    let status = child::run(command, Vec::new(), limits).context("cannot run strace")?.status;
    let (traced, work) = followed(tracer, status.success())?;
    if !traced.is_started && !status.success() {
        let problem = format!("`{program}` could not be started under strace, which ended with {status}");
        return Err(Refusal::new(Exit::NotMeasured, problem).into());
    }
    let document = TraceDocument::new(&traced, status.success());
    let states = work.map(|work| traced_states(&work, stop, EXPLORING_MAX)).transpose()?;
    Ok(TraceDocument { ended: status.to_string(), states, ..document })
}

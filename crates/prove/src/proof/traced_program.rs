//! A program of the user's traced to its end, where it is or over a drive that fails.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_block::{Bytes, Nanos, RealClock};
use plumb_linux::child::{self, Limits};
use plumb_report::document::power::TraceDocument;

use super::failing_drive;
use super::traced_states::traced_states;
use crate::error::{Error, ErrorKind, Result, cannot};
use crate::session::{follow, followed};
use crate::trace::{Tracer, document_of};

/// Memory that the files of the directory and what is written to them may take where states are explored.
const RECORDING_MAX: Bytes = Bytes::mib(512);
/// Time limit of exploring the states.
const EXPLORING_MAX: Nanos = Nanos::secs(60);

/// Place of a program that is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracePlace<'a> {
    /// The current directory. What the program does beneath the given one counts.
    Beneath(&'a Path),
    /// The current directory, as for [`Beneath`](Self::Beneath); the states that a power cut may leave are
    /// explored.
    Explored(&'a Path),
    /// An empty ext4 file system on a simulated drive whose first write of file data fails.
    FailingDrive,
}

/// Runs a program with its arguments to its end, and audits what it does. Its stdout goes to stderr.
///
/// # Errors
/// If it cannot be started or traced, or states could not be judged at all.
pub fn trace_program(
    argv: &[String],
    place: TracePlace<'_>,
    stop: &Arc<AtomicBool>,
) -> Result<TraceDocument> {
    match place {
        TracePlace::Beneath(root) => traced(argv, Tracer::start(root, Vec::new(), None)?, None, stop),
        TracePlace::Explored(root) => traced(argv, follow(root, RECORDING_MAX)?, None, stop),
        TracePlace::FailingDrive => failing_drive::run(&|place| {
            traced(argv, Tracer::start(place, Vec::new(), None)?, Some(place), stop)
        }),
    }
}

/// Runs the program, in `directory` if one is given.
fn traced(
    argv: &[String],
    tracer: Tracer,
    directory: Option<&Path>,
    stop: &Arc<AtomicBool>,
) -> Result<TraceDocument> {
    let (program, rest) = argv.split_first().ok_or_else(|| Error::usage("no program was given"))?;
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
    let status = child::run(command, Vec::new(), limits).map_err(cannot("run strace"))?.status;
    let (traced, work) = followed(tracer, status.success())?;
    if !traced.is_started && !status.success() {
        let problem = format!("`{program}` could not be started under strace, which ended with {status}");
        return Err(Error::new(ErrorKind::NotMeasured, problem));
    }
    let explored = |work| traced_states(&work, stop, &RealClock::start(), EXPLORING_MAX);
    let states = work.map(explored).transpose()?;
    let document = document_of(&traced, status.success());
    Ok(TraceDocument { ended: status.to_string(), states, command: argv.to_vec(), ..document })
}

//! Program of the user traced to its end, in the current directory or on a failing drive.

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

/// Maximum memory for the files of the directory and the data written to them while states are explored.
const RECORDING_MAX: Bytes = Bytes::mib(512);
/// Time limit for the exploration of the states.
const EXPLORING_MAX: Nanos = Nanos::secs(60);

/// Place in which a program is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracePlace<'a> {
    /// Current directory. Operations below the given directory count.
    Beneath(&'a Path),
    /// Current directory, as for [`Beneath`](Self::Beneath), with exploration of the states that a power cut
    /// may leave.
    Explored(&'a Path),
    /// Empty ext4 file system on a simulated drive whose first write of file data fails.
    FailingDrive,
}

/// Runs a program to its end, and audits its operations. Its stdout goes to stderr.
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

/// Runs the program, in `directory` if that is given.
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
    // A separate process group cannot read the terminal, but can be ended as a whole.
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

//! A subject recorded while strace(1) tells of the system calls of its program, and sync calls are made in its place.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use plumb_block::Nanos;

use super::{RecordOptions, Recorded, record, work_recorded};
use crate::error::{ErrorKind, Result};
use crate::recording::Event;
use crate::subject::{AckBy, Program, Subject};
use crate::trace::{Injection, Traced, Tracer, candidates, lane};

/// Records the work of `subject`, which `program` does in a process of its own, with its system calls. Where they cannot be had
/// it is recorded without them, and says why.
///
/// # Errors
/// As [`record`].
pub fn record_with_calls(
    subject: &dyn Subject,
    program: &Program,
    options: &RecordOptions,
    stop: &AtomicBool,
) -> Result<Recorded> {
    match record_traced(subject, program, &[], options, stop) {
        Err(error) if error.kind == ErrorKind::NotTraced => {
            let untraced_because = Some(error.to_string());
            Ok(Recorded { untraced_because, ..record(subject, options, stop)? })
        }
        traced => traced.map(|(recorded, _)| recorded),
    }
}

/// The same with sync calls that the program does not make, and its system calls as they were traced.
pub(crate) fn record_traced(
    subject: &dyn Subject,
    program: &Program,
    injections: &[Injection],
    options: &RecordOptions,
    stop: &AtomicBool,
) -> Result<(Recorded, Traced)> {
    let trace = Trace { line: &program.line, injections };
    let (mut recorded, traced) = work_recorded(subject, options, Some(trace), stop)?;
    let began = recorded.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into();
    recorded.calls = lane(&traced, began);
    let events = recorded.recording.events.iter();
    let acknowledged = events.filter(|(_, event)| matches!(event, Event::Acknowledged(_)));
    let acknowledged: Vec<Nanos> = acknowledged.map(|(at, _)| at.saturating_add(began)).collect();
    recorded.missing_syncs = candidates(&traced, &acknowledged);
    Ok((recorded, traced))
}

/// The work of a program under strace.
pub(super) struct Trace<'a> {
    line: &'a str,
    injections: &'a [Injection],
}

impl Trace<'_> {
    /// Gets ready for the work at a place.
    pub(super) fn begin(&self, place: &Path) -> Result<Tracer> {
        Tracer::start(place, self.injections.to_vec())
    }

    /// The program, with strace before it.
    pub(super) fn program(&self, tracer: &Tracer) -> Program {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(self.line);
        let traced = tracer.command(&shell);
        let words = std::iter::once(traced.get_program()).chain(traced.get_args());
        // As every sh(1) takes it: not all know the $'...' of a word that is shown to people.
        let quoted = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
        let line = format!("exec {}", quoted.collect::<Vec<_>>().join(" "));
        Program { line, ack: AckBy::ControlFile }
    }
}

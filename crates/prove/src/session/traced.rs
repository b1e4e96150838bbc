//! A subject recorded while strace(1) tells of the system calls of its program, and sync calls are made in its place.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use plumb_block::{Nanos, in_one_line};

use super::{RecordOptions, Recorded, SessionError, record};
use crate::recording::Event;
use crate::subject::{AckBy, Outcome, Program, Subject, SubjectError};
use crate::trace::{Injection, TraceOptions, Traced, Tracer, candidates, lane};

/// Records the work of `subject`, which `program` does in a process of its own, with its system calls. Where they cannot be had
/// it is recorded without them, and says why.
///
/// # Errors
/// As [`record`].
pub fn record_with_calls(
    subject: &Arc<dyn Subject>,
    program: &Program,
    options: &RecordOptions,
    stop: &AtomicBool,
) -> Result<Recorded, SessionError> {
    match record_traced(subject, program, Vec::new(), options, stop) {
        Err(SessionError::NotTraced(error)) => {
            let untraced_because = Some(in_one_line(&error));
            Ok(Recorded { untraced_because, ..record(&**subject, options, stop)? })
        }
        traced => traced.map(|(recorded, _)| recorded),
    }
}

/// The same with sync calls that the program does not make, and its system calls as they were traced.
pub(crate) fn record_traced(
    subject: &Arc<dyn Subject>,
    program: &Program,
    injections: Vec<Injection>,
    options: &RecordOptions,
    stop: &AtomicBool,
) -> Result<(Recorded, Traced), SessionError> {
    let (inner, line) = (Arc::clone(subject), program.line.clone());
    let held = UnderStrace { inner, line, injections, tracer: Mutex::new(None) };
    let recorded = record(&held, options, stop);
    let tracer = held.tracer.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (traced, root) = match tracer {
        Some((tracer, root)) => (tracer.finish()?, root),
        None => (Traced::default(), PathBuf::new()),
    };
    let mut recorded = recorded.map_err(|error| match error {
        // The first call of all starts the program.
        SessionError::Subject(error) if traced.calls.is_empty() => SessionError::NotTraced(error),
        other => other,
    })?;
    let began = recorded.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into();
    recorded.calls = lane(&traced.calls, &root, began);
    let events = recorded.recording.events.iter();
    let acknowledged = events.filter(|(_, event)| matches!(event, Event::Acknowledged(_)));
    let acknowledged: Vec<Nanos> = acknowledged.map(|(at, _)| at.saturating_add(began)).collect();
    recorded.missing_syncs = candidates(&traced.calls, &root, &acknowledged);
    Ok((recorded, traced))
}

/// A subject whose work a program does under strace.
struct UnderStrace {
    inner: Arc<dyn Subject>,
    line: String,
    injections: Vec<Injection>,
    /// Once it is known where the work will be done.
    tracer: Mutex<Option<(Tracer, PathBuf)>>,
}

impl UnderStrace {
    fn failed(&self, what: &dyn std::error::Error) -> SubjectError {
        SubjectError { subject: self.inner.name(), what: in_one_line(what) }
    }
}

impl Subject for UnderStrace {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn set_up(&self, place: &Path) -> Result<(), SubjectError> {
        self.inner.set_up(place)?;
        let root = place.canonicalize().map_err(|error| self.failed(&error))?;
        let options = TraceOptions {
            root: root.clone(),
            injections: self.injections.clone(),
            began: SystemTime::UNIX_EPOCH,
        };
        let tracer = Tracer::start(options).map_err(|error| self.failed(&error))?;
        *self.tracer.lock().unwrap_or_else(PoisonError::into_inner) = Some((tracer, root));
        Ok(())
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<(), SubjectError> {
        self.inner.work(place, acknowledge)
    }

    /// The program, with strace before it.
    fn program(&self) -> Option<Program> {
        let tracer = self.tracer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&self.line);
        let traced = tracer.as_ref().map(|(tracer, _)| tracer.command(&shell))?;
        let words = std::iter::once(traced.get_program()).chain(traced.get_args());
        // As every sh(1) takes it: not all know the $'...' of a word that is shown to people.
        let quoted = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
        Some(Program {
            line: format!("exec {}", quoted.collect::<Vec<_>>().join(" ")),
            ack: AckBy::ControlFile,
        })
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome, SubjectError> {
        self.inner.check(place, required)
    }
}

//! A subject recorded while strace(1) tells of the system calls of its program, and sync calls are made in
//! its place.

use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;

use super::posix::record_system_calls;
use super::recorded::{RecordOptions, RecordedWork};
use super::recording_run::{record, work_recorded};
use super::strace::Trace;
use crate::error::{ErrorKind, Result};
use crate::recording::Event;
use crate::subject::{Program, Subject};
use crate::trace::{TracedCalls, candidates, lane, sync_calls, syncs_before_changes};

/// Records the work of `subject`, which `program` does in a process of its own, with its system calls. Where
/// these cannot be traced, it records the work without them and says why.
///
/// # Errors
/// As [`record`].
pub fn record_with_calls(
    subject: &dyn Subject,
    program: &Program,
    options: &RecordOptions,
    stop: &AtomicBool,
) -> Result<RecordedWork> {
    match record_traced(subject, Trace::new(program), options, stop) {
        Err(error)
            if error.kind == ErrorKind::NotTraced
                && !options.file_system.is_posix()
                && !subject.is_judged_by_its_files() =>
        {
            let untraced_because = Some(error.to_string());
            Ok(RecordedWork { untraced_because, ..record(subject, options, stop)? })
        }
        traced => traced.map(|(recorded, _)| recorded),
    }
}

/// Records the work with its system calls, with sync calls that the program does not make, and with the
/// writeback of choice. Returns the calls as traced, too.
///
/// # Errors
/// As [`record`], and if the calls cannot be traced.
pub(crate) fn record_traced(
    subject: &dyn Subject,
    trace: Trace<'_>,
    options: &RecordOptions,
    stop: &AtomicBool,
) -> Result<(RecordedWork, TracedCalls)> {
    let (mut recorded, traced) = match options.file_system.is_posix() {
        true => record_system_calls(subject, options, trace, stop)?,
        false => work_recorded(subject, options, Some(trace), stop)?,
    };
    let began = recorded.began;
    recorded.calls = lane(&traced, began);
    let events = recorded.recording.events.iter();
    let acknowledged = events.filter(|(_, event)| matches!(event, Event::Acknowledged(_)));
    let acknowledged: Vec<Nanos> = acknowledged.map(|(at, _)| at.saturating_add(began)).collect();
    recorded.missing_syncs = candidates(&traced, &acknowledged);
    recorded.syncs = syncs_before_changes(&traced);
    recorded.sync_calls = sync_calls(&traced);
    Ok((recorded, traced))
}

//! Recording of a subject with the system calls of its program from strace(1), and sync calls made on its
//! behalf.

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

/// Records the work of `subject`, which `program` does in a separate process, with its system calls. If these
/// cannot be traced, records the work without them and states the reason.
///
/// # Errors
/// Those of [`record`].
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

/// Records the work with its system calls, with additional sync calls, and with the chosen writeback. Also
/// returns the traced calls.
///
/// # Errors
/// Those of [`record`], and a failure to trace the calls.
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

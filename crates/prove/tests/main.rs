//! Integration tests of the crate.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agreement;
mod bars;
mod held;
#[path = "../../crash/tests/rules/history.rs"]
mod history;
mod injected;
mod judged;
mod known_roles;
mod log_writes;
mod mounted;
mod posix_model;
mod proved;
mod recorded;
mod session;
mod smaller;
mod traced;
mod windows;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Nanos};
use plumb_crash::Promise;
use plumb_prove::ErrorKind;
use plumb_prove::explore::{Explorer, Limits};
use plumb_prove::file_system::{FileSystem, FileSystemOptions};
use plumb_prove::recording::Recording;
use plumb_prove::session::{RecordOptions, RecordedWork, record};
use plumb_prove::subject::Subject;
use plumb_report::document::proof::RecordingFacts;

/// Options of a recording on a drive that is large enough for the file system.
fn record_options(file_system: FileSystem, directory: &Path) -> RecordOptions {
    RecordOptions {
        file_system_options: FileSystemOptions::default(),
        size: Bytes::mib(file_system.size_min_mib().max(64)),
        logical_block: Bytes(512),
        file_system,
        directory: directory.to_owned(),
        timeout: Nanos::secs(60),
        cache: None,
        power: None,
    }
}

/// Records a subject; `None` if that is impossible here.
fn recorded_on(file_system: FileSystem, subject: &dyn Subject, directory: &Path) -> Option<RecordedWork> {
    match record(subject, &record_options(file_system, directory), &AtomicBool::new(false)) {
        Err(error) if error.kind == ErrorKind::NotMeasured => {
            plumb_testkit::skip(&error.to_string());
            None
        }
        recorded => Some(recorded.unwrap()),
    }
}

/// Returns a recording that is work as a whole, made through loop and acknowledged through the control file.
fn recorded_whole(recording: Recording) -> RecordedWork {
    RecordedWork {
        from: 0,
        until: recording.events.len(),
        recording: Arc::new(recording),
        facts: RecordingFacts {
            acknowledged_by: Some("control-file".to_owned()),
            attached_by: "loop".to_owned(),
            ..RecordingFacts::default()
        },
        began: Nanos::ZERO,
        is_cut: false,
        ended_because: None,
        calls: Vec::new(),
        untraced_because: None,
        cache: None,
        file_system_options: FileSystemOptions::default(),
        missing_syncs: Vec::new(),
        syncs: Vec::new(),
        layout: None,
        moments: None,
        sync_calls: Vec::new(),
        unseen: Vec::new(),
        seen_in_part: Vec::new(),
        notes: Vec::new(),
    }
}

/// Returns the explorer of a whole recording, for an honest drive with a volatile cache, with the usual
/// limits.
fn explorer(recording: &Recording) -> Explorer<'_> {
    Explorer {
        recording,
        from: 0,
        until: usize::MAX,
        promise: Promise::VOLATILE,
        further: &[],
        limits: Limits::default(),
        seed: 1,
    }
}

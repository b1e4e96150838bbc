//! The recorder and the explorer, from outside.

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

use std::sync::Arc;
use std::time::SystemTime;

use plumb_crash::Promise;
use plumb_prove::explore::{Explorer, Limits};
use plumb_prove::recording::Recording;
use plumb_prove::session::RecordedWork;
use plumb_report::document::proof::RecordingFacts;

/// A recording all of which is work, through loop and acknowledged through the control file.
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
        began: SystemTime::UNIX_EPOCH,
        is_cut: false,
        ended_because: None,
        calls: Vec::new(),
        untraced_because: None,
        cache: None,
        file_system_options: plumb_prove::file_system::FileSystemOptions::default(),
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

/// An honest drive with a volatile cache, all of the recording, and the usual limits.
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

//! Trial of a change: its limits, its step in words, and the verified change.

use plumb_block::Nanos;
use plumb_report::document::proof::{Change, ChangeKind, VerifiedBy};

use crate::explore::Limits;

/// Time limit of the search for device flushes, and minimum time for the search for sync calls. The changes
/// verified within it are reported.
pub(super) const LOOK_MAX: Nanos = Nanos::secs(60);
/// Limits of the exploration of a changed recording: each window in part, since one failure is explored many
/// times.
pub(super) const LIMITS: Limits = Limits { pieces: 6, commands: 6, states: 3_000, visits: 0 };

/// Returns the description of the step that tries a change.
pub(super) fn trying(change: &str) -> String {
    format!("trying {change}")
}

/// Returns a change with which none of `explored` states fails.
pub(super) const fn verified(kind: ChangeKind, sentence: String, explored: u64) -> Change {
    let verified_by = match kind {
        ChangeKind::DeviceFlush => VerifiedBy::SameRecording,
        ChangeKind::SyncCall => VerifiedBy::NewRun,
    };
    Change { kind, sentence, verified_by, explored, failing_after: 0 }
}

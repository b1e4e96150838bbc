//! The trial of a change: its limits, its step in words, and the change that it verified.

use plumb_block::Nanos;
use plumb_report::document::proof::{Change, ChangeKind, VerifiedBy};

use crate::explore::Limits;

/// Time limit of looking for device flushes, and the least that looking for sync calls has. What was verified
/// until then is what is told.
pub(super) const LOOK_MAX: Nanos = Nanos::secs(60);
/// Bounds of the exploration of a changed recording: each window in part, for one failure is explored many
/// times.
pub(super) const LIMITS: Limits = Limits { pieces: 6, commands: 6, states: 3_000, visits: 0 };

/// Returns the step of trying a change, in words.
pub(super) fn trying(change: &str) -> String {
    format!("trying {change}")
}

/// Returns a change with which none of so many states fails.
pub(super) const fn verified(kind: ChangeKind, sentence: String, explored: u64) -> Change {
    let verified_by = match kind {
        ChangeKind::DeviceFlush => VerifiedBy::SameRecording,
        ChangeKind::SyncCall => VerifiedBy::NewRun,
    };
    Change { kind, sentence, verified_by, explored, failing_after: 0 }
}

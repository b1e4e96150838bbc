//! The trial of a change: its limits, its step in words, and the change that it verified.

use plumb_report::document::proof::{Change, ChangeKind, FailureClass, VerifiedBy};

use crate::explore::Limits;
use crate::judge::JudgeResult;

/// Bounds of the exploration of a changed recording: each window in part, for one failure is explored many
/// times.
pub(super) const LIMITS: Limits = Limits { pieces: 6, commands: 6, states: 3_000 };

/// Returns the step of trying a change, in words.
pub(super) fn trying(change: &str) -> String {
    format!("trying {change}")
}

/// Returns a change after which no state fails as `class`, with what was explored of it.
pub(super) fn verified(kind: ChangeKind, what: &str, class: FailureClass, judged: &JudgeResult) -> Change {
    let failing = judged.counts.failing;
    let rest = match failing {
        0 => String::new(),
        _ => format!(" (no state is {} then; {failing} fail in another way)", class.name()),
    };
    Change {
        kind,
        sentence: format!("{what}{rest}"),
        verified_by: match kind {
            ChangeKind::DeviceFlush => VerifiedBy::SameRecording,
            ChangeKind::SyncCall => VerifiedBy::NewRun,
        },
        explored: judged.counts.distinct,
        failing_after: failing,
    }
}

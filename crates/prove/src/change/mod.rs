//! What to change so that what fails does not: a sync call of the program, or a flush of the device. Each change is verified
//! by exploring, and the two kinds are never mixed.
//!
//! - *Sync call*: the program runs again and makes that call; what is recorded then is explored. Preferred, since it is
//!   what a program can do.
//! - *Device flush*: a flush is put into the recording where the writes had completed; what a cut may leave is then a part of
//!   what it might leave before.
//! - *Flushes left out*: where nothing fails, what becomes of it without any of the recorded flushes.

mod device_flush;
mod left_out;
mod sync_call;

use plumb_report::document::ProofDocument;
use plumb_report::document::proof::{Change, ChangeKind, FailureClass, VerifiedBy};

use crate::error::Result;
use crate::explore::Limits;
use crate::judge::Judged;
use crate::proof::{Request, Watch};

/// How far a changed recording is explored: each window in part, many times for one failure.
const LIMITS: Limits = Limits { pieces: 6, commands: 6, states: 3_000 };

/// Puts into the document what can be changed.
pub(crate) fn put_changes(
    request: &Request<'_>,
    document: &mut ProofDocument,
    watch: Watch<'_>,
) -> Result<()> {
    if document.failures.is_empty() {
        document.flushes = left_out::left_out(request, watch)?;
        return Ok(());
    }
    if let Some(how) = request.again {
        sync_call::put(request, how, document, watch)?;
    }
    for failure in &mut document.failures {
        // Beneath a cache the drives are flushed as the cache needs it, and no program can change that.
        if failure.change.is_none() && request.judge.recorded.cache.is_none() && !request.is_over() {
            failure.change = device_flush::smallest(request, failure, watch)?;
        }
    }
    Ok(())
}

/// What is being done, in words.
fn trying(change: &str) -> String {
    format!("trying {change}")
}

/// A change after which no state fails as `class`, as it was explored.
fn verified(kind: ChangeKind, what: &str, class: FailureClass, judged: &Judged) -> Change {
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

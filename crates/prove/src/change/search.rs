//! The search for changes: sync calls first, flushes of the device for what is left, or the flushes that may
//! go.

use plumb_report::document::ProofDocument;

use super::{device_flush, left_out, sync_call};
use crate::error::Result;
use crate::proof::{Request, Watch};

/// Puts into the document the changes that were found.
pub(crate) fn put_changes(
    request: &Request<'_>,
    document: &mut ProofDocument,
    watch: Watch<'_>,
) -> Result<()> {
    if document.failures.is_empty() && request.judge.recorded.layout.is_some() {
        return Ok(());
    }
    if document.failures.is_empty() {
        document.flushes = left_out::left_out(request, watch)?;
        return Ok(());
    }
    if let Some(how) = request.again {
        sync_call::put(request, how, document, watch)?;
    }
    let recorded = request.judge.recorded;
    let has_other_drive = recorded.cache.is_some() || recorded.layout.is_some();
    for failure in &mut document.failures {
        // Beneath a cache the drives are flushed as the cache needs it, and no program can change that. The
        // POSIX model has no drive.
        if failure.change.is_none() && !has_other_drive && !request.is_over() {
            failure.change = device_flush::smallest(request, failure, watch)?;
        }
    }
    Ok(())
}

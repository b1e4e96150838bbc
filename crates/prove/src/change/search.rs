//! Search for changes: sync calls first, then device flushes for the remaining failures; without failures,
//! the removable flushes.

use plumb_report::document::ProofDocument;

use super::settings::settings;
use super::{device_flush, left_out, sync_call};
use crate::error::Result;
use crate::proof::Request;

/// Adds the changes found to the document.
pub(crate) fn put_changes(request: &Request<'_>, document: &mut ProofDocument) -> Result<()> {
    if document.failures.is_empty() && request.judge.recorded.layout.is_some() {
        return Ok(());
    }
    if document.failures.is_empty() {
        document.flushes = left_out::explore_without_flushes(request)?;
        return Ok(());
    }
    let mut found = match request.again {
        Some(how) => sync_call::smallest(request, how, &mut document.notes)?,
        None => {
            Err("no sync call was tried: the program cannot be run again with its system calls traced"
                .to_owned())
        }
    };
    let recorded = request.judge.recorded;
    // Below a cache the drives are flushed as the cache needs it, which no program can change. The POSIX
    // model has no drive.
    let has_other_drive = recorded.cache.is_some() || recorded.layout.is_some();
    if let Err(why) = &found
        && !has_other_drive
        && !request.is_over()
    {
        let flushes = device_flush::smallest(request, &document.failures)?;
        found = flushes.ok_or_else(|| format!("{why}; no flush of the drive removes it either"));
    }
    for failure in &mut document.failures {
        match &found {
            Ok(change) => failure.change = Some(change.clone()),
            Err(why) => failure.change_unknown_because = Some(why.clone()),
        }
    }
    document.notes.extend(settings(&document.failures, recorded));
    Ok(())
}

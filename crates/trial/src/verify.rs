//! Reading back of all written data, past the page cache where possible.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Clock, Device, Error};
use plumb_linux::{FileOptions, pagecache};
use plumb_load::{Ledger, flush, read_back};
use plumb_measure::VerifyResult;
use plumb_targets::TargetKind;

use crate::error::TrialError;
use crate::targets::JobTarget;

/// Result of reading back a target.
pub(crate) struct ReadBackResult {
    /// Totals, including the blocks read while the load ran.
    pub(crate) verified: VerifyResult,
    /// True if everything was read back.
    pub(crate) whole: bool,
}

/// Reads back the writes of one worker on `one`.
///
/// # Errors
/// If the target can no longer be read.
pub(crate) fn verify(
    one: &JobTarget,
    mut ledger: Ledger,
    clock: &Arc<dyn Clock>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<ReadBackResult, TrialError> {
    let failed = |source| TrialError::Unfit { target: one.opened.shown.clone(), source };
    // A connection that was lost and restored while nothing was in flight is detected only by a flush.
    if one.opened.kind == TargetKind::Network && flush(&*one.opened.device, 1).is_err() {
        ledger.lose_power();
    }
    let device = past_the_cache(one, clock).map_err(|error| failed(error.into()))?;
    let begun = clock.now();
    let whole = read_back(&*device, &mut ledger, stop, progress).map_err(failed)?;
    let read_back_time = clock.now().since(begun);
    Ok(ReadBackResult { verified: VerifyResult { read_back_time, ..ledger.into_verified() }, whole })
}

/// Returns the target opened past the page cache, so that not the writer's own memory is compared. If that is
/// impossible, or the length of blocks differs there, returns it as opened, after writing it back and
/// dropping clean pages.
///
/// # Errors
/// If dirty data cannot be written back.
fn past_the_cache(one: &JobTarget, clock: &Arc<dyn Clock>) -> plumb_block::Result<Arc<dyn Device>> {
    let options = FileOptions::read_direct();
    match one.opened.open_again(options, Arc::clone(clock)) {
        Ok(device) if device.info().logical_block == one.opened.device.info().logical_block => Ok(device),
        _ => {
            if let Some(file) = one.opened.path().and_then(|path| File::open(path).ok()) {
                file.sync_data()
                    .map_err(|error| Error::io(&error, "write back", one.opened.shown.as_str()))?;
                // Data that remains in the page cache is compared nevertheless.
                drop(pagecache::drop_clean(&file, Bytes(0), one.opened.size, &one.opened.shown));
            }
            Ok(Arc::clone(&one.opened.device))
        }
    }
}

/// Returns the note on blocks that were not compared with the last acknowledged version.
pub(crate) fn note(found: &VerifyResult) -> Option<String> {
    let VerifyResult { at_risk, older, unreached, .. } = *found;
    let mut said = Vec::new();
    if at_risk + older > 0 {
        said.push(format!(
            "power or connection was lost, or a flush failed: of {} blocks that were acknowledged but not \
             yet durable, {older} do not hold the last version, which is not an error of the storage; \
             blocks that were durable before must hold what was written",
            at_risk + older
        ));
    }
    if unreached > 0 {
        said.push(format!(
            "{unreached} blocks could not be read back, because the device no longer answers: nothing is \
             known about them"
        ));
    }
    (!said.is_empty()).then(|| format!("verification: {}", said.join("; ")))
}

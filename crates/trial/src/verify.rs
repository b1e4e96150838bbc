//! Reading back all that was written, past the page cache where that is possible.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Clock, Device};
use plumb_linux::{Access, Caching, EngineChoice, FileOptions, pagecache};
use plumb_load::{Ledger, Verified, read_back};

use crate::error::TrialError;
use crate::targets::Use;

/// What reading back a target found.
pub(crate) struct Found {
    /// In all, what was read while the load ran included.
    pub(crate) verified: Verified,
    /// Whether all of it was read back.
    pub(crate) whole: bool,
}

/// Reads back what one worker wrote on `one`.
///
/// # Errors
/// If the target cannot be read any more.
pub(crate) fn verify(
    one: &Use,
    mut ledger: Ledger,
    clock: &Arc<dyn Clock>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<Found, TrialError> {
    let device = past_the_cache(one, clock);
    let failed = |source| TrialError::Unfit { target: one.opened.shown.clone(), source };
    let whole = read_back(&*device, &mut ledger, stop, progress).map_err(failed)?;
    Ok(Found { verified: ledger.into_verified(), whole })
}

/// The target past the page cache, so that not the writer's own memory is compared. Where that cannot be, or blocks
/// are counted in another length there, as it was opened, with nothing clean left in the page cache.
fn past_the_cache(one: &Use, clock: &Arc<dyn Clock>) -> Arc<dyn Device> {
    let options = FileOptions::new(Access::ReadOnly, Caching::Direct).engine(EngineChoice::Auto);
    match one.opened.open_again(options, Arc::clone(clock)) {
        Ok(device) if device.info().logical_block == one.opened.device.info().logical_block => device,
        _ => {
            if let Some(file) = one.opened.path().and_then(|path| File::open(path).ok()) {
                // What stays in the page cache is compared all the same.
                drop(pagecache::drop_clean(&file, Bytes(0), one.opened.size, &one.opened.shown));
            }
            Arc::clone(&one.opened.device)
        }
    }
}

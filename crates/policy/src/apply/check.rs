//! Whether a disk is still what the plan was made for.

use crate::plan::PlannedChange;
use crate::view::{DeviceView, Holder, Refusal};

/// How much of a disk must be as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All that counts: nothing was done to it yet.
    Everything,
    /// Who it is and what stands on it: its cache was being changed when that was cut off.
    AllButTheCache,
}

/// Refuses a disk that has become another one, or has changed in what a plan rests on.
pub(super) fn unchanged(change: &PlannedChange, now: &DeviceView, extent: Extent) -> Result<(), Refusal> {
    let again = || "look at it with `plumb policy show`, and make a plan anew".to_owned();
    let refuse = |reason: String| Err(Refusal { reason, remedy: again() });
    let found = now.identity.as_deref().unwrap_or("none");
    if found != change.identity {
        return refuse(format!("the disk {} was planned, and {found} has that name now", change.identity));
    }
    let (before, after) = (names(&change.holders), names(&now.holders));
    if before != after {
        return refuse(format!("what stands on it has changed since the plan: {before} before, {after} now"));
    }
    if extent == Extent::AllButTheCache {
        return Ok(());
    }
    if now.device != change.device {
        return refuse(format!(
            "its settings have changed since the plan: write cache {} before, {} now",
            word(change.device.wce),
            word(now.device.wce)
        ));
    }
    if now.kernel != change.kernel {
        return refuse(format!(
            "the kernel's view of it has changed since the plan: {} before, {} now",
            change.kernel.write_cache.as_deref().unwrap_or("nothing"),
            now.kernel.write_cache.as_deref().unwrap_or("nothing")
        ));
    }
    Ok(())
}

/// Names alone: what a layer believes may change by a change below it.
fn names(holders: &[Holder]) -> String {
    let mut names: Vec<&str> = holders.iter().map(|holder| holder.name.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

const fn word(wce: Option<bool>) -> &'static str {
    match wce {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    }
}

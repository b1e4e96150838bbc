//! The limit of open files of this process (`RLIMIT_NOFILE`, getrlimit(2)).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to `needed`, as far as the hard limit lets. Returns the limit that holds then; `None` if
/// there is none.
pub fn raise(needed: u64) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    let raised = limit.maximum.map_or(needed, |maximum| needed.min(maximum)).max(current);
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
        Ok(()) => Some(raised),
        Err(_) => Some(current),
    }
}

//! Values that hold where a word is not said.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{Access, Caching, Division, EngineChoice, Opening, Sequential, Stop, Walk};

/// The block of most file systems and databases.
pub(super) const BLOCK: Bytes = Bytes::kib(4);
/// Long enough that a second of trouble does not decide, short enough to wait for.
pub(super) const STOP: Stop = Stop::after(Nanos::secs(30));
/// Past the page cache: the target is what is measured, not memory.
pub(super) const OPENING: Opening = Opening::DIRECT;

/// Returns the number of requests in flight: of a trace enough that its times can be kept, where there can be
/// more than one.
pub(super) fn depth(has_trace: bool, opening: Opening) -> u32 {
    let is_serial = opening.caching == Caching::Mapped || opening.engine == EngineChoice::Synchronous;
    if has_trace && !is_serial { 64 } else { 1 }
}

/// Returns when it is over; a trace ends by itself.
pub(super) fn stop(has_trace: bool) -> Stop {
    if has_trace { Stop::default() } else { STOP }
}

/// Returns each worker on a part of its own, unless they are to walk together.
pub(super) const fn division(access: &Access) -> Division {
    match access {
        Access::Sequential(Sequential { walk: Walk::Interlocked, .. }) => Division::Overlap,
        Access::Sequential(_) | Access::Random(_) => Division::Parts,
    }
}

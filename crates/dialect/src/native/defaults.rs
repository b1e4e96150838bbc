//! Defaults of words.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{Access, Caching, Division, EngineChoice, Opening, Sequential, Stop, Walk};

/// Block size of most file systems and databases.
pub(super) const BLOCK: Bytes = Bytes::kib(4);
/// Long enough to average out one second of disturbance, short enough to wait for.
pub(super) const STOP: Stop = Stop::after(Nanos::secs(30));
/// Without the page cache, so that the target is measured and not memory.
pub(super) const OPENING: Opening = Opening::DIRECT;

/// Returns the default depth: for a trace enough to keep its times, if the opening allows more than one
/// request.
pub(super) fn depth(has_trace: bool, opening: Opening) -> u32 {
    let is_serial = opening.caching == Caching::Mapped || opening.engine == EngineChoice::Synchronous;
    if has_trace && !is_serial { 64 } else { 1 }
}

/// Returns the default end. A trace ends by itself.
pub(super) fn stop(has_trace: bool) -> Stop {
    if has_trace { Stop::default() } else { STOP }
}

/// Returns the default division: a separate part for each worker, unless they share a sequential walk.
pub(super) const fn division(access: &Access) -> Division {
    match access {
        Access::Sequential(Sequential { walk: Walk::Interlocked, .. }) => Division::Overlap,
        Access::Sequential(_) | Access::Random(_) => Division::Parts,
    }
}

//! Front end of a drive: link, queue, write cache. It answers commands, and hands work to the mechanics.
//!
//! ```text
//!   Command ─► link ─► admitted ─┬─ read ──► in the cache? ──no──► mechanics ─► link ─► Completed
//!            (overhead,          ├─ write ─► cache ─► Completed, and later ─► mechanics ─► Persisted
//!             queue depth,       └─ flush ─► waits until all that it covers is out of the cache
//!             transfer)
//! ```
//!
//! Every write passes through the cache; the policy determines when it is answered:
//!
//! | cache | written to | answered | at risk |
//! |---|---|---|---|
//! | volatile, on | buffer | at once | until destaged |
//! | volatile, on, FUA | buffer | when destaged | no |
//! | off | buffer | when destaged | no |
//! | off, with a media cache | staging memory that outlives a cut | at once, stalls when full | no |
//! | protected (battery, capacitors) | buffer | at once, FUA as well | no |
//! | protected, battery dead, noticed | as off | | |
//! | protected, battery dead, unnoticed | buffer | at once, flush and FUA as well | until destaged: it lies |
//!
//! The cost of a flush is therefore not a parameter of the model: it results from the dirty data and the
//! mechanics.
//!
//! Simplifications: the contents of a media cache go directly to their final place, not to a log on the
//! platter first; restoring them after a power cut takes no time; destaged data is not kept for reads.

mod cache;
mod commands;
mod destage;
mod due;
mod emptying;
mod parameters;
mod policy;
mod slots;
#[cfg(test)]
mod tests;
mod timing;
mod waiters;

pub use parameters::{
    ControllerParameters, DestageOrder, MediaCacheParameters, MediaCacheUse, WriteCacheParameters,
};
pub use policy::Protection;
pub use timing::Controller;

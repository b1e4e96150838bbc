//! Several drives behind a network or a controller: stripes over columns, copies of each column.
//!
//! ```text
//!   command ─► pieces by stripe ─┬─ trip ─► member (any Timing) ─ trip ─┐
//!                                ├─ trip ─► member ...           ─ trip ─┼─► enough copies of each piece: Completed
//!                                └─ ...                                 ─┘   all copies out of their caches: Persisted
//! ```
//!
//! With a controller that has a write cache of its own, that stands in between, and the members have none
//! that a power cut would empty:
//!
//! ```text
//!   command ─ trip ─► Controller (the controller's link, queue, cache) ─Job─► Members ─► pieces, as above
//! ```
//!
//! Not modelled: members' volatile caches that a controller with a cache leaves on, two controllers that
//! mirror their caches, parity, rebuilding, and members that fail.

mod covering;
mod layout;
mod members;
mod network;
mod parameters;
mod pieces;
mod remote;
mod step;
mod timing;

pub use members::Members;
pub use parameters::{Acknowledge, ArrayController, Parameters};
pub use remote::Remote;
pub use timing::{ArrayTiming, MemberCaches};

//! Several drives behind a network or a controller: stripes over columns, and copies of each column.
//!
//! ```text
//!   command ─► pieces by stripe ─┬─ trip ─► member (any Timing) ─ trip ─┐
//!                                ├─ trip ─► member ...           ─ trip ─┼─► enough copies of each piece: Completed
//!                                └─ ...                                 ─┘   all copies out of their caches: Persisted
//! ```
//!
//! A controller with its own write cache is in between, and the members then have no caches that a power cut
//! would empty:
//!
//! ```text
//!   command ─ trip ─► Controller (the controller's link, queue, cache) ─Job─► Members ─► pieces by stripe
//! ```
//!
//! Not modelled: volatile member caches that a controller with a cache leaves enabled, two controllers with
//! mirrored caches, parity, rebuilds, and failing members.

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

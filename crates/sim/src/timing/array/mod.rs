//! Several drives behind a network or a controller: stripes over columns, copies of each column.
//!
//! ```text
//!   command ─► pieces by stripe ─┬─ trip ─► member (any Timing) ─ trip ─┐
//!                                ├─ trip ─► member ...           ─ trip ─┼─► enough copies of each piece: Completed
//!                                └─ ...                                 ─┘   all copies out of their caches: Persisted
//! ```
//!
//! Not modelled: a cache of the controller's own, parity, rebuilding, and members that fail.

mod covering;
mod layout;
mod parameters;
mod pieces;
mod timing;

pub use parameters::{Acknowledge, Parameters};
pub use timing::{ArrayTiming, MemberCaches};

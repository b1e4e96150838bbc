//! Drive models as data: files that describe drives, validated so that no value can cause harm.
//!
//! A model is a TOML file. Its figures have sources, `key = { value = "60us", source = "…" }`; a user's own
//! file may omit the source and write `key = "60us"`. The loader removes the sources for serde and keeps them
//! for display. Every value is checked against limits before anything is built from it, so no file can make a
//! simulated drive panic, overflow or run forever. Errors name file, line, field, value and the expected
//! value.
//!
//! ```text
//! name, kind, interface, cache_summary, description, sources     what the drive is
//! [geometry]                                                     what it reports about itself
//! [flash] | [mechanics] + [cache] | [array] | [null]             its parts, by kind
//! [behaviour], [behaviour.damage]                                its honesty
//! [faults]                                                       its spontaneous errors
//! ```

mod behaviour;
mod build;
mod change;
mod document;
mod error;
mod file;
mod geometry;
mod limits;
mod load;
mod quantity;
mod shipped;
mod typed;

pub use behaviour::{Behaviour, IgnoresFlush, Wce};
pub use change::Change;
pub use document::Figure;
pub use error::{ContentError, ModelError, TypedError};
pub use geometry::{Geometry, Interface, Kind};
pub use limits::{Check, Limits};
pub use load::{Model, Parameters};
pub use quantity::{Rate, Size, Time};
pub use typed::TypedModel;

//! Models of drives as data: what a file says of a drive, checked so that nothing in it can hurt.
//!
//! A model is a TOML file. Its figures are written with where they come from,
//! `key = { value = "60us", source = "…" }`; a user's own file may leave the source out and write
//! `key = "60us"`. The loader strips the sources for serde and keeps them for whoever shows the model. Every
//! value is held within limits before anything is built from it, so that no file makes a simulated drive
//! panic, overflow or run for ever; errors name file, line, field, value and what was expected.
//!
//! ```text
//! name, kind, interface, cache_summary, description, sources     what it is
//! [geometry]                                                     what it says of itself
//! [flash] | [mechanics] + [cache] | [array] | [null]             what it is made of, by kind
//! [behaviour], [behaviour.damage]                                how honest it is
//! [faults]                                                       which errors it makes by itself
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

//! The write path as data, and the rules that judge it.
//!
//! `survey` follows a target through mounts and devices and builds a [`WritePath`]; `rules` are pure functions over
//! that picture. Nothing here writes to anything.

pub mod finding;
pub mod model;

pub use finding::{Finding, Severity};
pub use model::{Cache, DurableAt, Evidence, Flush, Fua, Layer, LayerKind, Survey, WritePath};

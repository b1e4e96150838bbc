//! What a reader sees: the verdict rules and every output format.
//!
//! Everything here is a pure function of a recording; nothing asks a live device.

pub mod document;

pub use document::{CheckDocument, Environment};

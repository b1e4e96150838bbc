//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod array_controller;
mod conformance;
mod contents_determinism;
mod contents_file;
mod drive_said;
mod flash_array;
mod flash_contract;
mod flash_shape;
mod hdd;
mod kernel;
mod liar;
mod model_changes;
mod model_errors;
mod model_file;
mod model_shipped;

//! Integration tests of this crate: one program, linked once, with a scenario in each file and shared
//! helpers.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod diskspd;
mod fio_parity;
mod imported;
mod machine;
mod native;
mod sqlio;
mod streams;

use plumb_dialect::{Machine, ProcessorPlace};

use machine::machine;

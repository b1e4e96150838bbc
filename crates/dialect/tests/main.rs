//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.

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

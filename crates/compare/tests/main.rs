//! The tests of this crate. One program, so that it is linked once.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agreement;
mod series;
mod settings;

//! The tests of this crate from outside.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod failures;
mod merged;
mod thousand;
mod world;

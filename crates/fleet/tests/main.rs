//! Integration tests of this crate.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod failures;
mod merged;
mod thousand;
mod world;

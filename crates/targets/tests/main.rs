//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod beneath;
mod block_devices;
mod files;
mod medium;
mod real_signatures;
mod split;
mod support;

//! Integration tests of the crate, linked as one program: one scenario per file, and common code.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod beneath;
mod block_devices;
mod files;
mod medium;
mod real_signatures;
mod split;
mod support;

//! plumb's own words: what is typed, what is written, and that both are the same.
#![expect(clippy::unwrap_used, reason = "a test")]

mod arbitrary;
mod command_line;
mod file;
mod hostile;
mod round_trip;

//! Writers, witnesses and cuts of power, from outside.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod witnessed;

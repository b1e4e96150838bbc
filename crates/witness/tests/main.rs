//! Integration tests of writers, witnesses and power cuts.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod witnessed;

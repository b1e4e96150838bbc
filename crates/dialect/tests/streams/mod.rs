//! Requests at the device: each command line runs on devices that record all requests, and the tests check
//! the effect of its options on the stream.

mod crew;
mod diskspd;
mod fio;
mod recording;
mod sqlio;

use crate::machine;

/// Splits `typed` at spaces.
fn arguments(typed: &str) -> Vec<String> {
    typed.split_whitespace().map(str::to_owned).collect()
}

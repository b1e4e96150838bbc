//! Tests of what reaches the device: each command line is run on devices that keep every request, and what an
//! option promises is looked for in the stream of requests.

mod crew;
mod diskspd;
mod fio;
mod recording;
mod sqlio;

use crate::machine;

/// Splits at spaces.
fn arguments(typed: &str) -> Vec<String> {
    typed.split_whitespace().map(str::to_owned).collect()
}

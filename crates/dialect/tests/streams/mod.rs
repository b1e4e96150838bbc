//! What reaches the device: each command line is run on devices that keep every request, and what an option promises
//! is looked for in the stream of requests.

mod crew;
mod diskspd;
mod fio;
mod recording;
mod sqlio;

use plumb_dialect::Machine;

/// A machine of four processors.
fn machine() -> Machine {
    Machine {
        host: "box".to_owned(),
        processors: vec![0, 1, 2, 3],
        page_bytes: 4096,
        memory_bytes: 8 << 30,
        kernel: "Linux 6.12".to_owned(),
        uptime_ms: 123_456,
        started_at: "2026-01-31T12:00:05Z".to_owned(),
        started_unix: 1_769_860_805,
        version: "0.1.0".to_owned(),
        argv: vec!["plumb".to_owned()],
    }
}

/// Splits at spaces.
fn arguments(typed: &str) -> Vec<String> {
    typed.split_whitespace().map(str::to_owned).collect()
}

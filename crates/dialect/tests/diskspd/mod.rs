//! DiskSpd's command line, profiles and outputs as a user meets them.

pub(crate) mod changes;
mod fuzz;
mod negative;
mod outputs;
mod positive;
mod profiles;
mod results;
mod switches;

use std::io;

use plumb_dialect::diskspd::{self, Command, Invocation};
use plumb_dialect::{Error, Machine, Meaning};

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
        argv: vec!["plumb".to_owned(), "diskspd".to_owned(), "t".to_owned()],
    }
}

/// Splits at spaces.
fn arguments(typed: &str) -> Vec<String> {
    typed.split_whitespace().map(str::to_owned).collect()
}

/// No profile file exists.
fn no_file(path: &str) -> io::Result<String> {
    Err(io::Error::new(io::ErrorKind::NotFound, format!("no {path}")))
}

/// The run that `typed` asks for.
fn invocation(typed: &str) -> Result<Invocation, Error> {
    match diskspd::parse(&arguments(typed), &machine(), &no_file)? {
        Command::Run(invocation) => Ok(invocation),
        Command::Usage => Err(Error::new(typed, "usage")),
    }
}

/// What `typed` means.
fn meaning(typed: &str) -> Result<Meaning, Error> {
    invocation(typed)?.meaning(&machine())
}

//! DiskSpd's command line, profiles and outputs.

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
use plumb_dialect::{Error, Meaning};

use crate::machine;

/// Splits `typed` at spaces.
fn arguments(typed: &str) -> Vec<String> {
    typed.split_whitespace().map(str::to_owned).collect()
}

/// Fails to read any profile file.
fn no_file(path: &str) -> io::Result<String> {
    Err(io::Error::new(io::ErrorKind::NotFound, format!("no {path}")))
}

/// Parses the command line `typed` as a run.
fn invocation(typed: &str) -> Result<Invocation, Error> {
    match diskspd::parse(&arguments(typed), &machine(), &no_file)? {
        Command::Run(invocation) => Ok(invocation),
        Command::Usage => Err(Error::new(typed, "usage")),
    }
}

/// Translates the command line `typed`.
fn meaning(typed: &str) -> Result<Meaning, Error> {
    invocation(typed)?.meaning(&machine(), &|_| None)
}

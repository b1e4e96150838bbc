//! fio: its command line and job files in; JSON, json+, text and logs out; its traces.
//!
//! The way of a job file: [`command_line`] and [`job_file`] turn what was typed into sections of settings,
//! each with the place where it stands; [`meaning`] turns the sections into a
//! [`Scenario`](plumb_workload::Scenario). An option either changes the scenario or the output, or is said to
//! have no meaning here and why, or is refused: nothing is dropped in silence. Names come from
//! [`option_table`], so that a misspelt option is told apart from one that fio knows and plumb does not.
//!
//! Differences from fio that are meant: values that fio cuts short without a word (`1.5k` is 1 byte to it,
//! `7min` is 7 us) are refused; a fixed or Poisson rate is a schedule that does not wait for the device, and
//! `lat_ns` counts from it; writes carry stamped noise.

mod command_line;
mod expression;
mod import;
mod invocation;
mod job_file;
mod meaning;
mod option_table;
mod options;
mod output;
mod section;
mod split;
mod surroundings;
pub mod trace;
mod value;

pub(crate) use import::read_json_results;
pub use invocation::{Format, Invocation, LogKind, Logs, Output, ReportedJob};
pub use output::{LogFile, SteadyRound, command, json, json_text, log_names, logs, normal};
pub use surroundings::Surroundings;

use crate::{Error, Machine};

/// Text that `--help` prints.
pub const USAGE: &str = include_str!("usage.txt");

/// Text that `--version` prints, in the form that those who look for fio's expect.
pub const VERSION: &str = concat!("plumb-", env!("CARGO_PKG_VERSION"), "\n");

/// Translates a fio command line: `arguments` are those after `plumb fio`.
///
/// # Errors
/// Names the argument or `file:line` that cannot be taken, why, and what to do instead.
pub fn parse(
    arguments: &[String],
    machine: &Machine,
    surroundings: &Surroundings<'_>,
) -> Result<Invocation, Error> {
    let typed = command_line::read(arguments, machine, surroundings)?;
    meaning::invocation(&typed, machine, surroundings)
}

#[cfg(test)]
mod tests;

//! fio: parses its command line, job files and traces; formats results as JSON, json+, text and logs.
//!
//! [`command_line`] and [`job_file`] parse input into sections of settings, each with its position;
//! [`meaning`] translates the sections to a [`Scenario`](plumb_workload::Scenario). Each option affects the
//! scenario or the output, or is reported as having no effect, or is refused; none is silently ignored.
//! [`option_table`] lists all names, which distinguishes misspelt options from those that plumb does not
//! support.
//!
//! Intended differences from fio: values that fio silently truncates (`1.5k` as 1 byte, `7min` as 7 us) are
//! refused; a fixed or Poisson rate is a schedule independent of the device; writes contain stamped noise.

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

/// Text printed by `--help`.
pub const USAGE: &str = include_str!("usage.txt");

/// Text printed by `--version`, in fio's form for programs that parse it.
pub const VERSION: &str = concat!("plumb-", env!("CARGO_PKG_VERSION"), "\n");

/// Translates a fio command line, given the `arguments` after `plumb fio`.
///
/// # Errors
/// Names the argument or `file:line`, the reason and the remedy.
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

//! Parser for the command line of a single command.

use clap::{Args, Parser};

/// Words of one command.
#[derive(Debug, Parser)]
struct Line<T: Args> {
    #[command(flatten)]
    arguments: T,
}

/// Parses the words of a command, of which the first is its name.
///
/// # Errors
/// Returns the error of clap.
pub(crate) fn parse<T: Args>(words: impl IntoIterator<Item = String>) -> Result<T, clap::Error> {
    Line::try_parse_from(words).map(|line| line.arguments)
}

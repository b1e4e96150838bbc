//! Command line of one command, apart from the others.

use clap::{Args, Parser};

/// Words of one command.
#[derive(Debug, Parser)]
struct Line<T: Args> {
    #[command(flatten)]
    arguments: T,
}

/// Parses the words of one command; the first one is its name.
///
/// # Errors
/// As clap words them.
pub(crate) fn parse<T: Args>(words: impl IntoIterator<Item = String>) -> Result<T, clap::Error> {
    Line::try_parse_from(words).map(|line| line.arguments)
}

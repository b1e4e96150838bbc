//! Arguments of `plumb load`, and of the command lines of other programs.

use clap::Args;

use super::running::{Detail, OwnArguments};

/// Arguments of `plumb load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Run an application profile: NAME or NAME:VARIANT; --explain lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Explain the profile, its sources and its limits, and run nothing; without --profile, list all profiles
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) words: plumb_dialect::native::Words,

    #[command(flatten)]
    pub(crate) own: OwnArguments,

    #[command(flatten)]
    pub(crate) detail: Detail,
}

/// A command line of another program.
#[derive(Debug, Args)]
pub(crate) struct ForeignArguments {
    /// The arguments of that program, and plumb's own options, which --help lists
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

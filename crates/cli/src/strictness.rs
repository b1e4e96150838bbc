//! The option `--strict`: exit code of an unknown result (docs/OUTCOMES.md).

use clap::Args;

/// Exit code of the outcome NOT KNOWN.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(crate) struct Strictness {
    /// Exit with 3 where nothing can be said (the outcome NOT KNOWN), in place of 0
    #[arg(long)]
    pub(crate) strict: bool,
}

//! The options of every command that writes a file which the user names.

use std::path::Path;

use clap::Args;
use plumb_state::OutputFile;

/// Permission to write an output file over one that plumb did not write, for every command that has such a
/// file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(crate) struct OutputArguments {
    /// Replace an output file that exists, also one that plumb did not write
    #[arg(long)]
    pub(crate) overwrite: bool,
}

impl OutputArguments {
    /// Returns the output file at a path that was typed.
    pub(crate) const fn file(self, path: &Path) -> OutputFile<'_> {
        OutputFile { path, overwrite: self.overwrite }
    }
}

//! The options of every command that prints a document, or writes a file which the user names.

use std::path::Path;

use clap::Args;
use plumb_report::{Format, Kind};
use plumb_state::OutputFile;

use crate::exit::{Refusal, usage};

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
        OutputFile { path, overwrite: self.overwrite, in_recording: false }
    }
}

/// Format in which a result is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(crate) struct PrintFormat {
    /// Format of the result: text, html, markdown, json, csv or prometheus
    ///
    /// A command that lacks a format names those that it has.
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<Format>,

    /// Print one JSON document: the same as --format json
    #[arg(long)]
    pub(crate) json: bool,
}

impl PrintFormat {
    /// Returns the format that was typed, if one was.
    pub(crate) const fn typed(self) -> Option<Format> {
        if self.json { Some(Format::Json) } else { self.format }
    }

    /// Returns the format of a document of this kind, which is text unless another was typed.
    ///
    /// # Errors
    /// A usage error that names the formats that there are.
    pub(crate) fn format(self, kind: Kind) -> Result<Format, Refusal> {
        kind.check(self.typed().unwrap_or(Format::Terminal)).map_err(usage)
    }
}

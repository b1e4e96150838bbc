//! Options of commands that print a document or write a file named by the user.

use std::path::{Path, PathBuf};

use clap::Args;
use plumb_block::FailureKind;
use plumb_linux::descriptors::lacks;
use plumb_linux::inventory::is_one_file;
use plumb_report::{Format, Kind};
use plumb_state::OutputFile;

use crate::exit::{Refusal, usage};

/// Permission to write an output file over one that plumb did not write, for every command that has such a
/// file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub(crate) struct OutputArguments {
    /// Replace an output file that exists, also one that plumb did not write
    ///
    /// Never one that is in use, or that holds a file system, the log of a cache or the like.
    #[arg(long)]
    pub(crate) overwrite: bool,
}

impl OutputArguments {
    /// Returns the output files at the typed paths. Before anything runs, a command must list here all files
    /// that it `writes`, and all that it `reads` or measures.
    ///
    /// # Errors
    /// The errors of [`OutputFile::check`], and the refusal of a file that the command reads, is named twice,
    /// is in use, or has contents that no result may replace. Fails if a named standard descriptor was closed
    /// when plumb was started.
    pub(crate) fn each<'a>(
        self,
        writes: impl IntoIterator<Item = &'a Path>,
        reads: &[PathBuf],
    ) -> anyhow::Result<Vec<OutputFile<'a>>> {
        let mut replaced: Vec<PathBuf> = Vec::new();
        let mut files = Vec::new();
        for path in writes {
            let file = OutputFile { path, overwrite: self.overwrite };
            files.push(file);
            let is_closed = file.descriptor()?.is_some_and(lacks);
            anyhow::ensure!(!is_closed, "cannot write to {}: it is closed", path.display());
            let Some(place) = file.check()? else { continue };
            if self.overwrite && std::fs::metadata(&place).is_ok_and(|there| there.len() > 0) {
                plumb_targets::may_be_replaced(path)?;
            }
            let is_it = |other: &PathBuf| is_one_file(&place, other);
            let found = match (reads.iter().any(is_it), replaced.iter().any(is_it)) {
                (true, _) => "it is a file that this command reads or measures",
                (false, true) => "two results of this command would be written to it",
                (false, false) => {
                    replaced.push(place);
                    continue;
                }
            };
            let problem = format!("{}: {found}: name another file for the result", path.display());
            return Err(Refusal::new(FailureKind::Refused, problem).into());
        }
        Ok(files)
    }

    /// Returns the output file at the typed path, if there is one: see [`each`](Self::each).
    ///
    /// # Errors
    /// The errors of [`each`](Self::each).
    pub(crate) fn only<'a>(
        self,
        writes: Option<&'a PathBuf>,
        reads: &[PathBuf],
    ) -> anyhow::Result<Option<OutputFile<'a>>> {
        Ok(self.each(writes.map(PathBuf::as_path), reads)?.pop())
    }
}

/// Format in which a result is printed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct PrintFormat {
    /// Format of the result: text, html, markdown, json, csv or prometheus
    ///
    /// A command that lacks a format names those that it has.
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<String>,

    /// Print one JSON document: the same as --format json
    #[arg(long)]
    pub(crate) json: bool,
}

impl PrintFormat {
    /// Returns the format for a document of this kind; text unless another was typed.
    ///
    /// # Errors
    /// If the kind does not have the format; the message names its formats.
    pub(crate) fn format(&self, kind: Kind) -> Result<Format, Refusal> {
        let json = self.json.then_some(Format::Json.name());
        let typed = json.or(self.format.as_deref()).unwrap_or(Format::Terminal.name());
        kind.format(typed).map_err(usage)
    }
}

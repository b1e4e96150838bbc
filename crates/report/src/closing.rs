//! A run directory while what it records goes on, and its end: its document, the page of that, and how the
//! run ended.

use std::path::Path;

use plumb_block::in_one_line;
use plumb_measure::RunDirectory;
use serde::Serialize;

use crate::format::Format;
use crate::render::{RenderInput, render};
use crate::terminal::Style;

/// The run directory of what goes on also where it cannot be written: that is tried again, and the end says
/// what came of it.
#[derive(Debug)]
pub struct Record {
    /// None where nothing is kept.
    directory: Option<RunDirectory>,
    /// True if the last attempt failed.
    fails: bool,
}

impl Record {
    /// Creates a record for `directory`.
    pub const fn new(directory: Option<RunDirectory>) -> Self {
        Self { directory, fails: false }
    }

    /// Returns where it is; `None` if nothing is kept.
    pub fn path(&self) -> Option<&Path> {
        self.directory.as_ref().map(RunDirectory::path)
    }

    /// Returns [`path`](Self::path) as text, for readers of the document.
    pub fn shown(&self) -> Option<String> {
        Some(self.path()?.display().to_string())
    }

    /// Does `write`, if anything is kept. What is to be told at once if that fails and the attempt before did
    /// not.
    pub fn attempt(
        &mut self,
        write: impl FnOnce(&mut RunDirectory) -> plumb_measure::Result<()>,
    ) -> Option<String> {
        let failed = write(self.directory.as_mut()?).err();
        let failed_before = std::mem::replace(&mut self.fails, failed.is_some());
        let error = failed.filter(|_| !failed_before)?;
        Some(format!("{}; the measurement continues, and plumb tries again", in_one_line(&error)))
    }

    /// Returns the directory itself; `None` if nothing is kept.
    pub const fn directory(&mut self) -> Option<&mut RunDirectory> {
        self.directory.as_mut()
    }

    /// Gives it up: nothing was measured.
    ///
    /// # Errors
    /// The file system's.
    pub fn abandon(self) -> plumb_measure::Result<()> {
        self.directory.map_or(Ok(()), RunDirectory::abandon)
    }

    /// Writes `document` and its page, and closes the directory; `reason` says why the run is not whole.
    ///
    /// # Errors
    /// The file system's.
    pub fn close<'a, D: Serialize>(
        self,
        document: &'a D,
        reason: Option<String>,
        ended_at: String,
    ) -> plumb_measure::Result<()>
    where
        &'a D: Into<RenderInput<'a>>,
    {
        let Some(directory) = self.directory else { return Ok(()) };
        directory.write_result(document)?;
        // A page that cannot be made of a document can be made of it later, by `plumb report`.
        let page = render(document, Format::Html, Style::PLAIN).unwrap_or_default();
        directory.write_file(Format::Html.file_name(), page.as_bytes())?;
        directory.finish(reason, ended_at).map(drop)
    }
}

//! Run directory of an ongoing measurement, and its completion: the document, its page, and the way in which
//! the run ended.

use std::path::Path;

use plumb_block::in_one_line;
use plumb_measure::RunDirectory;
use serde::Serialize;

use crate::format::Format;
use crate::render::{RenderInput, render};
use crate::terminal::Style;

/// Run directory of an ongoing measurement, which continues if the directory cannot be written. Writes are
/// tried again, and the end reports the result.
#[derive(Debug)]
pub struct Record {
    /// Run directory; `None` if nothing is recorded.
    directory: Option<RunDirectory>,
    /// True if the last attempt failed.
    fails: bool,
}

impl Record {
    /// Creates a record for `directory`.
    pub const fn new(directory: Option<RunDirectory>) -> Self {
        Self { directory, fails: false }
    }

    /// Returns the path of the run directory; `None` if nothing is recorded.
    pub fn path(&self) -> Option<&Path> {
        self.directory.as_ref().map(RunDirectory::path)
    }

    /// Returns [`path`](Self::path) as text, for readers of the document.
    pub fn shown(&self) -> Option<String> {
        Some(self.path()?.display().to_string())
    }

    /// Calls `write` if there is a directory. Returns a message if that fails and the previous attempt did
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

    /// Returns the run directory; `None` if nothing is recorded.
    pub const fn directory(&mut self) -> Option<&mut RunDirectory> {
        self.directory.as_mut()
    }

    /// Removes the run directory, since nothing was measured.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn abandon(self) -> plumb_measure::Result<()> {
        self.directory.map_or(Ok(()), RunDirectory::abandon)
    }

    /// Writes `document` and its page, and closes the directory. `reason` is given if the run is not
    /// complete.
    ///
    /// # Errors
    /// Those of the file system.
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
        // Without its page the document is complete: `plumb report` can render it later.
        let page = render(document, Format::Html, Style::PLAIN).unwrap_or_default();
        directory.write_file(Format::Html.file_name(), page.as_bytes())?;
        directory.finish(reason, ended_at).map(drop)
    }
}

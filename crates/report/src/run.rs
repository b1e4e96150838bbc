//! A run directory of any kind, opened as what it is.

use std::path::Path;

use plumb_path::Finding;

use crate::document::{OpenError, RunRecording};
use crate::format::{Format, RenderError, Reportable};
use crate::recording::CheckRecording;
use crate::terminal::Style;

/// A recorded run.
#[derive(Debug, Clone)]
pub enum Run {
    /// Of `plumb check`.
    Check(Box<CheckRecording>),
    /// Of `plumb load`, or of a dialect.
    Load(Box<RunRecording>),
}

impl Run {
    /// The run that was recorded in `directory`; `None` if it ended before its first result.
    ///
    /// # Errors
    /// If the directory is not a run, or its result is of no known kind.
    pub fn open(directory: &Path) -> Result<Option<Self>, OpenError> {
        let Some(run) = RunRecording::open(directory)? else { return Ok(None) };
        Ok(match run.document.is_check() {
            true => CheckRecording::open(directory)?.map(|check| Self::Check(Box::new(check))),
            false => Some(Self::Load(Box::new(run))),
        })
    }

    fn recording(&self) -> &dyn Reportable {
        match self {
            Self::Check(check) => check.as_ref(),
            Self::Load(load) => load.as_ref(),
        }
    }
}

impl Reportable for Run {
    fn verdicts(&self) -> &[Finding] {
        self.recording().verdicts()
    }

    fn render(&self, format: Format, style: Style) -> Result<String, RenderError> {
        self.recording().render(format, style)
    }
}

//! A run directory of any kind, opened as what it is.

use std::path::Path;

use plumb_measure::run::Recording;
use plumb_path::Finding;
use serde::Deserialize;

use crate::document::CheckDocument;
use crate::format::{Format, RenderError, Reportable};
use crate::load::{LoadDocument, LoadRecording};
use crate::recording::CheckRecording;
use crate::terminal::Style;

/// A recorded run.
#[derive(Debug, Clone)]
pub enum Run {
    /// Of `plumb check`.
    Check(Box<CheckRecording>),
    /// Of `plumb load`, or of a dialect.
    Load(Box<LoadRecording>),
}

/// The part of a result that says which kind it is.
#[derive(Debug, Deserialize)]
struct Kind {
    schema: String,
}

/// A run directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It does not read as a run.
    #[error(transparent)]
    Unreadable(#[from] plumb_measure::Error),
    /// It is a run of a kind that this version cannot report.
    #[error(
        "{directory}: the result is a `{found}`: expected {} or {}; another version of plumb may know it",
        CheckDocument::SCHEMA,
        LoadDocument::SCHEMA
    )]
    UnknownKind {
        /// Where.
        directory: String,
        /// The schema that its result names.
        found: String,
    },
}

impl Run {
    /// The run that was recorded in `directory`; `None` if it ended before its first result.
    ///
    /// # Errors
    /// If the directory is not a run, or its result is of no known kind.
    pub fn open(directory: &Path) -> Result<Option<Self>, OpenError> {
        let recording = Recording::open(directory)?;
        let Some(kind) = recording.result::<Kind>()? else { return Ok(None) };
        Ok(match kind.schema.as_str() {
            CheckDocument::SCHEMA => {
                CheckRecording::of(&recording)?.map(|check| Self::Check(Box::new(check)))
            }
            LoadDocument::SCHEMA => LoadRecording::of(&recording)?.map(|load| Self::Load(Box::new(load))),
            _ => {
                return Err(OpenError::UnknownKind {
                    directory: directory.display().to_string(),
                    found: kind.schema,
                });
            }
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

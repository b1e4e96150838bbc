//! The JSON documents of a run.

use serde::Serialize;
use serde::de::Error as _;

use super::check::CheckDocument;
use super::recorded_check::RecordedCheck;
use super::run::RunDocument;

/// Run as the JSON document of its schema.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum JsonView<'a> {
    /// `plumb/check/1`.
    Check(Box<CheckDocument>),
    /// `plumb/load/1`.
    Load(&'a RunDocument),
}

/// Fields that identify the type of a document.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Kind {
    pub(super) schema: String,
    /// Present in every run document, and so in a check that contains one.
    spans: Option<serde::de::IgnoredAny>,
}

impl Kind {
    /// Returns true for a check recorded with its tables alone, before checks contained a run document.
    pub(super) fn is_of_tables(&self) -> bool {
        self.schema == CheckDocument::SCHEMA && self.spans.is_none()
    }
}

/// Returns the document as indented JSON, ending in a newline.
pub(crate) fn pretty(document: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}

impl RunDocument {
    /// Returns the JSON document of the run, according to its schema.
    pub fn as_json(&self) -> JsonView<'_> {
        match self.is_check() {
            true => JsonView::Check(Box::new(self.into())),
            false => JsonView::Load(self),
        }
    }

    /// Returns the document as indented JSON, ending in a newline.
    ///
    /// # Errors
    /// If a figure cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        pretty(&self.as_json())
    }

    /// Reads the document of a run.
    ///
    /// # Errors
    /// If it is not one.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        // Files are read as bytes too: reading a string would instantiate the code a second time for each
        // type.
        let kind = serde_json::from_slice::<Kind>(text.as_bytes())?;
        match kind.schema.as_str() {
            _ if kind.is_of_tables() => {
                serde_json::from_slice::<RecordedCheck>(text.as_bytes()).map(Self::from)
            }
            CheckDocument::SCHEMA | Self::SCHEMA => serde_json::from_slice(text.as_bytes()),
            other => Err(serde_json::Error::custom(format!("`{other}` is not a run"))),
        }
    }
}

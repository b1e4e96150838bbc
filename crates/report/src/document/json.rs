//! The JSON documents of a run.

use serde::Serialize;
use serde::de::Error as _;

use super::check::CheckDocument;
use super::recorded_check::RecordedCheck;
use super::run::RunDocument;

/// A run as the JSON document that its schema names.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum JsonView<'a> {
    /// `plumb/check/1`.
    Check(Box<CheckDocument>),
    /// `plumb/load/1`.
    Load(&'a RunDocument),
}

/// The part of a document that says which one it is.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Kind {
    pub(super) schema: String,
    /// Present in every run document, and so in a check since it holds one.
    spans: Option<serde::de::IgnoredAny>,
}

impl Kind {
    /// Returns true if it is a check that was recorded with its tables alone, before it held a run.
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
    /// Returns the JSON document that is written for the run: the one that its schema names.
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
    /// If it is not the document of a run.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        // Bytes, as which files are read too: text would need a second copy of the code for each type.
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

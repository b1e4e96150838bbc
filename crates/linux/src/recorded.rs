//! Answers of a machine as one JSON file, with its schema: what recorded trees and probes have in common.

use std::path::Path;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};

/// A recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// The file cannot be read.
    #[error("cannot read the recording {place}")]
    File {
        /// The file.
        place: String,
        /// Error that the system reported.
        source: std::io::Error,
    },
    /// The file holds something else.
    #[error("{place} is not a recording of this version: {what}; record it again")]
    Content {
        /// The file.
        place: String,
        /// Description of what was found and what was expected.
        what: String,
    },
}

impl RecordedError {
    pub(crate) fn content(file: &Path, what: &impl ToString) -> Self {
        Self::Content { place: file.display().to_string(), what: what.to_string() }
    }
}

#[derive(Deserialize)]
struct Kind {
    schema: String,
}

/// Reads the recording in `file`, which must be of this schema.
///
/// # Errors
/// [`RecordedError`] names the file and what is wrong with it.
pub fn load<T: DeserializeOwned>(file: &Path, schema: &str) -> Result<T, RecordedError> {
    let bytes = std::fs::read(file)
        .map_err(|source| RecordedError::File { place: file.display().to_string(), source })?;
    let parse = || -> serde_json::Result<T> {
        let found = serde_json::from_slice::<Kind>(&bytes)?.schema;
        if found != schema {
            let expected = format!("it has the schema `{found}`, expected `{schema}`");
            return Err(serde_json::Error::custom(expected));
        }
        serde_json::from_slice(&bytes)
    };
    parse().map_err(|error| RecordedError::content(file, &error))
}

/// Encodes a recording as JSON, one value a line, so that two recordings can be compared by eye.
///
/// # Errors
/// As the recording's own encoding.
pub fn encode(recording: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = Vec::new();
    let indented = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut json, indented);
    recording.serialize(&mut writer)?;
    json.push(b'\n');
    Ok(json)
}

//! Recorded answers of a machine in one JSON file with a schema: the common part of recorded trees and
//! probes.

use std::path::Path;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};

/// Error of an unusable recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// The file cannot be read.
    #[error("cannot read the recording {place}")]
    File {
        /// Path of the file.
        place: String,
        /// Error that the system reported.
        source: std::io::Error,
    },
    /// The file holds something other than a recording.
    #[error("{place} is not a recording of this version: {what}; record it again")]
    Content {
        /// Path of the file.
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

/// Loads the recording in `file`, which must have this schema.
///
/// # Errors
/// [`RecordedError`] names the file and the problem.
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

/// Encodes a recording as JSON, one value on each line, so that two recordings can be compared with diff.
///
/// # Errors
/// Fails as the serialization does.
pub fn encode(recording: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = Vec::new();
    let indented = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut writer = serde_json::Serializer::with_formatter(&mut json, indented);
    recording.serialize(&mut writer)?;
    json.push(b'\n');
    Ok(json)
}

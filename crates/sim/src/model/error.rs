//! Errors in a model, or in a request for one.

use std::path::PathBuf;

use plumb_block::Bytes;

use super::file::TEXT_MAX;

/// Error of obtaining a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// There is no shipped model of this name.
    #[error("no drive model is named `{typed}`{}: `plumb drive list` shows all; a file needs a `/` or ends in .toml",
        nearest.as_ref().map(|name| format!(", but `{name}` is")).unwrap_or_default())]
    Unknown {
        /// Text that was typed.
        typed: String,
        /// Similar name that was probably meant.
        nearest: Option<String>,
    },
    /// The file could not be read.
    #[error("cannot read the drive model {}", path.display())]
    Read {
        /// Path of the model.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The path is not a regular file.
    #[error("the drive model {} is {found}: name a regular file of at most {}", path.display(), TEXT_MAX)]
    NotAFile {
        /// Path that was named.
        path: PathBuf,
        /// Type of the file, `a directory`.
        found: &'static str,
    },
    /// The file is longer than any model, and was not read completely.
    #[error("the drive model {} is longer than {most}: a model is a TOML file of a few KiB, see `plumb drive show`", path.display())]
    TooLong {
        /// Path of the model.
        path: PathBuf,
        /// Maximum length.
        most: Bytes,
    },
    /// The contents do not describe a drive.
    #[error(transparent)]
    Content(#[from] Box<ContentError>),
}

/// An invalid value in a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", self.place(), self.complaint())]
pub struct ContentError {
    /// File, or name of the shipped model.
    pub file: String,
    /// Line number, from 1; 0 for typed values that are not in the file.
    pub line: usize,
    /// Path of the field, `flash.channels`; empty if the text is not TOML.
    pub field: String,
    /// Value as written.
    pub value: Option<String>,
    /// Description of what should stand there.
    pub expected: String,
}

impl ContentError {
    fn place(&self) -> String {
        match self.line {
            0 => format!("{} with a change", self.file),
            line => format!("{}:{line}", self.file),
        }
    }

    fn complaint(&self) -> String {
        match (&self.value, self.field.as_str()) {
            (_, "") => self.expected.clone(),
            (Some(value), field) => format!("{field} = {value}: {}", self.expected),
            (None, field) => format!("{field}: {}", self.expected),
        }
    }
}

/// Error for invalid text after `sim:`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` in `{typed}`: {expected}")]
pub struct TypedError {
    /// Complete typed text.
    pub typed: String,
    /// Invalid part.
    pub part: String,
    /// Description of what was expected.
    pub expected: String,
}

//! Errors in a model, or in how one was requested.

use std::path::PathBuf;

use plumb_block::Bytes;

use super::file::TEXT_MAX;

/// A model could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// No shipped model has this name.
    #[error("no drive model is named `{typed}`{}: `plumb drive list` shows all; a file needs a `/` or ends in .toml",
        nearest.as_ref().map(|name| format!(", but `{name}` is")).unwrap_or_default())]
    Unknown {
        /// Text that was typed.
        typed: String,
        /// The name that was probably meant.
        nearest: Option<String>,
    },
    /// The file could not be read.
    #[error("cannot read the drive model {}", path.display())]
    Read {
        /// Path of the model.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The path names something other than a regular file, which was not read.
    #[error("the drive model {} is {found}: name a regular file of at most {}", path.display(), TEXT_MAX)]
    NotAFile {
        /// Path that was named.
        path: PathBuf,
        /// Kind of what is there, `a directory`.
        found: &'static str,
    },
    /// The file is longer than any model, and was not read to its end.
    #[error("the drive model {} is longer than {most}: a model is a TOML file of a few KiB, see `plumb drive show`", path.display())]
    TooLong {
        /// Path of the model.
        path: PathBuf,
        /// The longest that is read.
        most: Bytes,
    },
    /// The file was read, but its content does not describe a drive.
    #[error(transparent)]
    Content(#[from] Box<ContentError>),
}

/// One thing in a model that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", self.place(), self.complaint())]
pub struct ContentError {
    /// The file, or the name of a shipped model.
    pub file: String,
    /// The line, from 1; 0 for what was typed and does not stand in the file.
    pub line: usize,
    /// The field with its tables, `flash.channels`; empty if the text is not TOML at all.
    pub field: String,
    /// Text that stands there, as written.
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

/// Error for text after `sim:` that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` in `{typed}`: {expected}")]
pub struct TypedError {
    /// All that was typed.
    pub typed: String,
    /// The part that is wrong.
    pub part: String,
    /// Description of what was expected.
    pub expected: String,
}

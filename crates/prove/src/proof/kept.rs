//! A recording in a file with what belongs to it, so that it can be explored again, here or elsewhere: a line
//! of JSON ([`Kept`] without the recording), then the recording as [`Recording::save`] writes it.

use std::io::{BufRead, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, cannot};
use crate::file_system::FileSystem;
use crate::recording::Recording;
use crate::session::Recorded;

/// A subject as it was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SubjectWords {
    /// One of plumb's own, by name.
    BuiltIn(String),
    /// Programs.
    Command {
        /// Command that prepares the place.
        setup: Option<String>,
        /// Command that does the work.
        run: String,
        /// Command that checks the result.
        check: String,
        /// How the work acknowledges.
        ack: String,
        /// User as whom the commands run; `None` for the user who runs plumb.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
}

/// Recording of a subject, and what is needed to judge it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    /// [`Kept::SCHEMA`].
    pub schema: String,
    /// The subject.
    pub subject: SubjectWords,
    /// File system of the subject.
    pub file_system: FileSystem,
    /// How long a check may take, in seconds.
    pub check_timeout: f64,
    /// Recorded work of the subject.
    #[serde(flatten)]
    pub recorded: Recorded,
}

impl Kept {
    /// The name of the first line.
    pub const SCHEMA: &str = "plumb/recorded-subject/1";

    /// Writes all of it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn save(&self, mut out: impl Write) -> Result<()> {
        let line = serde_json::to_string(self).map_err(std::io::Error::from);
        line.and_then(|line| writeln!(out, "{line}")).map_err(cannot("write the recording"))?;
        self.recorded.recording.save(out)
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If `from` cannot be read, or holds something else, less or more.
    pub fn load(mut from: impl BufRead) -> Result<Self> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line).map_err(cannot("read the recording"))?;
        let mut kept: Self = serde_json::from_slice(&line).map_err(|error| head(&error.to_string()))?;
        if kept.schema != Self::SCHEMA {
            return Err(head(&format!("schema {:?}, expected {:?}", kept.schema, Self::SCHEMA)));
        }
        if !(kept.check_timeout > 0.0 && kept.check_timeout < 1e9) {
            return Err(head(&format!("check_timeout {}", kept.check_timeout)));
        }
        let Recorded { recording, from: begin, until, .. } = &mut kept.recorded;
        *recording = Arc::new(Recording::load(from)?);
        let events = recording.events.len();
        if *begin > *until || *until > events {
            return Err(head(&format!("the work is events {begin} to {until} of {events}")));
        }
        Ok(kept)
    }
}

/// The first line is that of something else.
fn head(why: &str) -> Error {
    Error::usage(format!("the first line is not that of a recording that `plumb prove app` kept ({why})"))
}

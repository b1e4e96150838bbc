//! A recording in a file with what belongs to it, so that it can be explored again, here or elsewhere: a line of JSON
//! ([`Kept`] without the recording), then the recording as [`Recording::save`] writes it.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::SystemTime;

use plumb_report::document::proof::RecordingFacts;
use serde::{Deserialize, Serialize};

use crate::file_system::{FileSystem, FileSystemError};
use crate::recording::{FileError, Recording};
use crate::session::Recorded;

const SCHEMA: &str = "plumb/recorded-subject/1";

/// A subject as it was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SubjectWords {
    /// One of plumb's own, by name.
    BuiltIn(String),
    /// Programs.
    Command {
        /// What prepares the place.
        setup: Option<String>,
        /// What does the work.
        run: String,
        /// What checks.
        check: String,
        /// How the work acknowledges.
        ack: String,
    },
}

/// What was recorded of a subject, and what is needed to judge it.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The subject.
    pub subject: SubjectWords,
    /// Its file system.
    pub file_system: FileSystem,
    /// How long a check may take, in seconds.
    pub check_timeout: f64,
    /// What was recorded.
    pub recorded: Recorded,
}

/// Why a file holds no recorded subject.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The first line is that of something else.
    #[error("the first line is not that of a recording that `plumb prove app` kept ({0})")]
    Head(String),
    /// The recording cannot be read or written.
    #[error(transparent)]
    Recording(#[from] FileError),
}

#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
    subject: SubjectWords,
    file_system: String,
    check_timeout: f64,
    from: usize,
    until: usize,
    ended_because: Option<String>,
    facts: RecordingFacts,
}

impl Kept {
    /// Writes all of it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn save(&self, mut out: impl Write) -> Result<(), KeptError> {
        let Recorded { recording, from, until, facts, ended_because, .. } = &self.recorded;
        let head = Head {
            schema: SCHEMA.to_owned(),
            subject: self.subject.clone(),
            file_system: self.file_system.to_string(),
            check_timeout: self.check_timeout,
            from: *from,
            until: *until,
            ended_because: ended_because.clone(),
            facts: facts.clone(),
        };
        let line = serde_json::to_string(&head).map_err(|error| KeptError::Head(error.to_string()))?;
        writeln!(out, "{line}").map_err(FileError::from)?;
        Ok(recording.save(out)?)
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If `from` cannot be read, or holds something else, less or more.
    pub fn load(mut from: impl BufRead) -> Result<Self, KeptError> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line).map_err(FileError::from)?;
        let head: Head = serde_json::from_slice(&line).map_err(|error| KeptError::Head(error.to_string()))?;
        if head.schema != SCHEMA {
            return Err(KeptError::Head(format!("schema {:?}, expected {SCHEMA:?}", head.schema)));
        }
        if !(head.check_timeout > 0.0 && head.check_timeout < 1e9) {
            return Err(KeptError::Head(format!("check_timeout {}", head.check_timeout)));
        }
        let recording = Recording::load(from)?;
        if head.from > head.until || head.until > recording.events.len() {
            let events = recording.events.len();
            return Err(KeptError::Head(format!(
                "the work is events {} to {} of {events}",
                head.from, head.until
            )));
        }
        let recorded = Recorded {
            recording: Arc::new(recording),
            from: head.from,
            until: head.until,
            facts: head.facts,
            began: SystemTime::UNIX_EPOCH,
            ended_because: head.ended_because,
        };
        let Head { subject, file_system, check_timeout, .. } = head;
        let file_system =
            file_system.parse().map_err(|error: FileSystemError| KeptError::Head(error.to_string()))?;
        Ok(Self { subject, file_system, check_timeout, recorded })
    }
}

//! A recording in a file with what belongs to it, so that it can be explored again, here or elsewhere: a line
//! of JSON ([`KeptRecording`] without the recordings), a line with the moments of the program if it has any,
//! and the recording, as [`Recording::save`] writes them.

use std::io::{BufRead, Read as _, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, cannot};
use crate::file_system::FileSystem;
use crate::oracle::Moments;
use crate::posix::Layout;
use crate::recording::Recording;
use crate::session::RecordedWork;

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
        /// Command that checks the result; `None` for the comparison with the moments of the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check: Option<String>,
        /// Command that recovers what a cut has left before it is checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recover: Option<String>,
        /// Command whose output is compared; `None` for the files themselves.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<String>,
        /// How the work acknowledges.
        ack: String,
        /// User as whom the commands run; `None` for the user who runs plumb.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
}

/// Recording of a subject, and what is needed to judge it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptRecording {
    /// [`KeptRecording::SCHEMA`].
    pub schema: String,
    /// The subject.
    pub subject: SubjectWords,
    /// File system of the subject.
    pub file_system: FileSystem,
    /// Time that a check may take, in seconds.
    pub check_timeout: f64,
    /// Recorded work of the subject.
    #[serde(flatten)]
    pub recorded: RecordedWork,
}

/// First line of the file.
#[derive(Serialize)]
struct Head<'a> {
    #[serde(flatten)]
    kept: &'a KeptRecording,
    #[serde(skip_serializing_if = "Option::is_none")]
    moments: Option<KeptMoments>,
}

/// Moments of a program that was recorded on a drive. Their recording precedes that of the drive in the file.
#[derive(Serialize, Deserialize)]
struct KeptMoments {
    /// Length of the recording, in bytes.
    bytes: u64,
    layout: Layout,
    from: usize,
    until: usize,
}

impl KeptRecording {
    /// The name of the first line.
    pub const SCHEMA: &str = "plumb/recorded-subject/1";

    /// Writes all of it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn save(&self, mut out: impl Write) -> Result<()> {
        let mut first = Vec::new();
        let moments = self.recorded.moments.as_ref().filter(|_| self.recorded.layout.is_none());
        moments.map_or(Ok(()), |moments| moments.recording.save(&mut first))?;
        let moments = moments.map(|moments| KeptMoments {
            bytes: first.len() as u64,
            layout: moments.layout().clone(),
            from: moments.work.start,
            until: moments.work.end,
        });
        let line = serde_json::to_string(&Head { kept: self, moments }).map_err(std::io::Error::from);
        let written = line.and_then(|line| writeln!(out, "{line}")).and_then(|()| out.write_all(&first));
        written.map_err(cannot("write the recording"))?;
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
        let has_moments: HasMoments =
            serde_json::from_slice(&line).map_err(|error| head(&error.to_string()))?;
        if let Some(KeptMoments { bytes, layout, from: begin, until }) = has_moments.moments {
            let recording = Recording::load((&mut from).take(bytes))?;
            let is_within = begin <= until && until <= recording.events.len();
            let has_spots = recording.blocks() as usize <= layout.spots.len();
            if !is_within || !has_spots {
                return Err(head("the moments of the work are not those of its recording"));
            }
            kept.recorded.moments = Some(Arc::new(Moments::new(Arc::new(recording), layout, begin..until)));
        }
        let RecordedWork { recording, from: begin, until, .. } = &mut kept.recorded;
        *recording = Arc::new(Recording::load(from)?);
        let events = recording.events.len();
        if *begin > *until || *until > events {
            return Err(head(&format!("the work is events {begin} to {until} of {events}")));
        }
        if kept.recorded.layout.is_some() {
            kept.recorded = kept.recorded.with_moments();
        }
        Ok(kept)
    }
}

/// Part of the first line that tells of moments.
#[derive(Deserialize)]
struct HasMoments {
    #[serde(default)]
    moments: Option<KeptMoments>,
}

/// Returns the error for a first line that is not that of a recording.
fn head(why: &str) -> Error {
    Error::usage(format!("the first line is not that of a recording that `plumb prove app` kept ({why})"))
}

//! Recording stored in a file with everything needed to explore it again, here or on another machine: a line
//! of JSON ([`KeptRecording`] without the recordings), a line with the moments of the program if it has any,
//! and the recording in the format of [`Recording::save`].

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::Path;
use std::sync::Arc;

use plumb_block::Nanos;
use plumb_state::OutputFile;
use plumb_state::whole_file::{Lasting, Mode, replace_with};
use serde::{Deserialize, Serialize};

use super::subject_words::SubjectWords;
use crate::error::{Error, Result, cannot};
use crate::file_system::FileSystem;
use crate::oracle::Moments;
use crate::posix::Layout;
use crate::recording::Recording;
use crate::session::RecordedWork;

/// Recording of a subject, with everything needed to judge it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptRecording {
    /// Name and version of the document: [`KeptRecording::SCHEMA`].
    pub schema: String,
    /// Subject.
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

/// Header of the moments of a program that was recorded on a drive. The recording of the moments precedes
/// that of the drive.
#[derive(Serialize, Deserialize)]
struct KeptMoments {
    /// Length of the recording of the moments, in bytes.
    bytes: u64,
    layout: Layout,
    from: usize,
    until: usize,
}

impl KeptRecording {
    /// Name and version in the first line.
    pub const SCHEMA: &str = "plumb/recorded-subject/1";

    /// Creates the file content for a recorded subject whose checks may take `check_timeout` each.
    pub fn new(
        subject: SubjectWords,
        file_system: FileSystem,
        check_timeout: Nanos,
        recorded: RecordedWork,
    ) -> Self {
        let (schema, check_timeout) = (Self::SCHEMA.to_owned(), check_timeout.as_secs_f64());
        Self { schema, subject, file_system, check_timeout, recorded }
    }

    /// Reads a recording from the file `path`.
    ///
    /// # Errors
    /// A usage error if the file does not hold a recording.
    pub fn open(path: &Path) -> Result<Self> {
        let wrong = |why: &dyn std::fmt::Display| Error::usage(format!("{}: {why}", path.display()));
        let file = File::open(path).map_err(|error| wrong(&error))?;
        Self::load(BufReader::new(file)).map_err(|error| wrong(&error))
    }

    /// Writes the recording to an output file of the user.
    ///
    /// # Errors
    /// Those of [`OutputFile::write_with`].
    pub fn keep_in(&self, output: OutputFile<'_>) -> Result<()> {
        Ok(output.write_with(|file| self.save(file))?)
    }

    /// Writes the work in the format of dm-log-writes to an output file of the user.
    ///
    /// # Errors
    /// Those of [`keep_in`](Self::keep_in), and a usage error if the work was not recorded on one drive.
    pub fn keep_log_in(&self, output: OutputFile<'_>) -> Result<()> {
        let RecordedWork { recording, layout, until, .. } = &self.recorded;
        if layout.is_some() || !recording.further_drives.is_empty() {
            return Err(not_one_drive());
        }
        Ok(output.write_with(|file| recording.save_log_writes(*until, file))?)
    }

    /// Writes the recording to the file `path`, durably and atomically.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn keep(&self, path: &Path) -> Result<()> {
        let saved = replace_with(path, Mode::Kept, Lasting::Durable, |file| {
            let mut out = BufWriter::new(file);
            self.save(&mut out)?;
            out.flush().map_err(Error::from)
        });
        saved
            .map_err(|error| Error::failed(format!("cannot keep the recording in {}", path.display()), error))
    }

    /// Writes the recording.
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

    /// Reads a recording that [`save`](Self::save) has written.
    ///
    /// # Errors
    /// If `from` cannot be read, or holds anything else.
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

/// Part of the first line that tells whether moments follow.
#[derive(Deserialize)]
struct HasMoments {
    #[serde(default)]
    moments: Option<KeptMoments>,
}

/// Returns the error for a dm-log-writes log of a recording that is not of one drive.
pub fn not_one_drive() -> Error {
    Error::usage(
        "--keep-log-writes: a log is of one drive: choose ext4, xfs, btrfs, f2fs or none with --fs, and no \
         further drive or cache",
    )
}

/// Returns the error for an invalid first line.
fn head(why: &str) -> Error {
    Error::usage(format!("the first line is not that of a recording that `plumb prove app` kept ({why})"))
}

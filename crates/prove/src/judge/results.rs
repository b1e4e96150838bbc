//! Results of checks by state, and the file that stores them, so that an interrupted run can be resumed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Write as _};

use plumb_state::sealed_lines::{decode, encode};
use serde::{Deserialize, Serialize};

use super::parameters::Judge;
use crate::error::{Error, Result, cannot};
use crate::explore::State;
use crate::recording::Content;
use crate::subject::Outcome;

const SCHEMA: &str = "plumb/checks/2";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CheckResult {
    pub(super) outcome: Outcome,
    /// Blocks that the check read, among those that may differ between states.
    pub(super) read: Vec<(u64, Content)>,
    /// True if the check wrote to the drive on which the state was mounted.
    #[serde(default)]
    pub(super) wrote: bool,
}

/// Both halves of the hash of a state, and the required acknowledgement.
pub(super) type Key = ([u64; 2], Option<u64>);

pub(super) const fn key(state: &State<'_>) -> Key {
    let hash = state.hash();
    ([(hash >> 64) as u64, hash as u64], state.required())
}

#[derive(Default)]
pub(super) struct Results {
    known: HashMap<Key, CheckResult>,
    file: Option<File>,
}

/// Line of the file.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// First line: identifies the recording.
    Head {
        schema: String,
        /// SHA-256 of the recording.
        recording: String,
        subject: String,
        file_system: String,
    },
    Check(Key, CheckResult),
}

impl Results {
    /// Opens the judge's file of results and loads it. Returns no results if there is no file.
    pub(super) fn open(judge: &Judge<'_>) -> Result<Self> {
        let Some(path) = judge.results else { return Ok(Self::default()) };
        let io = cannot::<std::io::Error>(format!("keep the results of checks in {}", path.display()));
        let others = |why: String| {
            let place = path.display();
            Error::usage(format!("{place} {why}; give another file with --resume, or remove it"))
        };
        let head = Line::Head {
            schema: SCHEMA.to_owned(),
            recording: judge.recorded.recording.digest(),
            subject: judge.subject.name(),
            file_system: judge.file_system.to_string(),
        };
        let mut file = File::options().read(true).append(true).create(true).open(path).map_err(&io)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(&io)?;
        let decoded = decode(&bytes, |_, _: &Line| Ok(()));
        let decoded = decoded.map_err(|damage| others(format!("holds no results of checks ({damage})")))?;
        let mut lines = decoded.records.into_iter();
        match lines.next() {
            None if bytes.is_empty() => file.write_all(&line(&head).map_err(&io)?).map_err(&io)?,
            None => return Err(others("holds no results of checks".to_owned())),
            Some(found) if found == head => file.set_len(decoded.whole_bytes as u64).map_err(&io)?,
            Some(_) => {
                return Err(others("holds results of another recording, subject or file system".to_owned()));
            }
        }
        let known = lines.filter_map(|line| match line {
            Line::Check(key, checked) => Some((key, checked)),
            Line::Head { .. } => None,
        });
        Ok(Self { known: known.collect(), file: Some(file) })
    }

    pub(super) fn get(&self, key: &Key) -> Option<&CheckResult> {
        self.known.get(key)
    }

    /// Adds a result, also to the file.
    pub(super) fn add(&mut self, key: Key, checked: &CheckResult) -> std::result::Result<(), String> {
        if self.known.insert(key, checked.clone()).is_some() {
            return Ok(());
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = line(&Line::Check(key, checked.clone())).and_then(|line| file.write_all(&line));
        written.map_err(|error| format!("the results of checks cannot be kept: {error}"))
    }
}

fn line(line: &Line) -> std::io::Result<Vec<u8>> {
    Ok(encode(line)?)
}

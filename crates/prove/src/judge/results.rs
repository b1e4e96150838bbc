//! Results of checks by state, and a file that keeps them, so that a run that was ended can go on.
//!
//! The first line of the file says of what they are; then one line for each check. A line that was not written to its end is
//! cut off.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use plumb_report::document::proof::FailureClass;
use serde::{Deserialize, Serialize};

use super::{Judge, JudgeError};
use crate::recording::Content;
use crate::subject::Outcome;

const SCHEMA: &str = "plumb/checks/1";

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) outcome: Outcome,
    /// What it read, of the blocks that may differ between states.
    pub(super) read: Vec<(u64, Content)>,
}

/// The state, by its hash, and what had to be found in it.
pub(super) type Key = (u128, Option<u64>);

/// The results.
#[derive(Default)]
pub(super) struct Results {
    known: HashMap<Key, Checked>,
    file: Option<(PathBuf, File)>,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct Head {
    schema: String,
    /// The SHA-256 of the recording.
    recording: String,
    subject: String,
    file_system: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    /// In hexadecimal digits.
    state: String,
    required: Option<u64>,
    read: Vec<(u64, u32)>,
    class: Option<FailureClass>,
    words: String,
}

impl Results {
    /// Those that the judge keeps in a file, or none.
    pub(super) fn of(judge: &Judge<'_>) -> Result<Self, JudgeError> {
        let Some(path) = judge.results else { return Ok(Self::default()) };
        let head = Head {
            schema: SCHEMA.to_owned(),
            recording: judge.recording.digest(),
            subject: judge.subject.name(),
            file_system: judge.file_system.to_string(),
        };
        Self::open(path, &head).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                JudgeError::Results { path: path.to_owned(), why: error.to_string() }
            }
            _ => JudgeError::Io { path: path.to_owned(), source: error },
        })
    }

    fn open(path: &Path, head: &Head) -> io::Result<Self> {
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let (mut known, mut whole, mut text) = (HashMap::new(), 0, Vec::new());
        let mut reader = BufReader::new(&file);
        while reader.read_until(b'\n', &mut text)? > 0 && text.ends_with(b"\n") {
            if whole == 0 {
                let found = serde_json::from_slice::<Head>(&text)
                    .map_err(|_| invalid("holds no results of checks"))?;
                if found != *head {
                    return Err(invalid("holds results of another recording, subject or file system"));
                }
            } else {
                let line: Line = serde_json::from_slice(&text)
                    .map_err(|error| invalid(&format!("is damaged after {whole} bytes ({error})")))?;
                let (key, checked) =
                    line.taken().ok_or_else(|| invalid("names a state by something else than a hash"))?;
                known.insert(key, checked);
            }
            whole += text.len() as u64;
            text.clear();
        }
        if whole == 0 && !text.is_empty() {
            return Err(invalid("holds no results of checks"));
        }
        file.set_len(whole)?;
        (&file).seek(SeekFrom::End(0))?;
        let mut results = Self { known, file: Some((path.to_owned(), file)) };
        if whole == 0 {
            results.append(head)?;
        }
        Ok(results)
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Checked> {
        self.known.get(key)
    }

    /// Adds one, also to the file.
    pub(super) fn add(&mut self, key: Key, checked: &Checked) -> Result<(), String> {
        if self.known.insert(key, checked.clone()).is_some() {
            return Ok(());
        }
        let line = Line::of(key, checked);
        self.append(&line).map_err(|error| match &self.file {
            Some((path, _)) => format!("{}: {error}", path.display()),
            None => error.to_string(),
        })
    }

    fn append(&mut self, value: &impl Serialize) -> io::Result<()> {
        let Some((_, file)) = &mut self.file else { return Ok(()) };
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

impl Line {
    fn of((state, required): Key, checked: &Checked) -> Self {
        let (class, words) = match &checked.outcome {
            Outcome::Intact => (None, String::new()),
            Outcome::Failed { class, words } => (Some(*class), words.clone()),
        };
        let read = checked.read.iter().map(|(lba, content)| (*lba, content.0)).collect();
        Self { state: format!("{state:032x}"), required, read, class, words }
    }

    fn taken(self) -> Option<(Key, Checked)> {
        let outcome = match self.class {
            None => Outcome::Intact,
            Some(class) => Outcome::Failed { class, words: self.words },
        };
        let read = self.read.into_iter().map(|(lba, content)| (lba, Content(content))).collect();
        Some(((u128::from_str_radix(&self.state, 16).ok()?, self.required), Checked { outcome, read }))
    }
}

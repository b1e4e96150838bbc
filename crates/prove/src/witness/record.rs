//! The record of a witness: a directory with a few files for each run.
//!
//! ```text
//!   DIR/0123456789abcdef-0000.log     RUN-SEGMENT.log, a segment for each session of a witness with this run
//!       line 1   {"run": ...}         what of the run does not change, and when the witness heard of it
//!       line 2.. {"batch": ...}       as they were sent; each durable before it is confirmed
//!                {"verified": ...}    what a verification has found
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use plumb_linux::sealed_lines::{decode, encode};
use serde::{Deserialize, Serialize};

use super::{Batch, RunFacts, VerifyDocument, WitnessError};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Run {
        /// Seconds since 1970 by the clock of the witness; more if the run before it was heard of then.
        heard_at: u64,
        facts: RunFacts,
    },
    Batch(Batch),
    Verified(Box<VerifyDocument>),
}

/// All that is known of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What of it does not change.
    pub facts: RunFacts,
    /// When the witness first heard of it, in seconds since 1970.
    pub heard_at: u64,
    /// All batches, from number 1 on without a gap.
    pub batches: Vec<Batch>,
    /// The last verification.
    pub verified: Option<VerifyDocument>,
}

impl Record {
    /// A record without batches.
    pub fn new(facts: RunFacts) -> Self {
        Self { facts, heard_at: 0, batches: Vec::new(), verified: None }
    }

    /// The last batch that is durable; 0 before the first.
    pub fn confirmed(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.number)
    }

    /// The newest run in `directory` on this drive: of its identity if it has one, else of the target's name.
    ///
    /// # Errors
    /// If there is none, or what is recorded of it is damaged.
    pub fn newest(directory: &Path, target: &str, identity: Option<&str>) -> Result<Self, WitnessError> {
        let heads = heads(directory)?;
        let is_it = |facts: &RunFacts| match (identity, &facts.identity) {
            (Some(identity), Some(known)) => identity == known,
            (None, None) => target == facts.target,
            _ => false,
        };
        let newest = heads.iter().filter(|head| is_it(&head.facts)).max_by_key(|head| head.heard_at);
        let Some(newest) = newest else {
            let known: BTreeSet<&str> = heads.iter().map(|head| head.facts.drive()).collect();
            let known: Vec<&str> = known.into_iter().collect();
            let (drive, place) = (identity.unwrap_or(target), directory.display());
            let why = format!("{place} has no run on {drive}, but on: {}", known.join(", "));
            return Err(WitnessError::Refused(why));
        };
        let of_it = segments(directory)?.remove(&newest.facts.plan.name()).unwrap_or_default();
        let missing = || WitnessError::Refused(format!("run {} has vanished", newest.facts.plan.name()));
        Self::of_segments(of_it)?.ok_or_else(missing)
    }

    /// A run whose first line was never whole is none: it was not confirmed, so nothing was written.
    fn of_segments(segments: Vec<PathBuf>) -> Result<Option<Self>, WitnessError> {
        let mut record: Option<Self> = None;
        let mut batches = BTreeMap::new();
        for path in segments {
            let damaged = |what: String| WitnessError::Damaged { place: path.display().to_string(), what };
            let bytes = fs::read(&path).map_err(WitnessError::io("read", path.display()))?;
            let lines =
                decode::<Line>(&bytes, |_, _| Ok(())).map_err(|damage| damaged(damage.to_string()))?;
            for line in lines.records {
                match (line, &mut record) {
                    (Line::Run { heard_at, facts }, None) => {
                        record = Some(Self { heard_at, ..Self::new(facts) });
                    }
                    (Line::Run { facts, .. }, Some(record)) if record.facts == facts => {}
                    (Line::Batch(batch), Some(_)) => {
                        let twice = batches.insert(batch.number, batch.clone());
                        if twice.is_some_and(|other| other != batch) {
                            return Err(damaged(format!(
                                "batch {} is there twice, and not the same",
                                batch.number
                            )));
                        }
                    }
                    (Line::Verified(document), Some(record)) => record.verified = Some(*document),
                    _ => return Err(damaged("a line that does not belong to this run".to_owned())),
                }
            }
        }
        let Some(mut record) = record else { return Ok(None) };
        record.batches = batches.into_values().collect();
        let gap = record.batches.iter().zip(1..).find(|(batch, number)| batch.number != *number);
        match gap {
            Some((_, number)) => {
                let place = format!("run {}", record.facts.plan.name());
                Err(WitnessError::Damaged { place, what: format!("batch {number} is missing") })
            }
            None => Ok(Some(record)),
        }
    }
}

/// The segments of each run, in order.
fn segments(directory: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>, WitnessError> {
    let mut runs: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let failed = |error| WitnessError::io("read", directory.display())(error);
    let entries = match fs::read_dir(directory) {
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => return Ok(runs),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some((run, _)) = name.strip_suffix(".log").and_then(|name| name.split_once('-')) {
            runs.entry(run.to_owned()).or_default().push(path);
        }
    }
    runs.values_mut().for_each(|paths| paths.sort());
    Ok(runs)
}

/// What is known first of each run; no more is read of it.
fn heads(directory: &Path) -> Result<Vec<Record>, WitnessError> {
    let mut heads = Vec::new();
    for path in segments(directory)?.into_values().flatten() {
        let mut line = Vec::new();
        let read = File::open(&path).and_then(|file| BufReader::new(file).read_until(b'\n', &mut line));
        read.map_err(WitnessError::io("read", path.display()))?;
        // A damaged one is told of by whoever reads the whole run.
        let lines = decode::<Line>(&line, |_, _| Ok(())).map_or_else(|_| Vec::new(), |lines| lines.records);
        heads.extend(lines.into_iter().filter_map(|line| match line {
            Line::Run { heard_at, facts } => Some(Record { heard_at, ..Record::new(facts) }),
            _ => None,
        }));
    }
    Ok(heads)
}

/// A segment that is being written.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: File,
    /// The last batch of the run that is durable.
    confirmed: u64,
}

impl Segment {
    /// Begins a segment for a run in `directory`, which is made if it is not there. When this returns, the run is durable.
    ///
    /// # Errors
    /// If another run has this name, or the file system fails.
    pub fn begin(directory: &Path, facts: &RunFacts) -> Result<Self, WitnessError> {
        fs::create_dir_all(directory).map_err(WitnessError::io("make", directory.display()))?;
        let heads = heads(directory)?;
        let of_it = segments(directory)?.remove(&facts.plan.name()).unwrap_or_default();
        let known = Record::of_segments(of_it)?;
        if known.as_ref().is_some_and(|known| known.facts != *facts) {
            return Err(WitnessError::Refused(format!("there is another run {}", facts.plan.name())));
        }
        let (path, file) = Self::create(directory, &facts.plan.name())?;
        let confirmed = known.map_or(0, |known| known.confirmed());
        let mut segment = Self { path, file, confirmed };
        // Later than all before it, whatever became of the clock.
        let newest = heads.iter().map(|head| head.heard_at + 1).max().unwrap_or(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let heard_at = newest.max(now);
        segment.append(&Line::Run { heard_at, facts: facts.clone() })?;
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(WitnessError::io("sync", directory.display()))?;
        Ok(segment)
    }

    fn create(directory: &Path, run: &str) -> Result<(PathBuf, File), WitnessError> {
        for number in 0..10_000 {
            let path = directory.join(format!("{run}-{number:04}.log"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                Err(there) if there.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    return made
                        .map(|file| (path.clone(), file))
                        .map_err(WitnessError::io("make", path.display()));
                }
            }
        }
        Err(WitnessError::Refused(format!("run {run} was begun 10,000 times")))
    }

    /// The last batch that is durable.
    pub const fn last(&self) -> u64 {
        self.confirmed
    }

    /// Records a batch durably. One that is recorded already is left alone.
    ///
    /// # Errors
    /// If it does not follow the last one, or is not known to be durable: then the witness must end.
    pub fn record(&mut self, batch: &Batch) -> Result<(), WitnessError> {
        if batch.number <= self.confirmed {
            return Ok(());
        }
        if batch.number != self.confirmed + 1 {
            let why = format!("batch {} was sent, expected batch {}", batch.number, self.confirmed + 1);
            return Err(WitnessError::Refused(why));
        }
        self.append(&Line::Batch(batch.clone()))?;
        self.confirmed = batch.number;
        Ok(())
    }

    /// Records what a verification has found.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn verified(&mut self, document: &VerifyDocument) -> Result<(), WitnessError> {
        self.append(&Line::Verified(Box::new(document.clone())))
    }

    fn append(&mut self, line: &Line) -> Result<(), WitnessError> {
        let failed = |error| WitnessError::io("write durably to", self.path.display())(error);
        let bytes = encode(line).map_err(io::Error::from).map_err(failed)?;
        self.file.write_all(&bytes).and_then(|()| self.file.sync_data()).map_err(failed)
    }
}

//! Data from which reports are made, of a run that has just ended or from a run directory.
//!
//! In a run directory the histograms and the time series are named by the index of the target in
//! [`RunDocument::targets`]: `target-0/read`, `target-0/sync`. The series `target-0` covers reads, writes and
//! trims together, and its parts have names such as `target-0/storage`.

use std::collections::BTreeMap;
use std::path::Path;

use plumb_measure::run::{Recording, TimeseriesRow};
use plumb_measure::{Histogram, TaggedHistogram};
use plumb_text::shell_word;
use serde::de::DeserializeOwned;

use super::check::CheckDocument;
use super::comparison::ComparisonDocument;
use super::fleet::FleetDocument;
use super::json::Kind;
use super::observation::ObservationDocument;
use super::proof::ProofDocument;
use super::recorded_check::RecordedCheck;
use super::run::RunDocument;
use super::study::StudyDocument;
use crate::printable::shell_line;

/// Contents of a run directory.
#[derive(Debug, Clone)]
pub enum RunContents {
    /// Run of a load or a check.
    Run(Box<RunRecording>),
    /// Proof.
    Proof(Box<ProofDocument>),
    /// Comparison.
    Comparison(Box<ComparisonDocument>),
    /// Study.
    Study(Box<StudyDocument>),
    /// Results of many hosts.
    Fleet(Box<FleetRecording>),
    /// Observation.
    Observation(Box<ObservationDocument>),
}

/// A run with its distributions and time series.
#[derive(Debug, Clone)]
pub struct RunRecording {
    /// Results of the run, as a document.
    pub document: RunDocument,
    /// Recordings of the targets, in the order of the document's.
    pub targets: Vec<TargetRecording>,
}

/// Results of many hosts, with their distributions.
#[derive(Debug, Clone)]
pub struct FleetRecording {
    /// Results of the fleet, as a document.
    pub document: FleetDocument,
    /// Recordings of the load of each host, in the order of the document's.
    pub hosts: Vec<TargetRecording>,
}

/// Recorded data of one target.
#[derive(Debug, Clone, Default)]
pub struct TargetRecording {
    /// Distributions of latency.
    pub histograms: BTreeMap<Part, Histogram>,
    /// Reads, writes and trims together over time.
    pub series: Vec<TimeseriesRow>,
    /// Other recorded time series.
    pub tracks: BTreeMap<Part, Vec<TimeseriesRow>>,
}

/// Part of a target's recording: latencies of one kind, or events over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Reads.
    Read,
    /// Writes, until they were acknowledged.
    Write,
    /// Trims.
    Trim,
    /// Flushes.
    Sync,
    /// Writes until the end of their flush.
    Durable,
    /// Reads since their intended start.
    ReadIntended,
    /// Writes since their intended start.
    WriteIntended,
    /// Trims since their intended start.
    TrimIntended,
    /// Reads and writes of the underlying devices. Only a time series.
    Storage,
    /// Transactions of an application that reports no operations. Only a time series.
    Transaction,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Write,
        Self::Trim,
        Self::Sync,
        Self::Durable,
        Self::ReadIntended,
        Self::WriteIntended,
        Self::TrimIntended,
        Self::Storage,
        Self::Transaction,
    ];

    /// Parts whose distributions are shown in reports, each by its [latencies](TargetRecording::latencies).
    pub(crate) const OPERATIONS: [Self; 5] = [Self::Read, Self::Write, Self::Trim, Self::Sync, Self::Durable];

    /// Returns the name of the part in a tag.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
            Self::Durable => "durable",
            Self::ReadIntended => "read-from-intended-start",
            Self::WriteIntended => "write-from-intended-start",
            Self::TrimIntended => "trim-from-intended-start",
            Self::Storage => "storage",
            Self::Transaction => "transaction",
        }
    }

    /// Returns the part with the same operations since their intended start.
    const fn intended(self) -> Option<Self> {
        match self {
            Self::Read => Some(Self::ReadIntended),
            Self::Write => Some(Self::WriteIntended),
            Self::Trim => Some(Self::TrimIntended),
            _ => None,
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Returns the tag of a part of a target in a run directory; `target` is its index in the document.
pub fn tag(target: usize, part: Part) -> String {
    format!("{}/{}", series_name(target), part.name())
}

/// Returns the name of the time series of a target in a run directory.
pub fn series_name(target: usize) -> String {
    format!("target-{target}")
}

/// Error of opening a run directory.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be read as a run.
    #[error(transparent)]
    Unreadable(#[from] plumb_measure::Error),
    /// The run is of an unknown kind.
    #[error(
        "{directory}: the result is a `{found}`: expected {}, {}, {}, {}, {}, {} or {}; another version of plumb may know it",
        CheckDocument::SCHEMA,
        RunDocument::SCHEMA,
        ProofDocument::SCHEMA,
        ComparisonDocument::SCHEMA,
        StudyDocument::SCHEMA,
        FleetDocument::SCHEMA,
        ObservationDocument::SCHEMA
    )]
    UnknownKind {
        /// Path of the run directory.
        directory: String,
        /// Schema named by its result.
        found: String,
    },
}

impl OpenError {
    fn unknown(directory: &Path, found: String) -> Self {
        Self::UnknownKind { directory: directory.display().to_string(), found }
    }
}

impl RunContents {
    /// Opens the recording in `directory`, made by this version or an earlier one. Returns `None` if the run
    /// ended before its first result.
    ///
    /// # Errors
    /// If the directory is not a run, or the kind of its result is unknown.
    pub fn open(directory: &Path) -> Result<Option<Self>, OpenError> {
        let recording = Recording::open(directory)?;
        let Some(kind) = recording.result::<Kind>()? else { return Ok(None) };
        let document = match kind.schema.as_str() {
            _ if kind.is_of_tables() => recording.result::<RecordedCheck>()?.map(RunDocument::from),
            CheckDocument::SCHEMA | RunDocument::SCHEMA => recording.result::<RunDocument>()?,
            ProofDocument::SCHEMA => return boxed(&recording, Self::Proof),
            ComparisonDocument::SCHEMA => return boxed(&recording, Self::Comparison),
            ObservationDocument::SCHEMA => return boxed(&recording, Self::Observation),
            StudyDocument::SCHEMA => return boxed(&recording, Self::Study),
            FleetDocument::SCHEMA => {
                let document = recording.result::<FleetDocument>()?;
                let of = |document| FleetRecording::new(document, &recording.histograms);
                return Ok(document.map(|document| Self::Fleet(Box::new(of(document)))));
            }
            _ => return Err(OpenError::unknown(directory, kind.schema)),
        };
        Ok(document.map(|document| Self::Run(Box::new(RunRecording::new(document, &recording)))))
    }

    /// Returns the run, or the observation converted to one; `None` for documents without rates.
    pub fn into_run(self) -> Option<RunRecording> {
        match self {
            Self::Run(recording) => Some(*recording),
            Self::Observation(seen) => Some(RunRecording::without_distributions((&*seen).into())),
            _ => None,
        }
    }

    /// Describes why the run in `directory` has no result, with a remedy.
    pub fn without_result(directory: &Path) -> String {
        let argv = Recording::open(directory).map_or_else(|_| Vec::new(), |run| run.manifest.argv);
        let words: Vec<&str> = argv.iter().skip(1).take(2).map(String::as_str).collect();
        let name = directory.display().to_string();
        let not_ended = format!("{name}: this proof did not end, so it has no result.");
        match words[..] {
            ["prove", "app"] => {
                format!("{not_ended} Resume it with `plumb prove app --resume {}`", shell_word(&name))
            }
            ["prove", ..] => format!("{not_ended} Run it again: `{}`", shell_line(&argv)),
            _ => format!(
                "{name} has no result: the run ended, or its disk was full, before one was written. What was measured until then, \
                 if anything, is in its hist.hlog and timeseries.csv"
            ),
        }
    }
}

/// Returns the result of `recording`, if it has one.
fn boxed<T: DeserializeOwned>(
    recording: &Recording,
    kind: fn(Box<T>) -> RunContents,
) -> Result<Option<RunContents>, OpenError> {
    Ok(recording.result()?.map(|document| kind(Box::new(document))))
}

/// Returns the index of the target in the name of a distribution.
fn place_of(name: &str) -> Option<usize> {
    name.strip_prefix("target-")?.parse().ok()
}

/// Adds distributions to the targets that their names refer to.
fn take_histograms(targets: &mut [TargetRecording], histograms: &[TaggedHistogram]) {
    for entry in histograms {
        let Some((name, part)) = entry.tag.split_once('/') else { continue };
        let target = place_of(name).and_then(|place| targets.get_mut(place));
        if let (Some(part), Some(target)) = (Part::named(part), target) {
            target.histograms.entry(part).or_default().merge(&entry.histogram);
        }
    }
}

impl TargetRecording {
    /// Returns the distribution of one part, if it was recorded.
    pub fn histogram(&self, part: Part) -> Option<&Histogram> {
        self.histograms.get(&part).filter(|histogram| histogram.count() > 0)
    }

    /// Returns the distribution of the latencies of one part, by the rule of
    /// [`ApplicationSide`](plumb_measure::ApplicationSide::operation_latency): since the intended start if
    /// there is one.
    pub fn latencies(&self, part: Part) -> Option<&Histogram> {
        part.intended().and_then(|intended| self.histogram(intended)).or_else(|| self.histogram(part))
    }

    /// Returns the service times if [latencies](Self::latencies) count from the intended start; `None` if
    /// they are the service times themselves.
    pub(crate) fn service_times(&self, part: Part) -> Option<&Histogram> {
        self.histogram(part.intended()?).and(self.histogram(part))
    }

    /// Returns the combined recording of several targets.
    pub(crate) fn together<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut together = Self::default();
        for (part, histogram) in all.flat_map(|one| &one.histograms) {
            together.histograms.entry(*part).or_default().merge(histogram);
        }
        together
    }
}

impl FleetRecording {
    /// Creates a document with the distributions of its hosts, tagged as in a run directory.
    pub fn new(document: FleetDocument, histograms: &[TaggedHistogram]) -> Self {
        let mut hosts = vec![TargetRecording::default(); document.hosts.len()];
        take_histograms(&mut hosts, histograms);
        Self { document, hosts }
    }
}

impl RunRecording {
    /// Creates a recording of a document alone. Its reports have no charts.
    pub fn without_distributions(document: RunDocument) -> Self {
        let targets = vec![TargetRecording::default(); document.targets.len()];
        Self { document, targets }
    }

    /// Opens the run recorded in `directory`, by this version or an earlier one. Returns `None` if it ended
    /// before its first result.
    ///
    /// # Errors
    /// If the directory is not a run, or the kind of its result is unknown. Proofs and comparisons do not
    /// count as runs.
    pub fn open(directory: &Path) -> Result<Option<Self>, OpenError> {
        match RunContents::open(directory)? {
            Some(RunContents::Run(recording)) => Ok(Some(*recording)),
            Some(RunContents::Proof(proof)) => Err(OpenError::unknown(directory, proof.schema)),
            Some(RunContents::Comparison(comparison)) => {
                Err(OpenError::unknown(directory, comparison.schema))
            }
            Some(RunContents::Observation(seen)) => Err(OpenError::unknown(directory, seen.schema)),
            Some(RunContents::Study(study)) => Err(OpenError::unknown(directory, study.schema)),
            Some(RunContents::Fleet(fleet)) => Err(OpenError::unknown(directory, fleet.document.schema)),
            None => Ok(None),
        }
    }

    /// Creates the recording of a document with the recorded data of its targets.
    fn new(document: RunDocument, recording: &Recording) -> Self {
        let mut run = Self::without_distributions(document);
        take_histograms(&mut run.targets, &recording.histograms);
        for row in &recording.timeseries {
            let (name, track) =
                row.phase.split_once('/').map_or((&*row.phase, None), |(name, of)| (name, Some(of)));
            let Some(target) = place_of(name).and_then(|place| run.targets.get_mut(place)) else { continue };
            match track.map(Part::named) {
                None => target.series.push(row.clone()),
                Some(track) => track.into_iter().for_each(|track| {
                    target.tracks.entry(track).or_default().push(row.clone());
                }),
            }
        }
        run
    }

    /// Returns the distribution of one part of a target, if it was recorded.
    pub fn histogram(&self, target: usize, part: Part) -> Option<&Histogram> {
        self.targets.get(target)?.histogram(part)
    }

    /// Returns the distribution of the latencies of one part of a target, if it was recorded.
    pub fn latencies(&self, target: usize, part: Part) -> Option<&Histogram> {
        self.targets.get(target)?.latencies(part)
    }

    /// Returns the time series of a part of a target; empty if it was not recorded.
    pub fn track(&self, target: usize, part: Part) -> &[TimeseriesRow] {
        self.targets.get(target).and_then(|target| target.tracks.get(&part)).map_or(&[], Vec::as_slice)
    }

    /// Returns the time series of a target; empty if it was not recorded.
    pub fn series_of(&self, target: usize) -> &[TimeseriesRow] {
        self.targets.get(target).map_or(&[], |target| &target.series)
    }
}

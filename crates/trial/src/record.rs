//! Recorder of the measurements of a run in its run directory.

use std::path::PathBuf;

use plumb_block::in_one_line;
use plumb_linux::tree::{LiveTree, memory_bytes};
use plumb_load::{Direction, LoadOutcome};
use plumb_measure::process;
use plumb_measure::run::TimeseriesRow;
use plumb_measure::{DeviceIdentity, Histogram, Manifest, RunDirectory, TaggedHistogram};
use plumb_report::document::{Environment, Part, RunDocument, RunKind, series_name, tag};
use plumb_report::{Format, OpenError, RunRecording, Style, render};

use crate::error::TrialError;
use crate::outcome::TrialEnded;
use crate::request::Request;

/// Creates the requested run directory. Even a killed run leaves its manifest, which states that the run has
/// not ended.
///
/// # Errors
/// If it cannot be created.
pub fn begin_recording(request: &Request, seed: u64) -> plumb_measure::Result<Option<RunDirectory>> {
    let Request { command, argv, started_at, out, .. } = request;
    RunDirectory::create(out, &Manifest::starting(command, argv.clone(), seed, started_at))
}

/// Run directory, as long as it can be written.
#[derive(Default)]
pub(crate) struct Recorder {
    directory: Option<RunDirectory>,
    /// End of a complete run that can no longer be recorded.
    lost: Option<TrialEnded>,
}

impl Recorder {
    /// Begins the recording.
    ///
    /// # Errors
    /// If the run directory cannot be created.
    pub(crate) fn open(&mut self, request: &Request, seed: u64) -> plumb_measure::Result<()> {
        self.directory = begin_recording(request, seed)?;
        Ok(())
    }

    /// Returns true if there is a recording.
    pub(crate) fn is_open(&self) -> bool {
        self.directory.is_some()
    }

    /// Returns the end of a complete run that can no longer be recorded. Earlier records stay as they are.
    pub(crate) fn lost(&self) -> Option<&TrialEnded> {
        self.lost.as_ref()
    }

    /// Removes the run directory.
    ///
    /// # Errors
    /// Those of unlink(2).
    pub(crate) fn abandon(self) -> Result<(), TrialError> {
        self.directory.map_or(Ok(()), |directory| Ok(directory.abandon()?))
    }

    /// Judges and writes a document.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn save(&mut self, document: &mut RunDocument) -> plumb_measure::Result<()> {
        let Some(directory) = &mut self.directory else { return Ok(()) };
        directory.update_manifest(|manifest| complete(manifest, document))?;
        document.run_directory = Some(shown(directory));
        directory.write_result(&document.as_json())
    }

    /// Writes interim measurements of targets as [`add`](Self::add) does, replacing earlier interim ones.
    /// They are not made durable, so that the measured devices receive no flush for them. A failed write is
    /// tried again next time, and reported at the end.
    pub(crate) fn add_interim(
        &mut self,
        document: &mut RunDocument,
        first: usize,
        outcomes: &[LoadOutcome],
        over_time: Vec<TimeseriesRow>,
    ) {
        let Some(directory) = &mut self.directory else { return };
        document.run_directory = Some(shown(directory));
        let targets = || (first..).zip(outcomes);
        let histograms: Vec<_> =
            targets().flat_map(|(target, outcome)| histograms(target, outcome)).collect();
        let rows = targets().flat_map(|(target, outcome)| series(target, outcome)).chain(over_time);
        drop(directory.write_so_far(&document.as_json(), &histograms, rows));
    }

    /// Adds the distributions and the time series of targets, and `over_time`, and writes the document;
    /// `first` is the index of the first target in the document. A recording that can no longer be written is
    /// given up; earlier records stay.
    pub(crate) fn add(
        &mut self,
        document: &mut RunDocument,
        first: usize,
        outcomes: &[LoadOutcome],
        over_time: Vec<TimeseriesRow>,
    ) {
        let write = || {
            if let Some(directory) = self.directory.as_mut().filter(|_| !outcomes.is_empty()) {
                for (target, outcome) in (first..).zip(outcomes) {
                    directory.append_histograms(&histograms(target, outcome))?;
                    directory.append_series(series(target, outcome))?;
                }
                directory.append_series(over_time)?;
            }
            self.save(document)
        };
        if let Err(error) = write() {
            self.lose(&error);
        }
    }

    /// Writes the final document and its page, which can be made again from the recording. Returns `None`
    /// without a recording.
    pub(crate) fn finish(
        &mut self,
        document: &mut RunDocument,
        time_of_day: &dyn Fn() -> String,
    ) -> Option<(RunRecording, PathBuf)> {
        self.add(document, 0, &[], Vec::new());
        let directory = self.directory.take()?;
        match close(directory, document, time_of_day) {
            Ok(kept) => Some(kept),
            Err(OpenError::Unreadable(error)) => {
                self.lose(&error);
                None
            }
            Err(error) => {
                self.lost = Some(TrialEnded::NotRecorded(in_one_line(&error)));
                None
            }
        }
    }

    fn lose(&mut self, error: &plumb_measure::Error) {
        self.directory = None;
        self.lost = Some(TrialEnded::Complete.unrecorded(error));
    }
}

/// Returns the path of the directory for readers of the document.
fn shown(directory: &RunDirectory) -> String {
    let path = directory.path();
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn close(
    directory: RunDirectory,
    document: &RunDocument,
    time_of_day: &dyn Fn() -> String,
) -> Result<(RunRecording, PathBuf), OpenError> {
    let recording = RunRecording::open(directory.path())?
        .unwrap_or_else(|| RunRecording::without_distributions(document.clone()));
    if let Ok(page) = render(&recording, Format::Html, Style::PLAIN) {
        directory.write_file(Format::Html.file_name(), page.as_bytes())?;
    }
    let path = directory.finish(document.incomplete_because.clone(), time_of_day())?;
    Ok((recording, path))
}

/// Returns the recorded time series of one target: all operations, and each direction if there are several.
pub fn series(target: usize, outcome: &LoadOutcome) -> Vec<TimeseriesRow> {
    let mut rows = outcome.operations().series.rows(&series_name(target));
    let directions =
        [(Part::Read, &outcome.read), (Part::Write, &outcome.write), (Part::Trim, &outcome.trim)];
    let used = || directions.iter().filter(|(_, direction)| direction.operations() > 0);
    if used().count() > 1 {
        rows.extend(used().flat_map(|(track, direction)| direction.series.rows(&tag(target, *track))));
    }
    rows
}

/// Returns the distributions of one target for the recording.
pub fn histograms(target: usize, outcome: &LoadOutcome) -> Vec<TaggedHistogram> {
    let tagged = |part: Part, histogram: &Histogram| TaggedHistogram {
        tag: tag(target, part),
        start: plumb_block::Nanos::ZERO,
        length: outcome.length,
        histogram: histogram.clone(),
    };
    let service = |part, direction: &Direction| tagged(part, &direction.latency);
    let mut all = vec![
        service(Part::Read, &outcome.read),
        service(Part::Write, &outcome.write),
        service(Part::Trim, &outcome.trim),
        service(Part::Sync, &outcome.flush),
        tagged(Part::Durable, &outcome.durable),
    ];
    let intended = [
        (Part::ReadIntended, &outcome.read),
        (Part::WriteIntended, &outcome.write),
        (Part::TrimIntended, &outcome.trim),
    ];
    for (part, direction) in intended {
        all.extend(direction.latency_from_intended_start.as_ref().map(|histogram| tagged(part, histogram)));
    }
    all
}

/// Completes the manifest from the document.
fn complete(manifest: &mut Manifest, document: &RunDocument) {
    manifest.target = Some(document.names().join(" "));
    let path = document.path.as_ref();
    let identity = |name: &str| path?.layers.iter().find(|layer| layer.name == name)?.identity.clone();
    let counted = document.targets.iter().flat_map(|target| &target.sides.storage);
    let beneath = path.map(plumb_path::WritePath::block_devices).unwrap_or_default().into_iter();
    let devices = counted.flat_map(|side| side.devices.iter().map(|device| device.name.clone()));
    for name in beneath.chain(devices) {
        if !manifest.devices.iter().any(|known| known.name == name) {
            manifest.devices.push(DeviceIdentity { identity: identity(&name), name });
        }
    }
}

/// Returns the document of a run without results.
pub(crate) fn empty_document(request: &Request, seed: u64) -> RunDocument {
    RunDocument {
        seed,
        notes: request.notes.clone(),
        workload: request.words.clone(),
        environment: environment(&request.argv, &request.started_at),
        ..RunDocument::empty(RunKind::Load)
    }
}

/// Returns the environment of a run with this command line and start time.
pub fn environment(argv: &[String], started_at: &str) -> Environment {
    Environment {
        plumb: env!("CARGO_PKG_VERSION").to_owned(),
        argv: argv.to_vec(),
        directory: std::env::current_dir().ok().map(|directory| directory.display().to_string()),
        started_at: started_at.to_owned(),
        kernel: process::kernel(),
        host: process::host(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        memory_bytes: memory_bytes(&LiveTree),
        ..Environment::default()
    }
}

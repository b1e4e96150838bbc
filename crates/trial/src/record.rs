//! Keeping what was measured: the run directory.

use std::path::PathBuf;

use plumb_block::in_one_line;
use plumb_load::{Direction, LoadOutcome};
use plumb_measure::process::surroundings;
use plumb_measure::{DeviceIdentity, Histogram, Manifest, RunDirectory, TaggedHistogram};
use plumb_report::document::{Environment, Part, RunDocument, histogram_tag, series_name};
use plumb_report::{Format, OpenError, RunRecording, Style, render, verdict};

use crate::trial::Request;

/// What was kept.
pub(crate) struct Recorded {
    pub(crate) recording: RunRecording,
    pub(crate) run_directory: Option<PathBuf>,
    /// Why it could not be kept, if it could not.
    pub(crate) lost: Option<String>,
}

/// Begins the recording, so that also a run that is killed leaves its manifest, which says that it has not ended.
///
/// # Errors
/// If there is no place for it.
pub(crate) fn begin(request: &Request, seed: u64) -> plumb_measure::Result<RunDirectory> {
    let mut manifest = Manifest::starting(&request.command, request.argv.clone(), seed, &request.started_at);
    manifest.kernel = surroundings::kernel();
    manifest.host = surroundings::host();
    RunDirectory::create_out(&request.out, &manifest)
}

/// Judges the document, whose verdicts so far stay, and writes it with the distributions and the time series of every target. A recording that
/// cannot be written does not take the result with it.
pub(crate) fn keep(
    directory: RunDirectory,
    mut document: RunDocument,
    outcomes: &[LoadOutcome],
    time_of_day: &dyn Fn() -> String,
) -> Recorded {
    let limits = std::mem::take(&mut document.verdicts);
    verdict::conclude(&mut document, limits);
    match write(directory, &mut document, outcomes, time_of_day) {
        Ok((recording, path)) => Recorded { recording, run_directory: Some(path), lost: None },
        Err(error) => {
            document.run_directory = None;
            let recording = RunRecording::without_distributions(document);
            Recorded { recording, run_directory: None, lost: Some(in_one_line(&error)) }
        }
    }
}

fn write(
    mut directory: RunDirectory,
    document: &mut RunDocument,
    outcomes: &[LoadOutcome],
    time_of_day: &dyn Fn() -> String,
) -> Result<(RunRecording, PathBuf), OpenError> {
    directory.update_manifest(|manifest| complete(manifest, document))?;
    let shown = std::path::absolute(directory.path()).unwrap_or_else(|_| directory.path().to_owned());
    document.run_directory = Some(shown.display().to_string());
    directory.write_result(document)?;
    for (target, outcome) in outcomes.iter().enumerate() {
        directory.append_histograms(&histograms(target, outcome))?;
        directory.append_series(&series_name(target), &outcome.operations().series)?;
    }
    let recording = RunRecording::open(directory.path())?
        .unwrap_or_else(|| RunRecording::without_distributions(document.clone()));
    if let Ok(page) = render(&recording, Format::Html, Style::PLAIN) {
        directory.write_file(Format::Html.file_name(), page.as_bytes())?;
    }
    let path = directory.finish(document.incomplete_because.clone(), time_of_day())?;
    Ok((recording, path))
}

/// The distributions of one target.
fn histograms(target: usize, outcome: &LoadOutcome) -> Vec<TaggedHistogram> {
    let tagged = |part: Part, histogram: &Histogram| TaggedHistogram {
        tag: histogram_tag(target, part),
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

/// What the manifest says once it is known.
fn complete(manifest: &mut Manifest, document: &RunDocument) {
    let mut names: Vec<&str> = document.targets.iter().map(|target| target.name.as_str()).collect();
    names.dedup();
    manifest.target = Some(names.join(" "));
    for target in &document.targets {
        let devices = target.sides.storage.iter().flat_map(|side| &side.devices);
        for device in devices {
            if !manifest.devices.iter().any(|known| known.name == device.name) {
                manifest.devices.push(DeviceIdentity { name: device.name.clone(), identity: None });
            }
        }
    }
}

/// The document of a run of which nothing is known yet.
pub(crate) fn empty_document(request: &Request) -> RunDocument {
    RunDocument {
        notes: request.notes.clone(),
        workload: request.words.clone(),
        environment: environment(request),
        ..RunDocument::empty(RunDocument::SCHEMA)
    }
}

/// Where it runs.
fn environment(request: &Request) -> Environment {
    Environment {
        plumb: env!("CARGO_PKG_VERSION").to_owned(),
        argv: request.argv.clone(),
        started_at: request.started_at.clone(),
        kernel: surroundings::kernel(),
        host: surroundings::host(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        memory_bytes: surroundings::memory_bytes(),
        ..Environment::default()
    }
}

//! One run directory for all hosts: the document, and of each host the distributions and the time series of its load.

use plumb_fleet::merge::Answer;
use plumb_measure::process::surroundings::{host, kernel};
use plumb_measure::{Manifest, RunDirectory};
use plumb_report::document::{ComparisonDocument, FleetDocument};
use plumb_report::{Format, Style, render};
use plumb_trial::environment;

use crate::arguments::RecordingArguments;
use crate::exit::usage;
use crate::surroundings::{argv, out, time_of_day};

/// Begins a run directory where one is wanted.
///
/// # Errors
/// If the place does not take it.
fn begin(
    recording: &RecordingArguments,
    seed: u64,
    started_at: &str,
    hosts: &[String],
) -> anyhow::Result<Option<RunDirectory>> {
    let mut manifest = Manifest::starting("fleet", argv(), seed, started_at);
    (manifest.kernel, manifest.host) = (kernel(), host());
    manifest.target = Some(hosts.join(" "));
    Ok(RunDirectory::create(&out(recording, "fleet"), &manifest).map_err(usage)?)
}

/// Keeps the document where that is wanted, and says in it where.
///
/// # Errors
/// If the place does not take it.
pub(super) fn keep(
    mut document: FleetDocument,
    answers: &[Answer],
    recording: &RecordingArguments,
) -> anyhow::Result<FleetDocument> {
    let hosts: Vec<String> = document.hosts.iter().map(|host| host.name.clone()).collect();
    let begun = begin(recording, document.seed, &document.environment.started_at, &hosts)?;
    let Some(mut directory) = begun else { return Ok(document) };
    document.run_directory = Some(directory.path().display().to_string());
    let measured = answers.iter().enumerate().filter_map(|(number, of)| Some((number, of.outcome.as_ref()?)));
    for (number, outcome) in measured {
        directory.append_histograms(&plumb_trial::histograms(number, outcome))?;
        directory.append_series(plumb_trial::series(number, outcome))?;
    }
    directory.write_result(&document)?;
    let page = render(&document, Format::Html, Style::PLAIN)?;
    directory.write_file(Format::Html.file_name(), page.as_bytes())?;
    directory.finish(document.incomplete_because.clone(), time_of_day())?;
    Ok(document)
}

/// The same of a comparison on these hosts, which is whole unless there is a reason why not.
///
/// # Errors
/// As [`keep`].
pub(super) fn keep_comparison(
    document: &mut ComparisonDocument,
    hosts: &[String],
    recording: &RecordingArguments,
) -> anyhow::Result<()> {
    let started_at = time_of_day();
    document.environment = environment(&argv(), &started_at);
    let Some(directory) = begin(recording, document.seed, &started_at, hosts)? else { return Ok(()) };
    document.run_directory = Some(directory.path().display().to_string());
    directory.write_result(&*document)?;
    let page = render(&*document, Format::Html, Style::PLAIN)?;
    directory.write_file(Format::Html.file_name(), page.as_bytes())?;
    directory.finish(document.incomplete_because.clone(), time_of_day())?;
    Ok(())
}

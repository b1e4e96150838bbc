//! `plumb compare RUN... --against RUN...`: runs that were recorded earlier.

use std::path::Path;

use plumb_compare::{Question, compare_recorded};
use plumb_measure::process::surroundings::{host, kernel};
use plumb_measure::{Manifest, RunDirectory};
use plumb_report::{Format, RunDocument, RunRecording, Style, render};
use plumb_trial::environment;

use super::{CompareArguments, show};
use crate::exit::{self, Exit, Refusal, usage};
use crate::surroundings::{argv, out, time_of_day};
use crate::terminal;

/// Compares the runs that are named in the place of targets.
pub(super) fn run(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    let names = arguments.words.targets();
    if names.is_empty() {
        return Err(
            Refusal::new(Exit::Usage, "--against: name the runs that are compared with them, too").into()
        );
    }
    let runs = open(names.iter().map(Path::new))?;
    let against = open(arguments.against.iter().map(std::path::PathBuf::as_path))?;
    let question = Question {
        factor: "recorded runs".to_owned(),
        levels: vec![joined(&against), joined(&runs)],
        figure: arguments.figure.clone().unwrap_or_else(|| "iops".to_owned()),
        terms: arguments.terms(),
        limits: arguments.fail_if.clone(),
    };
    let mut document = compare_recorded(&question, &against, &runs).map_err(usage)?;
    let started_at = time_of_day();
    document.environment = environment(&argv(), &started_at);
    let out = out(&arguments.own.recording, "compare");
    let mut manifest = Manifest::starting("compare", argv(), 0, started_at);
    (manifest.kernel, manifest.host) = (kernel(), host());
    if let Some(directory) = RunDirectory::create(&out, &manifest).map_err(usage)? {
        document.run_directory = Some(directory.path().display().to_string());
        directory.write_result(&document)?;
        directory.write_file(
            Format::Html.file_name(),
            render(&document, Format::Html, Style::PLAIN)?.as_bytes(),
        )?;
        directory.finish(None, time_of_day())?;
    }
    show(&document, arguments.own.json, arguments.detail.style())?;
    if let Some(directory) = &document.run_directory {
        terminal::say(&format!("plumb: report: {directory}/{}", Format::Html.file_name()));
    }
    Ok(exit::of_comparison(&document))
}

fn open<'a>(runs: impl Iterator<Item = &'a Path>) -> Result<Vec<(String, RunDocument)>, Refusal> {
    runs.map(|run| {
        let name = run.display().to_string();
        let recording = RunRecording::open(run).map_err(usage)?;
        let nothing =
            || Refusal::new(Exit::NotMeasured, format!("{name} ended before anything was measured"));
        Ok((name.clone(), recording.ok_or_else(nothing)?.document))
    })
    .collect()
}

/// The names of runs as that of a level.
fn joined(runs: &[(String, RunDocument)]) -> String {
    let last =
        |name: &String| Path::new(name).file_name().map_or(name.clone(), |name| name.display().to_string());
    runs.iter().map(|(name, _)| last(name)).collect::<Vec<_>>().join(" + ")
}

//! `plumb compare RUN... --against RUN...`: runs that were recorded earlier.

use std::path::Path;

use plumb_compare::{Question, compare_recorded};
use plumb_measure::process::surroundings::{host, kernel};
use plumb_measure::{Manifest, RunDirectory};
use plumb_report::{Format, Recorded, RunDocument, Style, render};
use plumb_trial::environment;

use super::{CompareArguments, show};
use crate::command::report;
use crate::exit::{self, Exit, Refusal, usage};
use crate::surroundings::{argv, out, time_of_day};
use crate::{files, terminal};

/// Whether all targets are runs, or results of other programs, and there are two: nothing else can be meant.
pub(super) fn are_meant(arguments: &CompareArguments) -> bool {
    let is_recorded = |name: &String| {
        let path = Path::new(name);
        let begins = |text: &str| {
            text.contains("<Results>")
                || text.contains("\"fio version\"")
                || text.contains("actual test time:")
        };
        path.join("manifest.json").is_file()
            || (path.is_file() && files::read(name).is_ok_and(|text| begins(&text)))
    };
    let targets = arguments.words.targets();
    targets.len() == 2 && targets.iter().all(is_recorded)
}

/// Compares the runs that are named in the place of targets.
pub(super) fn run(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    let mut names = arguments.words.targets();
    let mut against = arguments.against.clone();
    if against.is_empty() {
        against.push(names.remove(0).into());
    }
    if names.is_empty() {
        return Err(
            Refusal::new(Exit::Usage, "--against: name the runs that are compared with them, too").into()
        );
    }
    let runs = open(names.iter().map(Path::new))?;
    let against = open(against.iter().map(std::path::PathBuf::as_path))?;
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
        match report::opened(run)? {
            Recorded::Run(recording) => Ok((name, recording.document)),
            Recorded::Proof(_) | Recorded::Comparison(_) | Recorded::Study(_) | Recorded::Fleet(_) => Err(
                Refusal::new(Exit::Usage, format!("{name} is no run of a load: it has no rates to compare")),
            ),
        }
    })
    .collect()
}

/// The names of runs as that of a level.
fn joined(runs: &[(String, RunDocument)]) -> String {
    let last =
        |name: &String| Path::new(name).file_name().map_or(name.clone(), |name| name.display().to_string());
    runs.iter().map(|(name, _)| last(name)).collect::<Vec<_>>().join(" + ")
}

//! `plumb compare RUN... --against RUN...`: runs that were recorded earlier.

use std::path::{Path, PathBuf};

use plumb_compare::{Gate, Question, Terms, compare_recorded};
use plumb_measure::process::surroundings::{host, kernel};
use plumb_measure::{Manifest, RunDirectory};
use plumb_observe::run_document;
use plumb_report::{Format, Recorded, RunDocument, Style, render};
use plumb_trial::environment;

use super::{CompareArguments, show};
use crate::arguments::RecordingArguments;
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

/// Runs that are compared with earlier ones, and how that is asked.
pub(crate) struct Earlier<'a> {
    pub(crate) runs: Vec<PathBuf>,
    pub(crate) against: Vec<PathBuf>,
    /// The figure that decides, if one was named.
    pub(crate) figure: Option<String>,
    pub(crate) terms: Terms,
    pub(crate) limits: Vec<Gate>,
    pub(crate) recording: &'a RecordingArguments,
    pub(crate) as_json: bool,
    pub(crate) style: Style,
}

/// Compares the runs that are named in the place of targets.
pub(super) fn run(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    let mut runs: Vec<PathBuf> = arguments.words.targets().iter().map(PathBuf::from).collect();
    let mut against = arguments.against.clone();
    if against.is_empty() {
        against.push(runs.remove(0));
    }
    compare_earlier(&Earlier {
        runs,
        against,
        figure: arguments.figure.clone(),
        terms: arguments.terms(),
        limits: arguments.fail_if.clone(),
        recording: &arguments.own.recording,
        as_json: arguments.own.json,
        style: arguments.detail.style(),
    })
}

/// Compares recorded runs, or recorded observations.
pub(crate) fn compare_earlier(asked: &Earlier<'_>) -> anyhow::Result<Exit> {
    if asked.runs.is_empty() {
        return Err(
            Refusal::new(Exit::Usage, "--against: name the runs that are compared with them, too").into()
        );
    }
    let runs = open(&asked.runs)?;
    let against = open(&asked.against)?;
    let question = Question {
        factor: "recorded runs".to_owned(),
        levels: vec![joined(&against), joined(&runs)],
        figure: asked.figure.clone().unwrap_or_else(|| "iops".to_owned()),
        terms: asked.terms,
        limits: asked.limits.clone(),
    };
    let mut document = compare_recorded(&question, &against, &runs).map_err(usage)?;
    let started_at = time_of_day();
    document.environment = environment(&argv(), &started_at);
    let out = out(asked.recording, "compare");
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
    show(&document, asked.as_json, asked.style)?;
    if let Some(directory) = &document.run_directory {
        terminal::say(&format!("plumb: report: {directory}/{}", Format::Html.file_name()));
    }
    Ok(exit::of_comparison(&document))
}

fn open(runs: &[PathBuf]) -> Result<Vec<(String, RunDocument)>, Refusal> {
    let one = |run: &PathBuf| {
        let name = run.display().to_string();
        match report::opened(run)? {
            Recorded::Run(recording) => Ok((name, recording.document)),
            Recorded::Observation(seen) => Ok((name, run_document(&seen))),
            Recorded::Proof(_) | Recorded::Comparison(_) | Recorded::Study(_) | Recorded::Fleet(_) => {
                let problem = "is neither a run of a load nor an observation: it has no rates to compare";
                Err(Refusal::new(Exit::Usage, format!("{name} {problem}")))
            }
        }
    };
    runs.iter().map(one).collect()
}

/// The names of runs as that of a level.
fn joined(runs: &[(String, RunDocument)]) -> String {
    let last =
        |name: &String| Path::new(name).file_name().map_or(name.clone(), |name| name.display().to_string());
    runs.iter().map(|(name, _)| last(name)).collect::<Vec<_>>().join(" + ")
}

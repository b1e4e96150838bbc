//! `plumb compare RUN... --against RUN...`: comparison of recorded runs.

use std::path::{Path, PathBuf};

use plumb_block::FailureKind;
use plumb_compare::{Question, compare_recorded, recorded_figure};
use plumb_measure::{Manifest, RunDirectory};
use plumb_report::{Kind, Record, RunDocument};
use plumb_trial::environment;

use super::arguments::CompareArguments;
use crate::command::report;
use crate::exit::{self, Exit, Refusal, refuse_if, usage};
use crate::surroundings::{argv, out, time_of_day};
use crate::terminal;

/// Compares the runs named in place of targets.
pub(super) fn run(arguments: &CompareArguments) -> anyhow::Result<Exit> {
    let format = arguments.own.printed.format(Kind::Comparison)?;
    let mut runs: Vec<PathBuf> = arguments.words.targets().iter().map(PathBuf::from).collect();
    let mut against = arguments.against.clone();
    if against.is_empty() {
        against.push(runs.remove(0));
    }
    refuse_if!(runs.is_empty(), Usage, "--against: name the runs to compare with these, too");
    let (runs, against) = (open(&runs)?, open(&against)?);
    let decides = || recorded_figure(against.iter().chain(&runs).map(|(_, run)| run)).to_owned();
    let question = Question {
        factor: "recorded runs".to_owned(),
        levels: vec![joined(&against), joined(&runs)],
        figure: arguments.figure.clone().unwrap_or_else(decides),
        terms: arguments.terms(),
        limits: arguments.fail_if.clone(),
    };
    let mut document = compare_recorded(&question, &against, &runs).map_err(usage)?;
    let started_at = time_of_day();
    document.environment = environment(&argv(), &started_at);
    let out = out(&arguments.own.recording, "compare");
    let manifest = Manifest::starting("compare", argv(), 0, started_at);
    let record = Record::new(RunDirectory::create(&out, &manifest)?);
    document.run_directory = record.shown();
    record.close(&document, None, time_of_day())?;
    terminal::show(&document, format, arguments.detail.style())?;
    terminal::say_report(document.run_directory.as_ref());
    Ok(exit::of_comparison(&document))
}

fn open(runs: &[PathBuf]) -> Result<Vec<(String, RunDocument)>, Refusal> {
    let one = |run: &PathBuf| {
        let name = run.display().to_string();
        match report::opened(run, None)?.into_run() {
            Some(recording) => Ok((name, recording.document)),
            None => {
                let problem = "is neither a run of a load nor an observation: it has no rates to compare";
                Err(Refusal::new(FailureKind::Usage, format!("{name} {problem}")))
            }
        }
    };
    runs.iter().map(one).collect()
}

/// Returns the names of runs, joined to the name of a level.
fn joined(runs: &[(String, RunDocument)]) -> String {
    let last =
        |name: &String| Path::new(name).file_name().map_or(name.clone(), |name| name.display().to_string());
    runs.iter().map(|(name, _)| last(name)).collect::<Vec<_>>().join(" + ")
}

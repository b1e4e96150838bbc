//! `plumb report`: output of a recorded run in any format, from the recording alone.

use std::path::{Path, PathBuf};

use plumb_block::FailureKind;
use plumb_dialect::imported::{self, numbered};
use plumb_report::{RenderInput, RunContents, RunRecording, render};

use crate::arguments::report::ReportArguments;
use crate::command::host_recording;
use crate::exit::{self, Exit, Refusal, refuse_if, usage};
use crate::surroundings::newest_run;
use crate::{files, terminal};

const NO_RUN: &str =
    "there is no recorded run in plumb-runs: name the directory of one, or run `plumb check` first";

/// Opens a run directory, or a result file of another program. `number` selects one of several results, from
/// 1 on.
pub(super) fn opened(run: &Path, number: Option<usize>) -> Result<RunContents, Refusal> {
    let (run, number) = match (number, numbered(run)) {
        (None, Some((file, number))) => (file, Some(number)),
        _ => (run, number),
    };
    if run.is_file() {
        let name = run.display().to_string();
        let text = files::read(&name)
            .map_err(|error| Refusal::new(FailureKind::Usage, format!("{name}: {error}")))?;
        let document = imported::read(&text, &name, number).map_err(usage)?;
        return Ok(RunContents::Run(Box::new(RunRecording::without_distributions(document))));
    }
    if !run.exists() {
        let problem = "does not exist: name the directory of a run, such as those in plumb-runs, or a result of DiskSpd or fio";
        return Err(Refusal::new(FailureKind::Usage, format!("{} {problem}", run.display())));
    }
    let problem = format!("--result: {} is a recording of plumb, which has one result", run.display());
    refuse_if!(number.is_some(), Usage, problem);
    RunContents::open(run)
        .map_err(usage)?
        .ok_or_else(|| Refusal::new(FailureKind::NotMeasured, RunContents::without_result(run)))
}

/// Joins the recording of a host below that of its guest.
fn put_beneath(guest: RunContents, host: &Path) -> Result<RunContents, Refusal> {
    let problem = |problem: String| Refusal::new(FailureKind::Usage, problem);
    let only = || problem("--beneath: only runs of a load and observations can be joined".to_owned());
    let host_run = opened(host, None)?.into_run().ok_or_else(only)?;
    let mut guest = guest.into_run().ok_or_else(only)?;
    host_recording::join(&mut guest.document, &host_run.document)
        .map_err(|why| problem(format!("{}: {why}", host.display())))?;
    Ok(RunContents::Run(Box::new(guest)))
}

/// Renders the run, and prints it or writes it to a file.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let run = match &arguments.run {
        Some(run) => run.clone(),
        None => {
            let newest = newest_run().ok_or_else(|| Refusal::new(FailureKind::Usage, NO_RUN))?;
            terminal::say(&format!("plumb: the newest run: {}", newest.display()));
            newest
        }
    };
    let run_file = numbered(&run).map_or(run.as_path(), |(file, _)| file).to_owned();
    let reads: Vec<PathBuf> = arguments.beneath.iter().cloned().chain([run_file]).collect();
    let output = arguments.writing.only(arguments.output.as_ref(), &reads)?;
    let mut recorded = opened(&run, arguments.result)?;
    if let Some(host) = &arguments.beneath {
        recorded = put_beneath(recorded, host)?;
    }
    let format = arguments.printed.format(RenderInput::from(&recorded).kind())?;
    // The joined data is in the path and the counts, which are shown only in the full report.
    let detail =
        if arguments.beneath.is_some() { arguments.detail.or_everything() } else { arguments.detail };
    let text = render(&recorded, format, detail.style())?;
    files::write_or_print(output, &text)?;
    Ok(match &recorded {
        RunContents::Run(recording) => exit::of_run(&recording.document, arguments.strictness),
        RunContents::Proof(proof) => exit::of_proof(proof),
        RunContents::Comparison(comparison) => exit::of_comparison(comparison),
        RunContents::Observation(document) => exit::of_observation(document, arguments.strictness),
        RunContents::Study(study) => exit::of_study(study),
        RunContents::Fleet(recording) => exit::of_fleet(&recording.document, arguments.strictness),
    })
}

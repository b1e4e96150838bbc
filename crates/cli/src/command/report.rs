//! `plumb report`: any format of a recorded run, from the recording alone.

use std::path::Path;

use plumb_report::{Format, Recorded, RenderError, RunRecording, render};

use crate::arguments::ReportArguments;
use crate::command::fleet;
use crate::exit::{self, Exit, Refusal, usage};
use crate::surroundings::newest_run;
use crate::{files, terminal};

const NO_RUN: &str =
    "there is no recorded run in plumb-runs: name the directory of one, or run `plumb check` first";

/// What is in the directory of a run, or in a file with the result of another program.
pub(super) fn opened(run: &Path) -> Result<Recorded, Refusal> {
    if run.is_file() {
        let name = run.display().to_string();
        let text =
            files::read(&name).map_err(|error| Refusal::new(Exit::Usage, format!("{name}: {error}")))?;
        let document = plumb_dialect::imported::read(&text, &name).map_err(usage)?;
        return Ok(Recorded::Run(Box::new(RunRecording::without_distributions(document))));
    }
    Recorded::open(run).map_err(usage)?.ok_or_else(|| {
        let why = "ended before anything was measured: there is nothing in it";
        Refusal::new(Exit::NotMeasured, format!("{} {why}", run.display()))
    })
}

/// Renders the run and prints it, or writes it to a file.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let run = match &arguments.run {
        Some(run) => run.clone(),
        None => {
            let newest = newest_run().ok_or_else(|| Refusal::new(Exit::Usage, NO_RUN))?;
            terminal::say(&format!("plumb: the newest run: {}", newest.display()));
            newest
        }
    };
    let recorded = opened(&run)?;
    let format = if arguments.json { Format::Json } else { arguments.format };
    let text = match render(&recorded, format, arguments.detail.style()) {
        Err(error @ RenderError::NoSuchFormat { .. }) => return Err(usage(error).into()),
        text => text?,
    };
    files::write_or_print(arguments.output.as_deref(), &text)?;
    Ok(match &recorded {
        Recorded::Run(recording) => exit::of_findings(&recording.document.verdicts),
        Recorded::Proof(proof) => exit::of_proof(proof),
        Recorded::Comparison(comparison) => exit::of_comparison(comparison),
        Recorded::Observation(_) => Exit::Done,
        Recorded::Study(study) => exit::of_study(study),
        Recorded::Fleet(document) => fleet::exit_of(document),
    })
}

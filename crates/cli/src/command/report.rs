//! `plumb report`: any format of a recorded run, from the recording alone.

use std::path::Path;

use plumb_observe::run_document;
use plumb_report::{Format, Recorded, RenderError, RunDocument, RunRecording, render};

use crate::arguments::ReportArguments;
use crate::command::{beneath, fleet};
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
        let why = "has no result: the run ended, or its disk was full, before one was written; what was measured until then, if \
                   anything, is in its hist.hlog and timeseries.csv";
        Refusal::new(Exit::NotMeasured, format!("{} {why}", run.display()))
    })
}

/// Puts the recording of a host beneath that of its guest.
fn put_beneath(guest: &mut Recorded, host: &Path) -> Result<(), Refusal> {
    let problem = |problem: String| Refusal::new(Exit::Usage, problem);
    let only = || problem("--beneath: only runs of a load and observations are put together".to_owned());
    let host_document = match opened(host)? {
        Recorded::Run(recording) => recording.document,
        Recorded::Observation(seen) => {
            RunDocument { environment: seen.environment.clone(), ..run_document(&seen) }
        }
        _ => return Err(only()),
    };
    let guest = match guest {
        Recorded::Run(recording) => recording,
        Recorded::Observation(seen) => {
            let document = RunDocument { environment: seen.environment.clone(), ..run_document(seen) };
            *guest = Recorded::Run(Box::new(RunRecording::without_distributions(document)));
            let Recorded::Run(recording) = guest else { return Err(only()) };
            recording
        }
        _ => return Err(only()),
    };
    beneath::join(&mut guest.document, &host_document)
        .map_err(|why| problem(format!("{}: {why}", host.display())))
}

/// Renders the run and prints it, or writes it to a file.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let output = arguments.output.as_deref().map(|path| arguments.writing.file(path));
    files::check(output)?;
    let run = match &arguments.run {
        Some(run) => run.clone(),
        None => {
            let newest = newest_run().ok_or_else(|| Refusal::new(Exit::Usage, NO_RUN))?;
            terminal::say(&format!("plumb: the newest run: {}", newest.display()));
            newest
        }
    };
    let mut recorded = opened(&run)?;
    if let Some(host) = &arguments.beneath {
        put_beneath(&mut recorded, host)?;
    }
    let format = if arguments.json { Format::Json } else { arguments.format };
    // What was put together is the path and the counts of both.
    let detail =
        if arguments.beneath.is_some() { arguments.detail.or_everything() } else { arguments.detail };
    let text = match render(&recorded, format, detail.style()) {
        Err(error @ RenderError::NoSuchFormat { .. }) => return Err(usage(error).into()),
        text => text?,
    };
    files::write_or_print(output, &text)?;
    Ok(match &recorded {
        Recorded::Run(recording) => exit::of_run(&recording.document, arguments.strictness),
        Recorded::Proof(proof) => exit::of_proof(proof),
        Recorded::Comparison(comparison) => exit::of_comparison(comparison),
        Recorded::Observation(_) => Exit::Done,
        Recorded::Study(study) => exit::of_study(study),
        Recorded::Fleet(recording) => fleet::exit_of(&recording.document),
    })
}

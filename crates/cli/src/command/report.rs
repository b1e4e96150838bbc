//! `plumb report`: any format of a recorded run, from the recording alone.

use plumb_measure::run::replace::replace;
use plumb_path::Severity;
use plumb_report::{CheckRecording, Format, render};

use crate::arguments::ReportArguments;
use crate::exit::{Ended, Exit};
use crate::terminal;

/// Renders the run and prints it, or writes it to a file.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let recording = CheckRecording::open(&arguments.run)
        .map_err(|error| Ended::new(Exit::Usage, error.to_string()))?
        .ok_or_else(|| {
            let run = arguments.run.display();
            Ended::new(
                Exit::NotMeasured,
                format!("{run} ended before anything was measured: there is nothing to report"),
            )
        })?;
    let format = if arguments.json { Format::Json } else { arguments.format };
    let text = render(&recording, format, terminal::style())?;
    match &arguments.output {
        Some(path) => replace(path, text.as_bytes())?,
        None => terminal::print(&text)?,
    }
    let found = recording.document.verdicts.iter().any(|verdict| verdict.severity >= Severity::Warning);
    Ok(if found { Exit::Finding } else { Exit::Done })
}

//! `plumb report`: any format of a recorded run, from the recording alone.

use plumb_report::{Format, RunRecording, render};

use crate::arguments::ReportArguments;
use crate::exit::{self, Exit, Refusal};
use crate::{output_file, terminal};

/// Renders the run and prints it, or writes it to a file.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let recording = RunRecording::open(&arguments.run)
        .map_err(|error| Refusal::because(Exit::Usage, error))?
        .ok_or_else(|| {
            let run = arguments.run.display();
            Refusal::new(
                Exit::NotMeasured,
                format!("{run} ended before anything was measured: there is nothing to report"),
            )
        })?;
    let format = if arguments.json { Format::Json } else { arguments.format };
    let text = render(&recording, format, terminal::style())?;
    match &arguments.output {
        Some(path) => output_file::write(path, text.as_bytes())?,
        None => terminal::print(&text)?,
    }
    let found = exit::is_found(&recording.document);
    Ok(if found { Exit::Finding } else { Exit::Done })
}

//! `plumb report`: any format of a recorded run, from the recording alone.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use plumb_measure::run::replace::replace;
use plumb_path::Severity;
use plumb_report::{Format, Reportable as _, Run, render};

use crate::arguments::ReportArguments;
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Renders the run and prints it, or writes it to a file.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Exit> {
    let recording = Run::open(&arguments.run)
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
        Some(path) => write(path, text.as_bytes())?,
        None => terminal::print(&text)?,
    }
    // A load measures what it was told to: that this is unusual is no finding, that data is at risk is.
    let least = match recording {
        Run::Check(_) => Severity::Warning,
        Run::Load(_) => Severity::Danger,
    };
    let found = recording.verdicts().iter().any(|verdict| verdict.severity >= least);
    Ok(if found { Exit::Finding } else { Exit::Done })
}

/// A regular file is replaced whole; a link is followed, and a device or a pipe is written to as it is.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let place = || format!("cannot write to {}", path.display());
            fs::OpenOptions::new()
                .write(true)
                .open(path)
                .and_then(|mut file| file.write_all(bytes))
                .with_context(place)
        }
        Ok(_) => {
            let place = || format!("cannot follow {}", path.display());
            Ok(replace(&fs::canonicalize(path).with_context(place)?, bytes)?)
        }
        Err(_) => Ok(replace(path, bytes)?),
    }
}

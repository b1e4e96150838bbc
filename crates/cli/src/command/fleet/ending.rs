//! Start and end of the recording of a fleet.

use plumb_block::in_one_line;
use plumb_fleet::merge;
use plumb_fleet::record::{self, Command, Recording};
use plumb_report::document::FleetRecording;
use plumb_report::{Format, Style};
use plumb_trial::TrialEnded;

use crate::command::running::exit_of_end;
use crate::exit::{self, Exit};
use crate::strictness::Strictness;
use crate::surroundings::{argv, time_of_day};
use crate::terminal;

/// Completes the recording with the answers of the hosts, and shows it.
pub(super) fn conclude(
    recording: Recording,
    mut answers: Vec<merge::Answer<'_>>,
    format: Format,
    style: Style,
    strictness: Strictness,
) -> anyhow::Result<Exit> {
    let mut document = record::document(&recording.begun, &mut answers);
    let kept = recording.finish(&document, &answers, document.incomplete_because.clone(), time_of_day());
    let exit = exit_of_recording(kept, &mut document.notes, &mut document.run_directory);
    let recording = FleetRecording::new(document, &record::histograms(&answers));
    terminal::show(&recording, format, style)?;
    terminal::say_report(recording.document.run_directory.as_ref());
    Ok(exit.and(exit::of_fleet(&recording.document, strictness)))
}

/// Returns the command for the recording, starting now.
pub(super) fn begun_now() -> Command {
    Command::new(argv(), time_of_day())
}

/// Returns the exit code for a recording that `ended` this way. An error is printed, and added to the notes
/// of the result.
pub(super) fn exit_of_recording(
    ended: plumb_measure::Result<()>,
    notes: &mut Vec<String>,
    run_directory: &mut Option<String>,
) -> Exit {
    let Err(error) = ended else { return Exit::Done };
    let why = format!("the recording is incomplete: {}", in_one_line(&error));
    terminal::say(&format!("plumb: {why}"));
    notes.push(why);
    *run_directory = None;
    exit_of_end(&TrialEnded::Complete.unrecorded(&error))
}

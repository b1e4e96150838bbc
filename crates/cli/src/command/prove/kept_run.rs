//! The run directory of a proof: the recording, the results of checks, what was found, and the page.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_measure::{Manifest, Out, RunDirectory};
use plumb_prove::proof::KeptRecording;
use plumb_prove::session::RecordedWork;
use plumb_report::document::proof::RecordingResult;
use plumb_report::{ProofDocument, Record};
use plumb_state::OutputFile;
use plumb_state::output::WriteError;
use plumb_state::whole_file::{Lasting, Mode, replace_with};

use crate::exit::{Exit, Refusal};
use crate::surroundings::time_of_day;
use crate::terminal;

const RECORDING: &str = "recording";
const CHECKS: &str = "checks.jsonl";

/// The run directory, if there is one.
pub(super) struct KeptRun {
    directory: Option<RunDirectory>,
}

impl KeptRun {
    /// Makes the directory and keeps the recording in it, unless it is there already: then the run goes on,
    /// with the results of the checks that were made.
    ///
    /// # Errors
    /// If it cannot be written. Nothing is left behind then.
    pub(super) fn begin(
        out: &Out,
        kept: &KeptRecording,
        argv: Vec<String>,
        seed: u64,
        started_at: &str,
        goes_on: bool,
    ) -> anyhow::Result<Self> {
        let manifest = Manifest::starting("prove", argv, seed, started_at);
        let directory = RunDirectory::create(out, &manifest).map_err(refusal)?;
        let directory = match directory {
            Some(directory) if !goes_on => directory,
            directory => return Ok(Self { directory }),
        };
        let path = directory.path();
        let begun = remove(&path.join(CHECKS)).and_then(|()| save(kept, &path.join(RECORDING)));
        if let Err(error) = begun {
            directory.abandon()?;
            return Err(error);
        }
        Ok(Self { directory: Some(directory) })
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.directory.as_ref().map(RunDirectory::path)
    }

    /// Returns the file for the results of checks.
    pub(super) fn checks(&self) -> Option<PathBuf> {
        Some(self.path()?.join(CHECKS))
    }

    /// Keeps what was found until now, for whoever finds the run after plumb was killed.
    pub(super) fn keep(&self, so_far: &ProofDocument) {
        let kept = self.directory.as_ref().map_or(Ok(()), |directory| directory.write_result(so_far));
        if let Err(error) = kept {
            terminal::say(&format!("plumb: {error}; the run continues without this result"));
        }
    }

    /// Keeps a further recording in which a state fails, with what belongs to the first.
    pub(super) fn keep_further(&self, number: u64, recorded: &RecordedWork, first: &KeptRecording) {
        let Some(run) = self.path() else { return };
        let kept = KeptRecording { recorded: recorded.clone(), ..first.clone() };
        if let Err(error) = save(&kept, &recording_with_number(run, number)) {
            terminal::say(&format!("plumb: {error:#}; the run continues without it"));
        }
    }

    /// Returns the further recording with this number, if it was kept.
    pub(super) fn kept_further(&self, number: u64) -> Option<RecordedWork> {
        load(&recording_with_number(self.path()?, number)).ok().map(|kept| kept.recorded)
    }

    /// Keeps the result and the page.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn finish(self, document: &ProofDocument) -> anyhow::Result<()> {
        let reason = document.incomplete_because.clone();
        Ok(Record::new(self.directory).close(document, reason, time_of_day())?)
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Where the recording cannot be: what was typed is wrong; else it failed.
fn refusal(error: plumb_measure::Error) -> Refusal {
    let exit = if error.is_of_the_place() { Exit::Usage } else { Exit::Failed };
    Refusal::because(exit, error)
}

/// Checks that a run can be kept there, as far as that can be said before anything is done.
pub(super) fn check(out: &Out) -> Result<(), Refusal> {
    RunDirectory::check(out).map_err(refusal)
}

/// Returns the file of the recording in a run directory.
pub(super) fn recording_of(run: &Path) -> PathBuf {
    run.join(RECORDING)
}

/// Returns the file of the recording with this number in a run directory: 0 is the first.
pub(super) fn recording_with_number(run: &Path, number: u64) -> PathBuf {
    match number {
        0 => recording_of(run),
        number => run.join(format!("{RECORDING}-{number}")),
    }
}

/// Returns the results of the further recordings of a run that was interrupted.
pub(super) fn further_of(run: &Path) -> Vec<RecordingResult> {
    match plumb_report::RunContents::open(run) {
        Ok(Some(plumb_report::RunContents::Proof(document))) => document.recordings,
        _ => Vec::new(),
    }
}

/// Writes a recording into the run directory, durably, or not at all.
fn save(kept: &KeptRecording, path: &Path) -> anyhow::Result<()> {
    let saved = replace_with(path, Mode::Kept, Lasting::Durable, |file| {
        let mut out = BufWriter::new(file);
        kept.save(&mut out).map_err(anyhow::Error::from)?;
        Ok::<(), anyhow::Error>(out.flush()?)
    });
    saved.with_context(|| format!("cannot keep the recording in {}", path.display()))
}

/// Writes a recording to the file that the user named for it.
///
/// # Errors
/// As [`OutputFile::write_with`].
pub(super) fn keep_in(output: OutputFile<'_>, kept: &KeptRecording) -> anyhow::Result<()> {
    written(output.write_with(|file| kept.save(file)))
}

fn written(outcome: Result<(), WriteError<plumb_prove::Error>>) -> anyhow::Result<()> {
    outcome.map_err(|error| match error {
        WriteError::Output(error) => Refusal::from(error).into(),
        WriteError::Content(error) => error.into(),
    })
}

/// Returns the refusal to write a log of dm-log-writes of anything but one drive.
pub(super) fn not_one_drive() -> Refusal {
    let message = "--keep-log-writes: a log is of one drive: choose ext4, xfs, btrfs, f2fs or none with --fs, and no \
                   further drive or cache";
    Refusal::new(Exit::Usage, message)
}

/// Writes the work as a log of dm-log-writes to the file that the user named for it.
///
/// # Errors
/// As [`keep_in`], and a usage error if the work was not recorded on one drive.
pub(super) fn keep_log_in(output: OutputFile<'_>, recorded: &RecordedWork) -> anyhow::Result<()> {
    let RecordedWork { recording, layout, until, .. } = recorded;
    if layout.is_some() || !recording.further_drives.is_empty() {
        return Err(not_one_drive().into());
    }
    written(output.write_with(|file| recording.save_log_writes(*until, file)))
}

/// Reads a recording that was kept.
///
/// # Errors
/// A usage error if the file is none.
pub(super) fn load(path: &Path) -> Result<KeptRecording, Refusal> {
    let wrong = |why: String| Refusal::new(Exit::Usage, format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    KeptRecording::load(BufReader::new(file)).map_err(|error| wrong(error.to_string()))
}

//! The run directory of a proof: the recording, the results of checks, the minimal cases, and the reports.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_measure::process::surroundings::{host, kernel};
use plumb_measure::{Manifest, Out, RunDirectory};
use plumb_prove::proof::{Case, Kept, Proof};
use plumb_report::document::proof::FailureClass;
use plumb_report::printable::shell_word;
use plumb_report::{Format, Style};

use crate::exit::{Exit, Refusal, usage};
use crate::surroundings::{argv, time_of_day};

const RECORDING: &str = "recording";
const CASES: &str = "cases.json";
const CHECKS: &str = "checks.jsonl";

/// The run directory, if there is one.
pub(super) struct KeptRun {
    directory: Option<RunDirectory>,
}

impl KeptRun {
    /// Makes the directory and keeps the recording in it. `goes_on`: with the results of an earlier run there.
    ///
    /// # Errors
    /// If it cannot be written. Nothing is left behind then.
    pub(super) fn begin(
        out: &Out,
        kept: &Kept,
        seed: u64,
        started_at: &str,
        goes_on: bool,
    ) -> anyhow::Result<Self> {
        let mut manifest = Manifest::starting("prove", argv(), seed, started_at);
        (manifest.kernel, manifest.host) = (kernel(), host());
        if goes_on {
            // What the options were, for the next time.
            manifest.argv = opened(out)?.manifest.argv;
        }
        let directory = RunDirectory::create(out, &manifest).map_err(refusal)?;
        let this = Self { directory };
        if let (Some(path), false) = (this.path(), goes_on) {
            let begun = remove(&path.join(CHECKS)).and_then(|()| save(kept, &path.join(RECORDING)));
            if let Err(error) = begun {
                remove(&path.join(RECORDING)).and_then(|()| this.abandon())?;
                return Err(error);
            }
        }
        Ok(this)
    }

    fn abandon(self) -> anyhow::Result<()> {
        Ok(self.directory.map_or(Ok(()), RunDirectory::abandon)?)
    }

    pub(super) fn path(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.path().to_owned())
    }

    /// The file for the results of checks.
    pub(super) fn checks(&self) -> Option<PathBuf> {
        Some(self.path()?.join(CHECKS))
    }

    /// The command that shows the failure of a class again.
    pub(super) fn replay(&self, class: FailureClass) -> String {
        match self.path() {
            Some(path) => {
                format!("plumb prove replay {} {}", shell_word(&path.display().to_string()), class.name())
            }
            None => "nothing was kept to show again: leave --no-record out".to_owned(),
        }
    }

    /// Keeps the result and the page.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn finish(self, proof: &Proof) -> anyhow::Result<()> {
        let Some(directory) = self.directory else { return Ok(()) };
        directory.write_file(CASES, &serde_json::to_vec_pretty(&proof.cases)?)?;
        directory.write_result(&proof.document)?;
        let page = plumb_report::render(&proof.document, Format::Html, Style::PLAIN)?;
        directory.write_file(Format::Html.file_name(), page.as_bytes())?;
        directory.finish(proof.document.incomplete_because.clone(), time_of_day())?;
        Ok(())
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
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

/// Whether a run can be kept there, as far as that can be said before anything is done.
pub(super) fn check(out: &Out) -> Result<(), Refusal> {
    RunDirectory::check(out).map_err(refusal)
}

/// The run in the directory of `out`.
fn opened(out: &Out) -> anyhow::Result<plumb_measure::Recording> {
    let Out::At { path, .. } = out else {
        return Err(Refusal::new(Exit::Usage, "no run to go on with").into());
    };
    Ok(plumb_measure::Recording::open(path).map_err(usage)?)
}

/// How the run in `run` was begun: its command line, and its seed.
pub(super) fn begun(run: &Path) -> anyhow::Result<(Vec<String>, u64)> {
    let recording = plumb_measure::Recording::open(run).map_err(usage)?;
    Ok((recording.manifest.argv, recording.manifest.seed))
}

/// The file of the recording in a run directory.
pub(super) fn recording_of(run: &Path) -> PathBuf {
    run.join(RECORDING)
}

/// Writes a recording to a file, durably, or not at all.
///
/// # Errors
/// As of the system, with the path.
pub(super) fn save(kept: &Kept, path: &Path) -> anyhow::Result<()> {
    let place = || format!("cannot keep the recording in {}", path.display());
    let file = File::create(path).with_context(place)?;
    let mut out = BufWriter::new(&file);
    let saved = kept.save(&mut out).map_err(anyhow::Error::from);
    let saved = saved.and_then(|()| Ok(out.flush()?)).and_then(|()| Ok(file.sync_all()?));
    if saved.is_err() {
        remove(path)?;
    }
    saved.with_context(place)
}

/// Reads a recording that was kept.
///
/// # Errors
/// A usage error if the file is none.
pub(super) fn load(path: &Path) -> Result<Kept, Refusal> {
    let wrong = |why: String| Refusal::new(Exit::Usage, format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    Kept::load(BufReader::new(file)).map_err(|error| wrong(error.to_string()))
}

/// The minimal cases of a run.
///
/// # Errors
/// A usage error if it has none.
pub(super) fn cases(run: &Path) -> Result<Vec<Case>, Refusal> {
    let path = run.join(CASES);
    let wrong = |why: String| {
        Refusal::new(Exit::Usage, format!("{}: {why}; expected the directory of a proof", path.display()))
    };
    let bytes = fs::read(&path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))
}

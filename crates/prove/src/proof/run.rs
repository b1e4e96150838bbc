//! Run directory of a proof: the recording, the results of checks, the document, and the page.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plumb_block::in_one_line;
use plumb_measure::{Manifest, Out, RunDirectory};
use plumb_report::document::proof::RecordingResult;
use plumb_report::{ProofDocument, Record, RunContents};

use super::kept::KeptRecording;
use crate::error::{Result, cannot};
use crate::session::RecordedWork;

const RECORDING: &str = "recording";
const CHECKS: &str = "checks.jsonl";

/// Run directory of a proof, if there is one.
#[derive(Default)]
pub struct ProofRun {
    kept: Option<RunFiles>,
    /// Results of the further recordings of a resumed run.
    pub(super) earlier: Vec<RecordingResult>,
}

struct RunFiles {
    directory: RunDirectory,
    first: KeptRecording,
    /// Receiver of messages about write errors during the run.
    say: fn(&str),
}

impl ProofRun {
    /// Checks, before anything is done, whether the run directory can be used.
    ///
    /// # Errors
    /// A usage error if it cannot.
    pub fn check(out: &Out) -> Result<()> {
        Ok(RunDirectory::check(out)?)
    }

    /// Creates the directory with the recording. With `resumes` the recording is already there, and the run
    /// continues with the existing results of checks.
    ///
    /// # Errors
    /// If the directory cannot be written. It is removed then.
    pub fn begin(
        out: &Out,
        manifest: &Manifest,
        first: &KeptRecording,
        resumes: bool,
        say: fn(&str),
    ) -> Result<Self> {
        let earlier = match out {
            Out::At { path, .. } if resumes => recordings_of(path),
            _ => Vec::new(),
        };
        let Some(directory) = RunDirectory::create(out, manifest)? else { return Ok(Self::default()) };
        let path = directory.path();
        let begun = match resumes {
            true => Ok(()),
            false => remove(&path.join(CHECKS)).and_then(|()| first.keep(&path.join(RECORDING))),
        };
        if let Err(error) = begun {
            directory.abandon()?;
            return Err(error);
        }
        Ok(Self { kept: Some(RunFiles { directory, first: first.clone(), say }), earlier })
    }

    /// Returns the path of the run directory; `None` if there is none.
    pub fn path(&self) -> Option<&Path> {
        self.kept.as_ref().map(|kept| kept.directory.path())
    }

    /// Returns the path of the file for the results of checks.
    pub fn checks(&self) -> Option<PathBuf> {
        Some(self.path()?.join(CHECKS))
    }

    /// Writes the interim document, which remains if plumb is killed.
    pub(super) fn keep(&self, interim: &ProofDocument) {
        let Some(RunFiles { directory, say, .. }) = &self.kept else { return };
        if let Err(error) = directory.write_result(interim) {
            say(&format!("{error}; the run continues without this result"));
        }
    }

    /// Writes a further recording with a failing state, with the facts of the first one.
    pub(super) fn keep_further(&self, number: u64, recorded: &RecordedWork) {
        let Some(RunFiles { directory, first, say }) = &self.kept else { return };
        let further = KeptRecording { recorded: recorded.clone(), ..first.clone() };
        if let Err(error) = further.keep(&recording_of(directory.path(), number)) {
            say(&format!("{}; the run continues without it", in_one_line(&error)));
        }
    }

    /// Returns the further recording with this number, if it was stored.
    pub(super) fn kept_further(&self, number: u64) -> Option<RecordedWork> {
        KeptRecording::open(&recording_of(self.path()?, number)).ok().map(|kept| kept.recorded)
    }

    /// Writes the document and the page.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn finish(self, document: &ProofDocument, ended_at: String) -> Result<()> {
        let reason = document.incomplete_because.clone();
        let directory = self.kept.map(|kept| kept.directory);
        Ok(Record::new(directory).close(document, reason, ended_at)?)
    }
}

/// Returns the path of the recording with this number in a run directory; 0 is the first.
pub fn recording_of(run: &Path, number: u64) -> PathBuf {
    match number {
        0 => run.join(RECORDING),
        number => run.join(format!("{RECORDING}-{number}")),
    }
}

/// Returns the results of the further recordings of an interrupted run.
fn recordings_of(run: &Path) -> Vec<RecordingResult> {
    match RunContents::open(run) {
        Ok(Some(RunContents::Proof(document))) => document.recordings,
        _ => Vec::new(),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(cannot(format!("remove {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Bytes, Nanos};
    use plumb_report::document::proof::{CoverageCounts, StateCounts, Writeback};

    use super::super::subject_words::SubjectWords;
    use super::*;
    use crate::file_system::FileSystem;
    use crate::recording::Recording;

    #[test]
    fn a_resumed_run_knows_the_recordings_that_were_explored() {
        let place = tempfile::tempdir().unwrap();
        let out = Out::At { path: place.path().join("run"), replace: true };
        let manifest = Manifest::starting("prove", Vec::new(), 1, "2026-01-01T00:00:00Z");
        let recorded = RecordedWork::new(Recording::of_blank(Bytes::kib(4), Bytes(512)), 0, 0);
        let subject = SubjectWords::BuiltIn("fsck".to_owned());
        let first = KeptRecording::new(subject, FileSystem::None, Nanos::secs(1), recorded);
        let begin = |resumes| ProofRun::begin(&out, &manifest, &first, resumes, |_| ()).unwrap();
        let explored = RecordingResult {
            number: 1,
            writeback: Writeback::Mixture { seed: 1 },
            states: StateCounts::default(),
            coverage: CoverageCounts::default(),
            profiles: Vec::new(),
        };
        begin(false).keep(&ProofDocument {
            schema: ProofDocument::SCHEMA.to_owned(),
            recordings: vec![explored],
            ..ProofDocument::default()
        });
        assert_eq!(begin(true).earlier.len(), 1);
        assert!(begin(false).earlier.is_empty(), "a run that replaces another begins anew");
    }
}

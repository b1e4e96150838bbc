//! Programs: application profiles that work on files, as the only worker of their span.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_application::{self as application, Directory, Limits, Profile, Variant};
use plumb_block::{Clock, FileStore};
use plumb_linux::{DirectoryStore, space};
use plumb_load::{Observer, TeamOutcome, WorkerOutcome};
use plumb_workload::Job;

use crate::counters::{SurveyedPath, survey};
use crate::error::TrialError;

/// Program of a span, and the directory below which it runs.
pub(crate) struct ProgramUse {
    /// Number of its span.
    pub(crate) span: usize,
    /// Profile of the program.
    pub(crate) profile: &'static Profile,
    variant: &'static Variant,
    directory: PathBuf,
    /// Absolute path of the directory.
    pub(crate) shown: String,
    /// Write path below the directory.
    pub(crate) surveyed: Arc<SurveyedPath>,
    /// Index of the storage below in [`Targets::beneath`](crate::targets::Targets).
    pub(crate) beneath: usize,
}

impl ProgramUse {
    /// Returns the program of a span's `job`; `None` if it has none. `beneath` is the index of the storage
    /// below.
    ///
    /// # Errors
    /// If the profile does not exist.
    pub(crate) fn of_job(span: usize, job: &Job, beneath: usize) -> Result<Option<Self>, TrialError> {
        let (Some(program), Some(target)) = (&job.program, job.targets.first()) else { return Ok(None) };
        let (profile, variant) = application::find(&program.profile)?;
        let typed = PathBuf::from(&target.name);
        let directory = std::path::absolute(&typed).unwrap_or(typed);
        let surveyed = Arc::new(survey(&directory));
        let shown = directory.display().to_string();
        Ok(Some(Self { span, profile, variant, directory, shown, surveyed, beneath }))
    }

    /// Runs the program of `job` with the random choices of this round. Returns its measurements as the only
    /// worker of the only team.
    ///
    /// # Errors
    /// If a limit is invalid; otherwise those of the first failed call.
    pub(crate) fn run(
        &self,
        job: &Job,
        round: u64,
        clock: &dyn Clock,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Vec<TeamOutcome>, TrialError> {
        let open = |path: &Path| -> plumb_block::Result<Box<dyn FileStore>> {
            Ok(Box::new(DirectoryStore::open(path)?))
        };
        let free = space::space_at(&self.directory).ok().map(|space| space.free);
        let directory = Directory { path: self.directory.clone(), free, open: &open };
        let program = job.program.as_ref();
        let limits = Limits {
            duration: job.workload.stop.duration,
            count: job.workload.stop.operations,
            threads: program.and_then(|program| program.threads),
            scale: program.and_then(|program| program.scale),
            seed: job.workload.seed.wrapping_add(round << 32),
        };
        let outcome =
            application::run(self.profile, self.variant, &directory, &limits, clock, stop, observer)?;
        Ok(vec![TeamOutcome { cpu: None, workers: vec![WorkerOutcome { outcome, ledger: None }] }])
    }
}

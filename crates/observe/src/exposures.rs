//! Loss that a power cut would cause, read again and again while an observation runs: `--exposure`.

use plumb_block::Nanos;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::exposure::{ExposureWatch, Live, ObservedExposure};
use plumb_path::{SurveyError, Target};

use crate::target::RequestedTarget;

/// Time between two readings.
const EVERY: Nanos = Nanos::secs(1);
/// Time between two readings that are served for months: looking through the open files of all processes
/// costs more than all else.
const EVERY_LIVE: Nanos = Nanos::secs(10);

/// Reason why it cannot be measured what a power cut would take.
#[derive(Debug, thiserror::Error)]
pub enum ExposureError {
    /// The target is a process.
    #[error(
        "--exposure needs a path or a device, but {0} is a process: name the directory where it writes, or use \
         --all"
    )]
    Process(u32),
    /// The target cannot be surveyed.
    #[error(transparent)]
    Survey(#[from] SurveyError),
}

/// Watches over the paths of the target.
#[derive(Default)]
pub struct Exposures {
    watches: Vec<ExposureWatch>,
    every: Nanos,
    next: Nanos,
}

impl Exposures {
    /// Surveys the target, and begins to watch its paths; what `is_served` for months is read less often.
    ///
    /// # Errors
    /// If the target is a process, or cannot be surveyed.
    pub fn open(wanted: &RequestedTarget, is_served: bool) -> Result<Self, ExposureError> {
        let target = match wanted {
            RequestedTarget::Place(place) => Target::Named(place.clone()),
            RequestedTarget::All => Target::All,
            RequestedTarget::Process(process) => return Err(ExposureError::Process(*process)),
        };
        let (survey, exposed) = plumb_path::survey_exposed(&LiveTree::new(), &LiveProbe::new(), &target)?;
        let targets = survey.paths.into_iter().map(|path| path.target);
        let watches = targets.zip(exposed).map(|(target, exposed)| ExposureWatch::new(target, exposed));
        let every = if is_served { EVERY_LIVE } else { EVERY };
        Ok(Self { watches: watches.collect(), every, next: Nanos::ZERO })
    }

    /// Reads, if it is time, and takes a sample otherwise. `servers` know what simulated drives and caches
    /// hold.
    pub fn look(&mut self, elapsed: Nanos, servers: &dyn Live) {
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        if elapsed < self.next {
            self.watches.iter_mut().for_each(|watch| watch.sample(&tree));
            return;
        }
        self.next = elapsed + self.every;
        for watch in &mut self.watches {
            watch.look(elapsed, &tree, &probe, servers);
        }
    }

    /// Returns what was seen until now.
    pub fn observed(&self) -> Vec<ObservedExposure> {
        self.watches.iter().map(|watch| watch.observed().clone()).collect()
    }

    /// Reads a last time, and ends all of it.
    pub fn finish(mut self, elapsed: Nanos, servers: &dyn Live) -> Vec<ObservedExposure> {
        self.next = elapsed;
        self.look(elapsed, servers);
        self.watches.into_iter().map(ExposureWatch::finish).collect()
    }
}

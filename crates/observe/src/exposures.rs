//! Data that a power cut would lose, sampled during an observation: `--exposure`.

use plumb_block::Nanos;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::exposure::{ExposureWatch, Live, ObservedExposure};
use plumb_path::{SurveyError, Target};

use crate::target::RequestedTarget;

/// Interval between two readings.
const EVERY: Nanos = Nanos::secs(1);
/// Interval between two readings of a long-running service: the search through the open files of all
/// processes costs more than everything else.
const EVERY_LIVE: Nanos = Nanos::secs(10);

/// Reason why the possible loss cannot be measured.
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

/// Monitors of the paths of the target.
#[derive(Default)]
pub struct Exposures {
    watches: Vec<ExposureWatch>,
    every: Nanos,
    next: Nanos,
}

impl Exposures {
    /// Surveys the target and begins to monitor its paths; with `is_served`, for a service that runs for
    /// months, readings are less frequent.
    ///
    /// # Errors
    /// Fails if the target is a process or cannot be surveyed.
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

    /// Takes a full reading if one is due, otherwise a sample. `servers` report the content of simulated
    /// drives and caches.
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

    /// Returns the observations so far.
    pub fn observed(&self) -> Vec<ObservedExposure> {
        self.watches.iter().map(|watch| watch.observed().clone()).collect()
    }

    /// Takes the last reading and ends the observation.
    pub fn finish(mut self, elapsed: Nanos, servers: &dyn Live) -> Vec<ObservedExposure> {
        self.next = elapsed;
        self.look(elapsed, servers);
        self.watches.into_iter().map(ExposureWatch::finish).collect()
    }
}

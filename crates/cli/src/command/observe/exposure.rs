//! Loss that a power cut would cause, read again and again while an observation runs: `--exposure`.

use plumb_block::Nanos;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_observe::RequestedTarget;
use plumb_path::Target;
use plumb_path::exposure::{ExposureWatch, ObservedExposure};

use crate::exit::{Exit, Refusal, usage};
use crate::live_state::Servers;

/// Time between two readings.
pub(super) const EVERY: Nanos = Nanos::secs(1);
/// Time between two readings that are served for months: looking through the open files of all processes
/// costs more than all else.
pub(super) const EVERY_LIVE: Nanos = Nanos::secs(10);

/// Watches over the paths of the target.
#[derive(Default)]
pub(super) struct Exposures {
    watches: Vec<ExposureWatch>,
    every: Nanos,
    next: Nanos,
}

impl Exposures {
    /// Surveys the target, and begins to watch its paths, with so much time between two readings.
    ///
    /// # Errors
    /// A usage error if the target is a process, or cannot be surveyed.
    pub(super) fn open(wanted: &RequestedTarget, every: Nanos) -> Result<Self, Refusal> {
        let target = match wanted {
            RequestedTarget::Place(place) => Target::Named(place.clone()),
            RequestedTarget::All => Target::All,
            RequestedTarget::Process(process) => {
                let problem = format!(
                    "--exposure needs a path or a device, but {process} is a process: name the directory \
                     where it writes, or use --all"
                );
                return Err(Refusal::new(Exit::Usage, problem));
            }
        };
        let (survey, exposed) =
            plumb_path::survey_exposed(&LiveTree::new(), &LiveProbe::new(), &target).map_err(usage)?;
        let targets = survey.paths.into_iter().map(|path| path.target);
        let watches = targets.zip(exposed).map(|(target, exposed)| ExposureWatch::new(target, exposed));
        Ok(Self { watches: watches.collect(), every, next: Nanos::ZERO })
    }

    /// Reads, if it is time, and takes a sample otherwise.
    pub(super) fn look(&mut self, elapsed: Nanos) {
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        if elapsed < self.next {
            self.watches.iter_mut().for_each(|watch| watch.sample(&tree));
            return;
        }
        self.next = elapsed + self.every;
        for watch in &mut self.watches {
            watch.look(elapsed, &tree, &probe, &Servers);
        }
    }

    /// Returns what was seen until now.
    pub(super) fn observed(&self) -> Vec<ObservedExposure> {
        self.watches.iter().map(|watch| watch.observed().clone()).collect()
    }

    /// Reads a last time, and ends all of it.
    pub(super) fn finish(mut self, elapsed: Nanos) -> Vec<ObservedExposure> {
        self.next = elapsed;
        self.look(elapsed);
        self.watches.into_iter().map(ExposureWatch::finish).collect()
    }
}

//! Repeated readings of the data that a power cut would lose: ages, bounds and the maximum.

use std::collections::BTreeMap;

use plumb_block::Nanos;
use plumb_linux::probe::Probe;
use plumb_linux::tree::Tree;
use serde::{Deserialize, Serialize};

use super::plan::ExposurePlan;
use super::read::Machine;
use super::{Exposure, Live};

/// Data that a power cut would have lost while a path was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedExposure {
    /// Target that was watched.
    pub target: String,
    /// Number of readings.
    pub readings: u64,
    /// The last reading.
    pub now: Exposure,
    /// Largest sum of the known parts in a reading.
    pub bytes_max_peak: u64,
    /// Time of the reading with that sum, in seconds since the first reading.
    pub peak_at: f64,
}

/// State of a watch over one path.
#[derive(Debug)]
pub struct ExposureWatch {
    exposed: ExposurePlan,
    started: Option<Nanos>,
    /// Time since which each part, by its index, has held data in every reading.
    since: BTreeMap<usize, Nanos>,
    observed: ObservedExposure,
}

impl ExposureWatch {
    /// Starts a watch over `target`, with the readings in `exposed`.
    pub fn new(target: String, exposed: ExposurePlan) -> Self {
        let observed = ObservedExposure { target, ..ObservedExposure::default() };
        Self { exposed, started: None, since: BTreeMap::new(), observed }
    }

    /// Takes a reading at the time `at`.
    pub fn look(&mut self, at: Nanos, tree: &dyn Tree, probe: &dyn Probe, live: &dyn Live) -> &Exposure {
        let is_watched = self.started.is_some();
        let started = *self.started.get_or_insert(at);
        let mut now = self.exposed.read(Machine { tree, probe, live }, is_watched);
        for (place, part) in now.parts.iter_mut().enumerate() {
            // Only data that is certain to exist has an age; an upper bound has none.
            if part.bytes_min == 0 {
                self.since.remove(&place);
                continue;
            }
            let since = *self.since.entry(place).or_insert(at);
            if part.age_min.is_none() && at > since {
                part.age_min = Some(at.since(since).as_secs_f64());
                part.age_min_unknown_because = None;
            }
        }
        if now.bytes_max >= self.observed.bytes_max_peak {
            self.observed.bytes_max_peak = now.bytes_max;
            self.observed.peak_at = at.since(started).as_secs_f64();
        }
        self.observed.readings += 1;
        self.observed.now = now;
        &self.observed.now
    }

    /// Samples the counters between two readings, which makes the next bound tighter.
    pub fn sample(&mut self, tree: &dyn Tree) {
        self.exposed.sample(tree);
    }

    /// Returns the observation so far.
    pub const fn observed(&self) -> &ObservedExposure {
        &self.observed
    }

    /// Ends the watch.
    pub fn finish(self) -> ObservedExposure {
        self.observed
    }
}

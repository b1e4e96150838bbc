//! Running a load: on this machine by its clock, on a simulated drive by the clock of its world.

use std::sync::Arc;

use plumb_block::{Nanos, Time};
use plumb_load::{LoadFailure, LoadOutcome, Worker};
use plumb_measure::process::surroundings::processor_times;
use plumb_workload::Stop;

use crate::ended::Mishap;
use crate::plan::{DRIVE_OPERATIONS_MAX, Phase};
use crate::request::Subject;
use crate::session::Session;
use crate::storage::Side;

impl Session<'_> {
    /// When a load of a phase ends.
    pub(crate) fn stop_after(&self, time: Nanos) -> Stop {
        match self.request.subject {
            Subject::Directory(_) => Stop::after(time),
            Subject::Drive(_) => Stop { operations: Some(DRIVE_OPERATIONS_MAX), ..Stop::after(time) },
        }
    }

    /// Runs a worker between two readings of the counters; also the share of time that the hypervisor took away, where
    /// that means anything.
    pub(crate) fn run(
        &mut self,
        phase: Phase,
        worker: Worker,
    ) -> Result<(LoadOutcome, Side, Option<f64>), Mishap> {
        let times = match self.request.subject {
            Subject::Directory(_) => processor_times(),
            Subject::Drive(_) => None,
        };
        let before = self.storage.watch.read();
        let outcome = self.drive(phase, worker)?;
        let side = self.storage.watch.between(before, self.storage.watch.read());
        let steal = times.and_then(|before| processor_times()?.steal_since(&before));
        Ok((outcome, side, steal))
    }

    /// Runs a worker and shows how far it is.
    pub(crate) fn drive(&mut self, phase: Phase, worker: Worker) -> Result<LoadOutcome, LoadFailure> {
        let stop = self.stop;
        let time = match &self.request.subject {
            Subject::Directory(_) => Time::Real(Arc::clone(&self.clock)),
            Subject::Drive(drive) => Time::Virtual(Arc::clone(&drive.clock)),
        };
        plumb_load::run(vec![worker], &time, stop, &mut |progress| self.show(phase, progress.elapsed))
    }
}

//! Execution of a plan, or of an interrupted journal, with a light load alongside.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plumb_block::RealClock;

use crate::apply::{Event, Progress, Report, apply_in, resume_in};
use crate::error::PolicyError;
use crate::light_load::LightLoad;
use crate::machine::Machine;
use crate::observe::{Observation, SwitchRecorder};
use crate::plan::{Plan, PlanError};

/// Job to execute.
#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    /// A new plan, with a journal in this directory.
    New {
        /// The plan.
        plan: &'a Plan,
        /// Directory of the journals.
        journals: &'a Path,
    },
    /// An interrupted journal.
    Resumed {
        /// Directory of the journal.
        journal: &'a Path,
        /// Plan of the journal.
        plan: &'a Plan,
    },
}

impl Job<'_> {
    /// Executes the job, with a load on the new file `beside` if given.
    ///
    /// # Errors
    /// If the plan or the file is refused, or the journal cannot be written.
    pub fn carry_out(
        &self,
        machine: &Machine,
        beside: Option<&Path>,
        stop: &AtomicBool,
        progress: Progress<'_>,
    ) -> Result<(Report, Option<Observation>), PolicyError> {
        let (Self::New { plan, .. } | Self::Resumed { plan, .. }) = self;
        // A plan that will be refused must not cause load on the disk.
        let found = plan.hash_now();
        if found != plan.hash {
            return Err(PlanError::Altered { found, written: plan.hash.clone() }.into());
        }
        let clock = RealClock::start();
        let load = beside.map(|file| LightLoad::start(&*machine.gateway, plan, file, clock)).transpose()?;
        let switches = SwitchRecorder::new(&clock, progress);
        let note = |event: &Event<'_>| switches.on(event);
        let session = machine.session(stop, &note);
        let ended = match self {
            Self::New { plan, journals } => apply_in(&session, plan, journals),
            Self::Resumed { journal, .. } => resume_in(&session, journal),
        };
        let samples = load.map(LightLoad::stop);
        let switches = switches.into_switches();
        let observation = samples.map(|samples| Observation::from_samples(&samples, &switches));
        Ok((ended?, observation))
    }
}

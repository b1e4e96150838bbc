//! A plan, or a journal that was cut off, carried out with a light load beside it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plumb_block::RealClock;

use crate::apply::{Progress, Report, apply_in, resume_in};
use crate::error::PolicyError;
use crate::light_load::LightLoad;
use crate::machine::Machine;
use crate::observe::{Observation, SwitchRecorder};
use crate::plan::{Plan, PlanError};

/// Job that is applied.
#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    /// A plan, from its beginning, with a journal in this directory.
    New {
        /// The plan.
        plan: &'a Plan,
        /// Directory of the journals.
        journals: &'a Path,
    },
    /// A journal, from where it was cut off.
    Resumed {
        /// Directory of the journal.
        journal: &'a Path,
        /// Plan of the journal.
        plan: &'a Plan,
    },
}

impl Job<'_> {
    /// Carries the job out, with a load on the new file `beside` if one is named.
    ///
    /// # Errors
    /// If the plan or the file is refused, or the journal cannot be kept.
    pub fn carry_out(
        &self,
        machine: &Machine,
        beside: Option<&Path>,
        stop: &AtomicBool,
        progress: &dyn Progress,
    ) -> Result<(Report, Option<Observation>), PolicyError> {
        let (Self::New { plan, .. } | Self::Resumed { plan, .. }) = self;
        // A plan that will be refused is not to cost the disk a load.
        let found = plan.hash_now();
        if found != plan.hash {
            return Err(PlanError::Altered { found, written: plan.hash.clone() }.into());
        }
        let clock = RealClock::start();
        let load = beside.map(|file| LightLoad::start(&*machine.gateway, plan, file, clock)).transpose()?;
        let switches = SwitchRecorder::new(&clock, progress);
        let session = machine.session(stop, &switches);
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

//! `policy=off,on,protected`: the write-cache policy of disks, planned, applied and read back as by
//! `plumb policy`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_policy::apply::{Report, apply};
use plumb_policy::error::PolicyError;
use plumb_policy::journal::{DirectoryStore, JournalStore as _, Lock};
use plumb_policy::plan::{self, Ask, DiskSelection, Plan, PlanRequest};
use plumb_policy::state::State;
use plumb_trial::TrialError;

use super::record::Changes;
use super::undo::{Machine, Undo, verified};
use super::{Setting, failed, refused};

/// Setting of the policies of disks.
pub struct PolicySetting {
    changes: Changes,
    disks: Vec<String>,
    levels: Vec<State>,
    /// Disks that a kept journal can restore.
    covered: BTreeSet<String>,
    applied: usize,
}

impl PolicySetting {
    /// Creates the setting of the policies `levels` of `disks`, given by their kernel names.
    pub fn new(machine: Arc<Machine>, disks: Vec<String>, levels: Vec<State>) -> Self {
        let changes = Changes::new(machine);
        Self { changes, disks, levels, covered: BTreeSet::new(), applied: 0 }
    }

    /// Applies a plan with a journal of its own, which is kept if it is the first that changes some disk.
    fn apply(&mut self, plan: &Plan) -> Result<Report, TrialError> {
        let machine = Arc::clone(self.changes.machine());
        let of_journal = |error| failed(&PolicyError::Journal(error));
        let _lock = Lock::take(&machine.journals).map_err(of_journal)?;
        self.applied += 1;
        let id = format!("compare-{}-{}", std::process::id(), self.applied);
        let store = DirectoryStore::create(&machine.journals, &id).map_err(of_journal)?;
        let journal = store.place();
        let known = self.covered.len();
        self.covered.extend(plan.changes.iter().map(|change| change.name.clone()));
        let is_first = self.covered.len() > known;
        if is_first {
            self.changes.promise(Undo::Policy { journal: journal.clone() })?;
        }
        let stop = AtomicBool::new(false);
        let report = apply(&machine.session(&stop), plan, Box::new(store)).map_err(|error| failed(&error))?;
        if !is_first && report.failure().is_none() {
            // Earlier journals can restore these disks; a journal that cannot be removed does no harm.
            std::fs::remove_dir_all(&journal).unwrap_or_default();
        }
        Ok(report)
    }
}

impl Setting for PolicySetting {
    fn set(&mut self, level: usize) -> Result<(), TrialError> {
        let state = self.levels[level];
        self.changes.hold(&self.disks)?;
        let machine = Arc::clone(self.changes.machine());
        let wanted = DiskSelection::Named(self.disks.clone());
        let ask = Ask::new(PlanRequest::from(state), wanted, &machine.claims, machine.now);
        let plan = plan::make(&*machine.gateway, &ask).map_err(|unseen| failed(&unseen))?;
        if let Some(disk) = plan.refused.first() {
            let (name, word) = (&disk.name, state.word());
            return Err(refused(format!(
                "policy={word} of {name} is refused: {}; {}",
                disk.reason, disk.remedy
            )));
        }
        if plan.changes.is_empty() {
            return Ok(());
        }
        verified(&self.apply(&plan)?)
    }

    fn restore(&mut self) -> Result<(), TrialError> {
        self.changes.restore()?;
        self.covered.clear();
        Ok(())
    }
}

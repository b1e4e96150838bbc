//! `scheduler=none,mq-deadline`: the kernel's I/O scheduler for the disks beneath the targets
//! (Documentation/block/switching-sched.rst).

use std::path::PathBuf;
use std::sync::Arc;

use plumb_block::FailureKind;
use plumb_linux::isolated_thread;
use plumb_trial::TrialError;

use super::Setting;
use super::record::Changes;
use super::undo::{Machine, Undo};

/// Setting of the schedulers of disks.
pub struct SchedulerSetting {
    changes: Changes,
    disks: Vec<String>,
    levels: Vec<String>,
}

/// Content of `queue/scheduler`.
struct Choice {
    path: PathBuf,
    now: String,
    offered: Vec<String>,
}

impl Choice {
    fn read(machine: &Machine, disk: &str) -> Option<Self> {
        let path = format!("/sys/class/block/{disk}/queue/scheduler");
        let text = machine.gateway.tree().text(&path).ok()?;
        let is_now = |word: &&str| word.starts_with('[') && word.ends_with(']');
        let now = text.split_whitespace().find(is_now)?.trim_matches(['[', ']']).to_owned();
        let offered = text.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned());
        Some(Self { path: path.into(), now, offered: offered.collect() })
    }
}

impl SchedulerSetting {
    /// Creates the setting of the schedulers `levels` on the first of `ways` (lists of kernel names of disks)
    /// whose disks all offer all levels.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(
        machine: Arc<Machine>,
        ways: &[Vec<String>; 2],
        levels: Vec<String>,
    ) -> Result<Self, TrialError> {
        let offered =
            |disk: &String| Choice::read(&machine, disk).map_or(Vec::new(), |choice| choice.offered);
        let offers = |disk: &String| levels.iter().all(|level| offered(disk).contains(level));
        let fits = |disks: &&Vec<String>| !disks.is_empty() && disks.iter().all(offers);
        if let Some(disks) = ways.iter().find(fits).cloned() {
            return Ok(Self { changes: Changes::new(machine), disks, levels });
        }
        let mut disks = ways.concat();
        disks.sort();
        disks.dedup();
        let each: Vec<_> =
            disks.iter().map(|disk| format!("{disk} offers {}", list(&offered(disk)))).collect();
        let problem = format!(
            "scheduler={}: {}; name levels that the disks beneath offer (queue/scheduler in /sys/block; `modprobe bfq` and the \
             like may add some)",
            levels.join(","),
            if each.is_empty() { "no disk is known beneath the target".to_owned() } else { each.join(", ") }
        );
        Err(TrialError::new(FailureKind::Usage, problem))
    }
}

fn list(words: &[String]) -> String {
    if words.is_empty() { "no scheduler".to_owned() } else { words.join(", ") }
}

impl Setting for SchedulerSetting {
    fn set(&mut self, level: usize) -> Result<(), TrialError> {
        self.changes.hold(&self.disks)?;
        let machine = Arc::clone(self.changes.machine());
        let level = &self.levels[level];
        for disk in &self.disks {
            let gone =
                || TrialError::new(FailureKind::Failed, format!("{disk} no longer has queue/scheduler"));
            let choice = Choice::read(&machine, disk).ok_or_else(gone)?;
            if choice.now == *level {
                continue;
            }
            let (path, boot) = (choice.path, machine.boot());
            self.changes.promise(Undo::Attribute { path: path.clone(), text: choice.now, boot })?;
            isolated_thread::write(path.clone(), level.clone()).map_err(|error| {
                let problem = format!("cannot write {level} to {}: {error}", path.display());
                TrialError::new(FailureKind::Failed, problem)
            })?;
            let found = Choice::read(&machine, disk).ok_or_else(gone)?.now;
            if found != *level {
                let problem = format!("{} says {found} after {level} was written to it", path.display());
                return Err(TrialError::new(FailureKind::Failed, problem));
            }
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<(), TrialError> {
        self.changes.restore()
    }
}

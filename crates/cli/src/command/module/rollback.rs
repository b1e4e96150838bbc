//! `plumb_rollback`: back to the write caches, and to what was kept of them, before an apply.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::parameters::Parameters;
use super::policy::{KEPT_BEFORE, Kept, ended};
use super::reading::{journals, named_or_newest};
use super::{Done, Failure, Task, difference, entries, shown, text, why};

/// The state of a disk that was not found.
const GONE: &str = "not there";

/// What `plumb_rollback` takes.
pub(super) struct Rollback {
    journal: Option<PathBuf>,
    journals: PathBuf,
}

impl Rollback {
    pub(super) fn of(given: &mut Parameters) -> Result<Self, Failure> {
        Ok(Self { journal: given.path("journal")?, journals: journals(given)? })
    }
}

impl Task<'_> {
    pub(super) fn rollback(&mut self, asked: &Rollback) -> Done {
        let journal = named_or_newest(asked.journal.as_ref(), &asked.journals)?;
        let snapshot = snapshot_of(&journal)?;
        let changes: Vec<&Value> = entries(&snapshot["plan"], "changes").collect();
        let before = self.states(&changes)?;
        let now_kept = self.kept()?;
        // Where it is not there the apply did not touch what is kept.
        let kept_before = std::fs::read(journal.join(KEPT_BEFORE)).unwrap_or_default();
        let kept_before: Value = serde_json::from_slice(&kept_before).unwrap_or_default();
        let is_of_apply = |change: &&&Value| {
            let (identity, to) = (text(change, "identity"), text(change, "to"));
            now_kept.has(identity, to) && kept_before[identity] != to
        };
        let forgotten: Vec<&&Value> = changes.iter().filter(is_of_apply).collect();
        self.tell("journal", json!(journal));
        self.tell("forgotten", forgotten.iter().map(|change| change["name"].clone()).collect());
        // First: it would be brought back when the disk changes.
        self.forget(&forgotten.iter().map(|change| text(change, "identity")).collect::<Vec<_>>())?;
        let (after, rolled) = if self.check_mode {
            let begun = begun(&journal)?;
            let states = changes.iter().zip(&before).map(|(change, state)| {
                let restored = begun.contains(text(change, "name"));
                if restored { text(change, "from") } else { state }.to_owned()
            });
            (states.collect(), None)
        } else {
            let words = ["policy", "rollback", "--json", "--", &journal.display().to_string()];
            let rolled = self.program.document(&words, "plumb/policy-apply/1", &[0, 4, 5])?;
            (self.states(&changes)?, Some(rolled))
        };
        let lines = changes.iter().zip(before.iter().zip(&after));
        let lines: Vec<_> =
            lines.map(|(disk, (before, after))| (shown(disk), before.clone(), after.clone())).collect();
        self.tell("diff", difference(&lines));
        self.tell("changed", json!(before != after || !forgotten.is_empty()));
        let Some((exit, report)) = rolled else { return Ok(()) };
        self.tell("report", report.clone());
        ended(exit, &report)?;
        self.keep_again(&changes, (&kept_before, &now_kept), &after)
    }

    /// Has kept again what was kept `before` the apply, and is not kept `now`: only the state that a disk is in can be.
    fn keep_again(&mut self, changes: &[&Value], (before, now): (&Value, &Kept), states: &[String]) -> Done {
        let mut again = Vec::new();
        for (change, is) in changes.iter().zip(states) {
            let (name, identity) = (text(change, "name"), text(change, "identity"));
            let Some(state) = before[identity].as_str().filter(|state| !now.has(identity, state)) else {
                continue;
            };
            if is != state {
                self.warn(&format!("{name} was kept {state}, is {is} now, and is not kept any more"));
            } else if self.program.lasting().is_none() {
                self.warn(&format!("{name} was kept {state} and is not any more: name a plumb that stays on the host with `plumb`"));
            } else {
                again.push(name);
            }
        }
        self.tell("kept_again", json!(again));
        if again.is_empty() {
            return Ok(());
        }
        self.tell("changed", json!(true));
        self.persist(None, &again)
    }

    /// The states of these disks now.
    fn states(&self, changes: &[&Value]) -> Result<Vec<String>, Failure> {
        let (_, document) =
            self.program.document(&["policy", "show", "--json"], "plumb/policy/1", &[0, 1])?;
        let state = |change: &&Value| {
            let same = |device: &&Value| text(device, "identity") == text(change, "identity");
            let device = entries(&document, "devices").find(same);
            device.map_or(GONE, |device| text(device, "state")).to_owned()
        };
        Ok(changes.iter().map(state).collect())
    }
}

/// The snapshot that an apply made before its first change.
fn snapshot_of(journal: &Path) -> Result<Value, Failure> {
    let file = journal.join("snapshot.json");
    let failed = |what: &str| {
        Failure::new(format!("{} is no journal of an apply: {}: {what}", journal.display(), file.display()))
    };
    let bytes = std::fs::read(&file).map_err(|error| failed(&why(&error)))?;
    serde_json::from_slice(&bytes).map_err(|_| failed("it is not JSON"))
}

/// The disks on which the apply began a step, by the journal: others are not restored.
fn begun(journal: &Path) -> Result<HashSet<String>, Failure> {
    let file = journal.join("journal.log");
    let failed = |error: std::io::Error| Failure::new(format!("{}: {error}", file.display()));
    let log = std::fs::read_to_string(&file).map_err(failed)?;
    // Half a line at the end is a record that was not written: what it announces did not begin.
    let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let intents = records.filter(|record| text(record, "record") == "intent");
    Ok(intents.map(|record| text(&record, "disk").to_owned()).collect())
}

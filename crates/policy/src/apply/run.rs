//! Execution of a whole plan, from the first check to the last wave, and resumption of an interrupted one.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use plumb_block::Nanos;
use plumb_text::shell_word;

use super::check::{Extent, among_agreed, as_agreed, same_cache, unchanged};
use super::disk::{StepsEnded, Worker, in_words};
use super::progress::{Event, Progress};
use super::report::{ApplyEnd, DiskReport, DiskResult, Report};
use crate::claims::Claims;
use crate::device::{InventoryError, Reader};
use crate::error::PolicyError;
use crate::gateway::Gateway;
use crate::journal::{
    DirectoryStore, DiskBefore, Journal, JournalError, JournalStore, Lock, Phase, Record, Snapshot,
};
use crate::mechanism::{self, Material, Step};
use crate::plan::{Plan, PlanError, PlannedChange, boot_id, judge, kernel_release, route};
use crate::time_text::{now_name, now_text};
use crate::view::Refusal;

/// Maximum age of the inventory (which devices are stacked on which) at the start of a wave. Each disk is
/// read again before its change, and its identity is checked with every step.
const INVENTORY_LASTS: Nanos = Nanos::secs(1);

/// Environment of an apply, a resume or a rollback.
pub struct Session<'a> {
    /// The machine.
    pub gateway: &'a dyn Gateway,
    /// Administrators' claims.
    pub claims: &'a Claims,
    /// Current time, for the expiry of claims.
    pub now: Timestamp,
    /// Flag that another thread sets to stop the run between two steps.
    pub stop: &'a AtomicBool,
    /// Callback for progress events.
    pub progress: Progress<'a>,
}

impl<'a> Session<'a> {
    pub(crate) fn reader(&self) -> Result<Reader<'a>, InventoryError> {
        Reader::new(self.gateway, self.claims, self.now)
    }
}

/// Applies a plan with a new journal below `root`, under its lock.
///
/// # Errors
/// Fails as [`apply`] does; [`JournalError::Busy`] if the lock is held.
pub fn apply_in(session: &Session<'_>, plan: &Plan, root: &Path) -> Result<Report, PolicyError> {
    apply_as(session, plan, root, "")
}

/// Applies a plan as [`apply_in`] does, with a `prefix` for the name of the journal, which is otherwise a
/// time. A rollback without a name restores the newest journal without a prefix.
///
/// # Errors
/// Fails as [`apply_in`] does.
pub fn apply_as(
    session: &Session<'_>,
    plan: &Plan,
    root: &Path,
    prefix: &str,
) -> Result<Report, PolicyError> {
    let _lock = Lock::take(root)?;
    // A refused plan leaves no directory.
    let snapshot = check_plan(session, plan)?;
    let digits = plan.hash.strip_prefix("sha256:").and_then(|hash| hash.get(..8)).unwrap_or("plan");
    let store = DirectoryStore::create(root, &format!("{prefix}{}-{digits}", now_name()))?;
    begin(session, snapshot, Box::new(store))
}

/// Resumes the journal in `directory`, under the lock of its parent.
///
/// # Errors
/// Fails as [`resume`] does; [`JournalError::Busy`] if the lock is held.
pub fn resume_in(session: &Session<'_>, directory: &Path) -> Result<Report, PolicyError> {
    let _lock = Lock::take(directory.parent().unwrap_or(directory))?;
    resume(session, Journal::open(directory)?)
}

/// Applies a plan. The caller must hold the [`Lock`].
///
/// # Errors
/// Without any change: if the plan was altered or is from another boot, a disk does not match the plan, or
/// the snapshot could not be made durable. Later only if the journal cannot be written. All other problems
/// are in the report.
pub fn apply(
    session: &Session<'_>,
    plan: &Plan,
    store: Box<dyn JournalStore>,
) -> Result<Report, PolicyError> {
    let snapshot = check_plan(session, plan)?;
    begin(session, snapshot, store)
}

fn begin(
    session: &Session<'_>,
    snapshot: Snapshot,
    store: Box<dyn JournalStore>,
) -> Result<Report, PolicyError> {
    let journal = Journal::begin(store, snapshot)?;
    run(session, journal, HashSet::new())
}

/// Resumes an interrupted plan. Verified disks are read back again, started ones are completed from their
/// present state, and the others are checked as at the beginning. A repeated call has no further effect.
///
/// # Errors
/// Without any change: if the journal is being rolled back, or is from another boot. Otherwise fails as
/// [`apply`] does.
pub fn resume(session: &Session<'_>, mut journal: Journal) -> Result<Report, PolicyError> {
    let rollback = |record: &Record| matches!(record, Record::Reopened { phase: Phase::Rollback, .. });
    if journal.entries().iter().any(|entry| rollback(&entry.record)) {
        return Err(PolicyError::NotPossible {
            reason: "this journal was rolled back, or is being rolled back".to_owned(),
            remedy: "finish the rollback with `plumb policy rollback`, or apply a new plan".to_owned(),
        });
    }
    let boot_id = boot_id(session.gateway);
    if journal.snapshot().boot_id != boot_id {
        return Err(PolicyError::Plan(PlanError::OtherBoot));
    }
    let begun = journal.begun();
    journal.record(Record::Reopened { phase: Phase::Apply, boot_id })?;
    run(session, journal, begun)
}

/// Checks the plan and all of its disks, and reads everything that a rollback needs.
fn check_plan(session: &Session<'_>, plan: &Plan) -> Result<Snapshot, PolicyError> {
    let found = plan.hash_now();
    if found != plan.hash {
        return Err(PlanError::Altered { found, written: plan.hash.clone() }.into());
    }
    let boot_id = boot_id(session.gateway);
    if boot_id != plan.boot_id {
        return Err(PlanError::OtherBoot.into());
    }
    let reader = session.reader()?;
    let mut disks = Vec::with_capacity(plan.changes.len());
    for change in &plan.changes {
        let checked = check_disk(session, &reader, change, Extent::Everything).and_then(|(before, steps)| {
            as_agreed(change, &steps)?;
            Ok(before)
        });
        disks.push(checked.map_err(|Refusal { reason, remedy }| PolicyError::Refused {
            disk: change.name.clone(),
            reason,
            remedy,
        })?);
    }
    Ok(Snapshot {
        schema: Snapshot::SCHEMA.to_owned(),
        made_at: now_text(),
        boot_id,
        kernel: kernel_release(session.gateway),
        plan: plan.clone(),
        disks,
    })
}

/// Reads a disk, and refuses it if it does not match the plan or may no longer be changed. Also returns the
/// steps from its present state to the goal.
fn check_disk(
    session: &Session<'_>,
    reader: &Reader<'_>,
    change: &PlannedChange,
    extent: Extent,
) -> Result<(DiskBefore, Vec<Step>), Refusal> {
    let mut view = reader.one(&change.name).map_err(|_| {
        Refusal::new(
            format!("{} no longer exists", change.name),
            "check with `plumb policy show --all`, and make a new plan",
        )
    })?;
    unchanged(change, &view, extent)?;
    same_cache(reader, change, &view)?;
    // A state forced by SCT on the way to the goal must not stop the change half-way.
    if extent == Extent::AllButTheCache && change.saved.is_some() && view.device.sct.is_some() {
        view.refusal = None;
    }
    judge(&view, change.to, session.claims, session.now)?;
    let material = Material::read(reader, &view)?;
    let found = mechanism::read_back(session.gateway, &material);
    let steps = route(reader, &view, &material, change.to, change.goal())?;
    Ok((DiskBefore { view, material, found }, steps))
}

/// Runs all waves, up to the first disk that is not verified.
fn run(session: &Session<'_>, mut journal: Journal, begun: HashSet<String>) -> Result<Report, PolicyError> {
    let changes = journal.snapshot().plan.changes.clone();
    let place = journal.place();
    (session.progress)(&Event::Begun { disks: changes.len(), journal: &place });
    let mut run = Run { session, begun, started_at: session.gateway.now(), done: 0, total: changes.len() };
    let mut results: Vec<DiskResult> = Vec::with_capacity(changes.len());
    let (mut reader, mut read_at) = (session.reader()?, session.gateway.now());
    for wave in changes.chunk_by(|left, right| left.wave == right.wave) {
        if session.gateway.now().since(read_at) > INVENTORY_LASTS {
            match session.reader() {
                Ok(now) => (reader, read_at) = (now, session.gateway.now()),
                Err(unseen) => {
                    let reason = format!("plumb can no longer see what uses the disks: {unseen}");
                    let remedy = "find out why, then continue".to_owned();
                    results.push(DiskResult::Refused { reason, remedy });
                    break;
                }
            }
        }
        run.wave(&mut journal, &reader, wave, &mut results)?;
        if results.iter().any(|result| *result != DiskResult::Verified) {
            break;
        }
    }
    let ended = ended(&results);
    journal.record(ended.record(Phase::Apply))?;
    results.resize(changes.len(), DiskResult::Untouched);
    let disks = changes.iter().zip(results).map(|(change, result)| DiskReport {
        name: change.name.clone(),
        identity: change.identity.clone(),
        result,
    });
    let go_on = (ended != ApplyEnd::Complete).then(|| how_to_go_on(&place));
    Ok(Report { schema: Report::SCHEMA.to_owned(), disks: disks.collect(), journal: place, ended, go_on })
}

fn ended(results: &[DiskResult]) -> ApplyEnd {
    let last = results.iter().find(|result| **result != DiskResult::Verified);
    match last {
        None => ApplyEnd::Complete,
        Some(DiskResult::Refused { .. }) => ApplyEnd::Refused,
        Some(DiskResult::Interrupted | DiskResult::Untouched) => ApplyEnd::Interrupted,
        Some(_) => ApplyEnd::Failed,
    }
}

fn how_to_go_on(place: &Path) -> String {
    let place = shell_word(&place.to_string_lossy());
    format!(
        "`plumb policy rollback {place}` restores the old state; `plumb policy apply --resume {place}` \
         continues"
    )
}

struct Run<'a> {
    session: &'a Session<'a>,
    begun: HashSet<String>,
    started_at: Nanos,
    done: usize,
    total: usize,
}

impl Run<'_> {
    fn wave(
        &mut self,
        journal: &mut Journal,
        reader: &Reader<'_>,
        wave: &[PlannedChange],
        results: &mut Vec<DiskResult>,
    ) -> Result<(), JournalError> {
        let number = wave.first().map_or(0, |change| change.wave);
        (self.session.progress)(&Event::WaveBegun { wave: number, disks: wave.len() });
        let mut changed = Vec::with_capacity(wave.len());
        for change in wave {
            let (result, material) = self.disk(journal, reader, change)?;
            let stop = result != DiskResult::Verified;
            results.push(result);
            changed.extend(material.map(|material| (change, material)));
            if stop {
                return Ok(());
            }
        }
        let first = results.len() - wave.len();
        for (index, (change, material)) in changed.iter().enumerate() {
            let found = mechanism::read_back(self.session.gateway, material);
            let differs = mechanism::disagreements(material.kind, change.goal(), &found);
            if !differs.is_empty() {
                let found = format!("it did not stay that way: {}", in_words(&differs));
                let (phase, disk) = (Phase::Apply, change.name.clone());
                journal.record(Record::Mismatch { phase, disk, found: found.clone() })?;
                results[first + index] = DiskResult::Mismatch { found };
                return Ok(());
            }
        }
        (self.session.progress)(&Event::WaveEnded { wave: number });
        Ok(())
    }

    /// Processes one disk. Returns the material if it could be read.
    fn disk(
        &mut self,
        journal: &mut Journal,
        reader: &Reader<'_>,
        change: &PlannedChange,
    ) -> Result<(DiskResult, Option<Material>), JournalError> {
        if self.session.stop.load(Ordering::Relaxed) {
            return Ok((DiskResult::Untouched, None));
        }
        (self.session.progress)(&Event::DiskBegun {
            disk: &change.name,
            done: self.done,
            total: self.total,
            remaining: self.remaining(),
        });
        // Disks changed earlier no longer match the plan.
        let is_begun = self.begun.contains(&change.name);
        let extent = if is_begun { Extent::AllButTheCache } else { Extent::Everything };
        let checked = check_disk(self.session, reader, change, extent)
            .and_then(|(now, steps)| among_agreed(change, &steps).map(|()| (now, steps)));
        let (now, steps) = match checked {
            Ok(checked) => checked,
            Err(Refusal { reason, remedy }) => return Ok((DiskResult::Refused { reason, remedy }, None)),
        };
        let mut worker = Worker { session: self.session, journal, phase: Phase::Apply, disk: &change.name };
        let result = match worker.carry_out(&steps)? {
            StepsEnded::Interrupted => DiskResult::Interrupted,
            StepsEnded::Failed(error) => {
                worker.give_up(&error, &mechanism::read_back(self.session.gateway, &now.material))
            }
            StepsEnded::All => {
                let outcome = mechanism::settle(self.session.gateway, &now.material, change.goal());
                worker.conclude(&outcome)?
            }
        };
        self.done += 1;
        Ok((result, Some(now.material)))
    }

    fn remaining(&self) -> Option<Nanos> {
        let done = self.done as u64;
        let passed = self.session.gateway.now().since(self.started_at);
        let left = (self.total - self.done) as u64;
        (done > 0).then(|| Nanos(passed.0.saturating_mul(left) / done))
    }
}

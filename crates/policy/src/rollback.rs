//! Rollback: every disk that was started is restored from the snapshot, the last first, and read back.
//!
//! Disks are found by identity, so a rollback works in a later boot, too. Repeating it has no further effect.
//! A disk that cannot be restored does not prevent the restoration of others.
//!
//! A disk counts as restored if the drive's cache and its initial state are as before, and with an enabled
//! cache the kernel sends or suppresses flushes as before. With a disabled cache the kernel's view does not
//! matter, and a layer above that forwards more flushes than before is harmless: neither is restored by
//! force.
//!
//! Limitation: a heal is not rolled back, since that would restore the trap.

use std::path::Path;
use std::sync::atomic::Ordering;

use plumb_block::Nanos;
use plumb_text::shell_word;

use crate::apply::{ApplyEnd, DiskReport, DiskResult, Event, Report, Session, StepsEnded, Worker};
use crate::device::Reader;
use crate::error::PolicyError;
use crate::journal::{DiskBefore, Journal, JournalError, Lock, Phase, Record};
use crate::mechanism::{
    self, Disagreement, Goal, Kind, Material, Outcome, ReadBack, SETTLE_MAX, Step, settle_until,
};
use crate::plan::{PlanRequest, PlannedChange, boot_id, to_goal};
use crate::state::{State, on_off};
use crate::view::{DeviceView, Refusal};

/// Time after which irrelevant differences are ignored. libata reads a drive again within 32 ms, and the
/// kernel's view is not final before.
const FORGIVE_AFTER: Nanos = Nanos::millis(200);

/// Rolls back the journal in `directory`, under the lock of its parent.
///
/// # Errors
/// Fails as [`rollback`] does; [`JournalError::Busy`] if the lock is held.
pub fn rollback_in(session: &Session<'_>, directory: &Path) -> Result<Report, PolicyError> {
    let _lock = Lock::take(directory.parent().unwrap_or(directory))?;
    rollback(session, Journal::open(directory)?)
}

/// Restores every disk that was changed. The caller must hold the [`Lock`].
///
/// # Errors
/// Without any change: if the journal is of a heal. Later only if the journal cannot be written. All other
/// problems are in the report.
pub fn rollback(session: &Session<'_>, mut journal: Journal) -> Result<Report, PolicyError> {
    if journal.snapshot().plan.asked == PlanRequest::Heal {
        return Err(PolicyError::NotPossible {
            reason: "a heal is not rolled back: flushes would be lost again".to_owned(),
            remedy: "if a disk is protected, say so with `plumb policy claim` and plan `protected`"
                .to_owned(),
        });
    }
    let place = journal.place();
    let snapshot = journal.snapshot();
    let touched = journal.begun();
    let mut work: Vec<(PlannedChange, DiskBefore)> =
        snapshot.plan.changes.iter().cloned().zip(snapshot.disks.iter().cloned()).collect();
    work.retain(|(change, _)| touched.contains(&change.name));
    work.reverse();
    let reader = session.reader()?;
    journal.record(Record::Reopened { phase: Phase::Rollback, boot_id: boot_id(session.gateway) })?;
    (session.progress)(&Event::Begun { disks: work.len(), journal: &place });
    let total = work.len();
    let mut disks = Vec::with_capacity(total);
    for (done, (change, before)) in work.iter().enumerate() {
        let result = if session.stop.load(Ordering::Relaxed) {
            DiskResult::Untouched
        } else {
            (session.progress)(&Event::DiskBegun { disk: &change.name, done, total, remaining: None });
            one(session, &mut journal, &reader, change, before)?
        };
        disks.push(DiskReport { name: change.name.clone(), identity: change.identity.clone(), result });
    }
    let ended = ended(&disks);
    journal.record(ended.record(Phase::Rollback))?;
    let go_on = (ended != ApplyEnd::Complete)
        .then(|| format!("`plumb policy rollback {}` tries again", shell_word(&place.to_string_lossy())));
    Ok(Report { schema: Report::SCHEMA.to_owned(), journal: place, disks, ended, go_on })
}

/// Returns the worst result of the disks.
fn ended(disks: &[DiskReport]) -> ApplyEnd {
    let any = |test: fn(&DiskResult) -> bool| disks.iter().any(|disk| test(&disk.result));
    if any(|result| matches!(result, DiskResult::Failed { .. } | DiskResult::Mismatch { .. })) {
        ApplyEnd::Failed
    } else if any(|result| matches!(result, DiskResult::Refused { .. })) {
        ApplyEnd::Refused
    } else if any(|result| matches!(result, DiskResult::Interrupted | DiskResult::Untouched)) {
        ApplyEnd::Interrupted
    } else {
        ApplyEnd::Complete
    }
}

fn one(
    session: &Session<'_>,
    journal: &mut Journal,
    reader: &Reader<'_>,
    change: &PlannedChange,
    before: &DiskBefore,
) -> Result<DiskResult, JournalError> {
    let found = read(reader, change, before).and_then(|material| {
        let steps = steps_back(reader, &material, before)?;
        Ok((material, steps))
    });
    let (material, steps) = match found {
        Ok(found) => found,
        Err(Refusal { reason, remedy }) => return Ok(DiskResult::Refused { reason, remedy }),
    };
    let mut worker = Worker { session, journal, phase: Phase::Rollback, disk: &change.name };
    match worker.carry_out(&steps)? {
        StepsEnded::Interrupted => Ok(DiskResult::Interrupted),
        StepsEnded::Failed(error) => {
            Ok(worker.give_up(&error, &mechanism::read_back(session.gateway, &material)))
        }
        StepsEnded::All => worker.conclude(&settle(session, &material, before)),
    }
}

/// Reads the disk in its present state, under any name.
fn read(reader: &Reader<'_>, change: &PlannedChange, before: &DiskBefore) -> Result<Material, Refusal> {
    let gone =
        || Refusal::new(format!("the disk {} is missing", change.identity), "attach it and roll back again");
    let disk = reader.find_named(&change.name, &change.identity).ok_or_else(gone)?;
    let mut view = reader.one(&disk.name).map_err(|_| gone())?;
    // A state that the apply itself forced by SCT must not prevent its restoration.
    if forced(&view) && !forced(&before.view) {
        view.refusal = None;
    }
    Material::read(reader, &view)
}

fn forced(view: &DeviceView) -> bool {
    matches!(view.device.sct.as_deref(), Some("forced-on" | "forced-off"))
}

fn steps_back(reader: &Reader<'_>, now: &Material, before: &DiskBefore) -> Result<Vec<Step>, Refusal> {
    let was = &before.found;
    let state = match (was.wce, was.write_cache.as_deref()) {
        (Some(false), _) => State::Off,
        (_, Some("write through")) => State::Protected,
        _ => State::On,
    };
    let found = mechanism::read_back(reader.gateway, now);
    let mut steps = Vec::new();
    if now.kind == Kind::Ata && was.saved.is_none() && found.saved.is_some() {
        steps.push(mechanism::release_sct(&now.disk));
    }
    let saved = if now.saveable && found.saved != was.saved { was.saved } else { None };
    steps.extend(to_goal(reader, now, Goal { state, saved })?);
    Ok(steps)
}

/// Reads back until everything is as before; irrelevant differences are awaited briefly, then ignored.
fn settle(session: &Session<'_>, material: &Material, before: &DiskBefore) -> Outcome {
    settle_until(session.gateway, material, |found| {
        let disagreements = differences(&before.found, found);
        let enough = match disagreements.is_empty() {
            _ if *found == before.found => Nanos::ZERO,
            true => FORGIVE_AFTER,
            false => SETTLE_MAX,
        };
        (disagreements, enough)
    })
}

/// Returns the relevant differences.
fn differences(was: &ReadBack, now: &ReadBack) -> Vec<Disagreement> {
    let word = |value| on_off(value, "unknown").to_owned();
    let says = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
    let mut list = Vec::new();
    let mut expect = |what: &str, holds: bool, found: String, expected: String| {
        if !holds {
            list.push(Disagreement { what: what.to_owned(), found, expected });
        }
    };
    expect("the write cache of the device", now.wce == was.wce, word(now.wce), word(was.wce));
    expect("what the device starts with", now.saved == was.saved, word(now.saved), word(was.saved));
    let off = now.wce == Some(false);
    let queue = off || now.write_cache == was.write_cache;
    expect("queue/write_cache", queue, says(&now.write_cache), says(&was.write_cache));
    // A correct value is acceptable instead of the old one: an override that hid the truth is not restored.
    let true_now = now.cache_type.as_deref().map(|says| says.starts_with("write back")) == now.wce;
    let cache_type = off || now.cache_type == was.cache_type || true_now;
    expect("cache_type", cache_type, says(&now.cache_type), says(&was.cache_type));
    for name in now.dropping_above.iter().filter(|name| !off && !was.dropping_above.contains(name)) {
        expect(
            &format!("queue/write_cache of {name}"),
            false,
            "write through".to_owned(),
            "write back".to_owned(),
        );
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(wce: bool, queue: &str) -> ReadBack {
        ReadBack {
            wce: Some(wce),
            saved: Some(true),
            write_cache: Some(queue.into()),
            cache_type: Some(if wce { "write back" } else { "write through" }.into()),
            dropping_above: Vec::new(),
        }
    }

    #[test]
    fn what_loses_no_flush_counts_as_restored_and_nothing_else() {
        let on = read_back(true, "write back");
        let off = read_back(false, "write through");
        assert!(differences(&on, &on).is_empty());
        assert!(differences(&read_back(false, "write back"), &off).is_empty(), "an off cache needs no flush");
        assert_eq!(differences(&on, &read_back(true, "write through")).len(), 1);
        assert_eq!(differences(&on, &off).len(), 1);
        assert_eq!(differences(&on, &ReadBack { saved: Some(false), ..on.clone() }).len(), 1);
        let stale = ReadBack { dropping_above: vec!["dm-0".into()], ..on.clone() };
        assert_eq!(differences(&on, &stale).len(), 1);
        assert!(differences(&stale, &on).is_empty(), "a layer that forwards again does no harm");
        assert_eq!(
            differences(&on, &ReadBack { wce: None, ..on.clone() }).len(),
            1,
            "an unknown state does not agree with anything"
        );
    }
}

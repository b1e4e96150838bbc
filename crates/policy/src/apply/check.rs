//! Checks that a disk still matches the plan.

use std::collections::BTreeMap;

use crate::device::Reader;
use crate::mechanism::Step;
use crate::plan::{PlanRequest, PlannedChange, PlannedStep, planned, siblings};
use crate::state::on_off;
use crate::view::{DeviceView, Holder, Refusal};

/// Properties of a disk that must be unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All relevant properties: the disk was not changed yet.
    Everything,
    /// Identity of the disk and its holders: a change of its cache was interrupted.
    AllButTheCache,
}

fn refuse<T>(reason: String) -> Result<T, Refusal> {
    Err(Refusal { reason, remedy: "check it with `plumb policy show`, and make a new plan".to_owned() })
}

/// Refuses a disk that is another one now, or whose properties that the plan relies on have changed.
pub(super) fn unchanged(change: &PlannedChange, now: &DeviceView, extent: Extent) -> Result<(), Refusal> {
    let found = now.identity.as_deref().unwrap_or("none");
    if found != change.identity {
        return refuse(format!(
            "the plan is for the disk {}, but {found} has that name now",
            change.identity
        ));
    }
    let (before, after) = (names(&change.holders), names(&now.holders));
    if before != after {
        return refuse(format!("what uses it has changed since the plan: {before} before, {after} now"));
    }
    if extent == Extent::AllButTheCache {
        return Ok(());
    }
    if now.device != change.device {
        return refuse(format!(
            "its settings have changed since the plan: write cache {} before, {} now",
            on_off(change.device.wce, "unknown"),
            on_off(now.device.wce, "unknown")
        ));
    }
    if now.kernel != change.kernel {
        return refuse(format!(
            "the kernel's view of it has changed since the plan: {} before, {} now",
            change.kernel.write_cache.as_deref().unwrap_or("nothing"),
            now.kernel.write_cache.as_deref().unwrap_or("nothing")
        ));
    }
    Ok(())
}

/// Refuses a change that would switch the cache of other disks than planned, or of one with other holders.
/// The check also applies to an interrupted change, which still switches those disks when it is completed.
pub(super) fn same_cache(
    reader: &Reader<'_>,
    change: &PlannedChange,
    now: &DeviceView,
) -> Result<(), Refusal> {
    let switches = change.to != PlanRequest::Heal && siblings::switches_the_drive(now, change.goal());
    if change.shares_cache_with.is_empty() && !switches {
        return Ok(());
    }
    let planned: BTreeMap<String, (Option<String>, String)> = change
        .shares_cache_with
        .iter()
        .map(|shared| (shared.name.clone(), (shared.identity.clone(), names(&shared.holders))))
        .collect();
    let here = reader.siblings(&now.name);
    let found: BTreeMap<String, (Option<String>, String)> =
        here.into_iter().map(|view| (view.name, (view.identity, names(&view.holders)))).collect();
    let list = |all: &BTreeMap<String, _>| match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.keys().cloned().collect::<Vec<_>>().join(", "),
    };
    if !planned.keys().eq(found.keys()) {
        return refuse(format!(
            "the disks that share a write cache with {} changed since the plan: {} then, {} now",
            now.name,
            list(&planned),
            list(&found)
        ));
    }
    for (name, (identity, holders)) in &found {
        let (before, stood) = &planned[name];
        if before != identity {
            let word = |identity: &Option<String>| identity.clone().unwrap_or_else(|| "none".to_owned());
            return refuse(format!(
                "{name}, which has the same write cache as {}, was {} and is {} now",
                now.name,
                word(before),
                word(identity)
            ));
        }
        if stood != holders {
            return refuse(format!(
                "what uses {name}, which has the same write cache as {}, has changed since the plan: \
                 {stood} before, {holders} now",
                now.name
            ));
        }
    }
    Ok(())
}

/// Refuses steps that differ from the approved ones. Used before anything is changed.
pub(super) fn as_agreed(change: &PlannedChange, steps: &[Step]) -> Result<(), Refusal> {
    let now: Vec<PlannedStep> = steps.iter().map(planned).collect();
    for number in 0..change.steps.len().max(now.len()) {
        let (agreed, now) = (change.steps.get(number), now.get(number));
        if !agreed.zip(now).is_some_and(|(agreed, now)| does_the_same(agreed, now)) {
            return refuse(format!(
                "step {} of the plan is {}, but would be {} now",
                number + 1,
                told(agreed),
                told(now)
            ));
        }
    }
    Ok(())
}

/// Refuses a step that was not approved. During the execution of the plan some steps may be unnecessary,
/// because they were done for a disk that shares a holder; for a disk already started, some steps may be
/// repeated.
pub(super) fn among_agreed(change: &PlannedChange, steps: &[Step]) -> Result<(), Refusal> {
    let is_agreed = |now: &PlannedStep| change.steps.iter().any(|agreed| does_the_same(agreed, now));
    match steps.iter().map(planned).find(|now| !is_agreed(now)) {
        Some(now) => {
            refuse(format!("{} would now be a step, but the plan does not have it", told(Some(&now))))
        }
        None => Ok(()),
    }
}

/// Returns true if both steps do the same to the same device under the same conditions. The wording may be
/// that of another version.
fn does_the_same(agreed: &PlannedStep, now: &PlannedStep) -> bool {
    let PlannedStep { on, words: _, bytes, waits_for, left_out_if } = agreed;
    (on, bytes, waits_for, left_out_if) == (&now.on, &now.bytes, &now.waits_for, &now.left_out_if)
}

fn told(step: Option<&PlannedStep>) -> String {
    step.map_or_else(|| "nothing".to_owned(), |step| format!("`{}` on {}", step.bytes.join("; "), step.on))
}

/// Returns only the names, because a layer's view may change with a change below it.
fn names(holders: &[Holder]) -> String {
    let mut names: Vec<&str> = holders.iter().map(|holder| holder.name.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

//! Check whether a disk is still what the plan was made for.

use std::collections::BTreeMap;

use crate::device::Reader;
use crate::mechanism::Step;
use crate::plan::{PlanRequest, PlannedChange, PlannedStep, planned, siblings};
use crate::state::on_off;
use crate::view::{DeviceView, Holder, Refusal};

/// How much of a disk must be as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All that counts: nothing was done to it yet.
    Everything,
    /// Identity of the disk and what stands on it: its cache was being changed when that was cut off.
    AllButTheCache,
}

fn refuse<T>(reason: String) -> Result<T, Refusal> {
    Err(Refusal { reason, remedy: "check it with `plumb policy show`, and make a new plan".to_owned() })
}

/// Refuses a disk that has become another one, or has changed in what a plan rests on.
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

/// Refuses a change that would switch the cache of another set of disks than was planned, or of one on which
/// something else stands now. Also of a change that was cut off: until it is at its end, it switches them.
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

/// Refuses steps that are not the ones that were agreed to, one for one. Before anything is done.
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

/// Refuses a step that is none of those that were agreed to. While the plan is carried out, some may be
/// needless, done for a disk that shares what stands on this one; and of a disk that was begun before, some
/// may be done again.
pub(super) fn among_agreed(change: &PlannedChange, steps: &[Step]) -> Result<(), Refusal> {
    let is_agreed = |now: &PlannedStep| change.steps.iter().any(|agreed| does_the_same(agreed, now));
    match steps.iter().map(planned).find(|now| !is_agreed(now)) {
        Some(now) => {
            refuse(format!("{} would now be a step, but the plan does not have it", told(Some(&now))))
        }
        None => Ok(()),
    }
}

/// Returns true if the same is done to the same device under the same conditions. The words for it may be
/// another version's.
fn does_the_same(agreed: &PlannedStep, now: &PlannedStep) -> bool {
    let PlannedStep { on, words: _, bytes, waits_for, left_out_if } = agreed;
    (on, bytes, waits_for, left_out_if) == (&now.on, &now.bytes, &now.waits_for, &now.left_out_if)
}

fn told(step: Option<&PlannedStep>) -> String {
    step.map_or_else(|| "nothing".to_owned(), |step| format!("`{}` on {}", step.bytes.join("; "), step.on))
}

/// Names alone: what a layer believes may change by a change below it.
fn names(holders: &[Holder]) -> String {
    let mut names: Vec<&str> = holders.iter().map(|holder| holder.name.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
